"""What a launch waits for: all criteria of a plan of 300 entries, each run before the work begins."""

from __future__ import annotations

import json
from datetime import datetime

from harness.events import types as t
from tests.bench.table import Figure, bench
from tests.fleetlib import Fleet, fleet, make_repository, wait_for

ENTRIES = 300
COMMAND_S = 0.05
MOST_S = 30.0
PATIENCE_S = 300


def plan(criterion: str) -> str:
    """A plan whose entries are each decided by one command of its own."""
    stories = [
        {"id": f"{n}", "title": f"Story {n}", "acceptanceCriteria": [criterion.format(n=n)], "passes": False}
        for n in range(1, ENTRIES + 1)
    ]
    return json.dumps({"userStories": stories})


def known(f: Fleet, sid: str) -> int:
    return sum(isinstance(r.body, t.CheckedBefore) for r in f.records(sid))


def waited(f: Fleet, name: str, criterion: str) -> list[float]:
    """Seconds from the first proposal of a check before the work to the last result."""
    repo = make_repository(f.root / name, {"prd.json": plan(criterion)})
    sid = f.launch("a file a task", repo=repo, more=("--plan", "prd.json"))
    wait_for("all results", lambda: known(f, sid) == ENTRIES, PATIENCE_S)
    records = f.records(sid)
    f.run("stop", sid)
    first = next(r.ts for r in records if isinstance(r.body, t.ToolProposed) and r.body.before_work)
    last = [r.ts for r in records if isinstance(r.body, t.CheckedBefore)][-1]
    return [(datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()]


@bench("before")
def before() -> list[Figure]:
    with fleet() as f:
        kinds = {
            f"that take {COMMAND_S} s": f"Run `sleep {COMMAND_S}; test -f {{n}}.txt` - exits with code 0",
            "that only read": "File `{n}.txt` exists",
        }
        found = {kind: waited(f, f"r{i}", criterion) for i, (kind, criterion) in enumerate(kinds.items())}
    return [
        Figure(f"{ENTRIES} criteria before the work, {kind}", "s", took, f"≤ {MOST_S:.0f}", max(took) <= MOST_S)
        for kind, took in found.items()
    ]

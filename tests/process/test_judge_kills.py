"""``kill -9`` of brain, keeper or supervisor around each step of a judge that looks at every task of a plan: each
verdict counts once, each request is paid once, and the plan comes to the end that it has undisturbed.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.budget.ledger_types import Reserved, Settled, Unknown
from harness.events import types as t
from harness.events.plan.evaluation_events import JUDGES
from tests.fleetlib import Fleet, fleet, kill, make_repository, play, wait_for
from tests.process.test_brain_kills import tree
from tests.process.test_judge_fleet import bodies, simulate, write
from tests.process.test_money_fleet import costs, ledger
from tests.process.test_review_kills import recent

pytestmark = pytest.mark.timeout(300)
TASKS = [
    {"description": "A", "steps": ["File `one.txt` exists"], "passes": False},
    {"description": "B", "steps": ["File `two.txt` exists", "It reads well"], "passes": False},
]
STEPS = (t.EvaluationRequested, t.EvaluationStarted, t.ModelRequest, t.ModelMessage, t.EvaluationEnded, t.PlanFlipped)
WORK = [("one.txt", "1\n"), ("one.txt", "one\n"), ("two.txt", "2\n"), ("two.txt", "two\n")]
GOAL = play(*(turn for path, text in WORK for turn in (write(path, text), f"{path} is written.")))
NOTES = "claude-progress.txt"
_CLOCK = re.compile(r"\d\d:\d\d")
VICTIMS: dict[str, Callable[[Fleet, str], int]] = {
    "brain": Fleet.brain_pid,
    "supervisor": lambda f, sid: f.supervisor_pid(),
    "keeper": Fleet.keeper_pid,
}


class Course(NamedTuple):
    """What a run comes to, whoever dies on its way."""

    asked: list[tuple[str, int]]
    verdicts: list[tuple[int, str]]
    flips: list[tuple[str, bool]]
    tasks: list[tuple[str, int]]
    outcomes: list[str]
    told: int
    files: dict[str, str]
    notes: str
    passed: int


def course(f: Fleet, sid: str) -> Course:
    row = f.wait_state(sid, "done", "failed", "waiting", timeout=150)
    assert (row["state"], row["verified"]) == ("done", True), row["detail"]
    told = [b.text for b in bodies(f, sid, t.UserMessage) if b.origin == "harness"]
    return Course(
        [(b.entry, b.cycle) for b in bodies(f, sid, t.EvaluationRequested)],
        [(b.cycle, b.verdict) for b in bodies(f, sid, t.EvaluationEnded)],
        [(b.entry, b.passes) for b in bodies(f, sid, t.PlanFlipped)],
        [(b.entry, b.attempt) for b in bodies(f, sid, t.IterationStarted)],
        [b.outcome for b in bodies(f, sid, t.IterationEnded)],
        sum("Judged in cycle" in text for text in told),
        {name: sha for name, sha in tree(row["worktree"]).items() if name != NOTES},
        _CLOCK.sub("", (Path(row["worktree"]) / NOTES).read_text()),
        row["plan_passed"],
    )


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet() as made:
        make_repository(made.root / "repo", {"feature_list.json": json.dumps(TASKS), "notes.txt": "keep\n"})
        yield made


@pytest.fixture(scope="module")
def calm(f: Fleet) -> Course:
    return course(f, launch(f))


def launch(f: Fleet) -> str:
    more = ("--plan", "feature_list.json", "--judge", "--judge-at", "task")
    return f.launch(f"{GOAL} [[judge needs_revision | satisfied]]", more=more)


def reached(f: Fleet, sid: str, step: type[t.Body], count: int) -> bool:
    """True once that many evaluations came to that step."""
    found = bodies(f, sid, step)
    return sum(getattr(b, "purpose", JUDGES) == JUDGES for b in found) >= count


def over(f: Fleet, sid: str) -> bool:
    return bool(bodies(f, sid, t.SessionEnded))


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_verdict_on_a_task_counts_once_and_the_plan_ends_as_undisturbed(f: Fleet, calm: Course, victim: str) -> None:
    """One death at each step of a judgement, each in another one; the request dies while the endpoint holds it."""
    before = len(recent(f))
    sid = launch(f)
    counts = Counter[type[t.Body]]()
    for at, step in enumerate(STEPS):
        counts[step] = 4 if step is t.PlanFlipped else at + 1
        if step is t.ModelRequest:
            wait_for("its case", lambda at=at: reached(f, sid, t.EvaluationRequested, at + 1), 120)
            simulate(f, "hold")
        with contextlib.suppress(ProcessLookupError):
            wait_for(
                f"{step.__name__} {counts[step]}",
                lambda step=step: over(f, sid) or reached(f, sid, step, counts[step]),
                120,
            )
            pid = VICTIMS[victim](f, sid)
            if pid and not over(f, sid):
                kill(pid)
        simulate(f, "release")
    assert course(f, sid) == calm
    assert f.violations() == []
    paid_once(f, sid, recent(f)[before:])


def paid_once(f: Fleet, sid: str, asked: list[dict[str, Any]]) -> None:
    """Every request that was sent has one end in the log and one in the ledger, and both name the same money; what the
    endpoint billed is among it.
    """
    records = [r.body for r in f.records(sid)]
    sent = {(b.request_id, b.attempt): b for b in records if isinstance(b, t.ModelRequest)}
    newest = {name: attempt for name, attempt in sent}
    messages = [b for b in records if isinstance(b, t.ModelMessage)]
    failed = [b for b in records if isinstance(b, t.ModelFailed)]
    ends = [(b.request_id, newest[b.request_id]) for b in messages] + [(b.request_id, b.attempt) for b in failed]
    assert Counter(ends) == Counter(list(sent))
    assert sum(b.purpose == JUDGES for b in messages) == len(bodies(f, sid, t.EvaluationEnded))
    wait_for("every settlement to be on record", lambda: not f.state(sid).unsettled)
    mine = {r.reservation: r.nano for r in ledger(f) if isinstance(r, Reserved) and r.sid == sid}
    ends_there = [r for r in ledger(f) if isinstance(r, Settled | Unknown) and r.reservation in mine]
    assert Counter(r.reservation for r in ends_there) == Counter(list(mine))
    unknown = sum(mine[r.reservation] for r in ends_there if isinstance(r, Unknown))
    own = next(one for one in costs(f)["sessions"] if one["sid"] == sid)
    assert (own["unknown_nano"], own["reserved_nano"]) == (unknown, 0)
    assert own["spent_nano"] == f.state(sid).spent_nano + unknown
    of_failed = {sent[b.request_id, b.attempt].reservation for b in failed if b.usage is None}
    assert {r.reservation for r in ends_there if isinstance(r, Unknown)} == of_failed, "the log alone tells it"
    billed = sum(one.get("nano", 0) for one in asked)
    assert f.state(sid).spent_nano <= billed <= own["spent_nano"], "what was billed and never heard of counts in full"

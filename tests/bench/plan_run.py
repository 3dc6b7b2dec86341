"""A plan of 200 features over 200 iterations, each in a context of its own: it ends by itself, and its processes hold
at the end what they held at the fifth iteration.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from harness.events import types as t
from tests.bench.fleet_costs import pss_mb
from tests.bench.table import Figure, bench
from tests.fleetlib import Fleet, fleet, make_repository, wait_for

FEATURES = 200
EARLY = 5
LATE = FEATURES - 1
MOST = 1.2
PATIENCE_S = 1800
PLAN = {
    "userStories": [
        {"id": f"{n}", "title": f"Feature {n}", "acceptanceCriteria": [f"File `{n}.txt` exists"], "passes": False}
        for n in range(1, FEATURES + 1)
    ]
}


def held(f: Fleet, sid: str) -> dict[str, float]:
    """Memory in MB of the session's keeper and of the brain that is at work."""
    brain = wait_for("a brain", lambda: f.brain_pid(sid))
    return {"keeper": pss_mb(f.keeper_pid(sid)), "brain": pss_mb(brain)}


@bench("plan")
def plan() -> list[Figure]:
    begun = time.monotonic()
    with fleet(config='[caps]\nday_usd = "10000"\nsession_usd = "10000"\n') as f:
        repo = make_repository(f.root / "repo", {"prd.json": json.dumps(PLAN)})
        sid = f.launch("a file a task", repo=repo, more=("--plan", "prd.json"))
        worktree = Path(wait_for("its worktree", lambda: f.row(sid)["worktree"]))
        seen = []
        for at in (EARLY, LATE):
            wait_for(f"feature {at}", (worktree / f"{at}.txt").exists, PATIENCE_S)
            seen.append(held(f, sid))
        row = f.wait_state(sid, "done", "failed", "waiting", "parked", timeout=PATIENCE_S)
        iterations = sum(isinstance(r.body, t.IterationStarted) for r in f.records(sid))
    early, late = seen
    took = time.monotonic() - begun
    ended = row["state"] == "done" and row["verified"] and row["plan_passed"] == FEATURES
    return [
        Figure(
            f"a plan of {FEATURES} features",
            "iterations",
            [float(iterations)],
            f"ends by itself, in {FEATURES}",
            ended and iterations == FEATURES,
            note=f"{row['state']}, {row['plan_passed']} passed, in {took:.0f} s",
        ),
        *(
            Figure(
                f"memory (PSS) of its {name} at iteration {LATE}",
                "MB",
                [late[name]],
                f"≤ {MOST}×",
                late[name] <= MOST * early[name],
                [early[name]],
                f"at iteration {EARLY}",
                late[name] / early[name],
            )
            for name in early
        ),
    ]

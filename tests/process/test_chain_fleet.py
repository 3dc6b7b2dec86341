"""A report becomes a plan, a plan becomes work, work is delivered: what each stage leaves is a file or a branch, from
which the next one can be begun again alone.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, kill, play, wait_for

TASKS = [
    {"id": "T-001", "title": "First", "acceptanceCriteria": ["File `one.txt` contains `done`"], "passes": False},
    {
        "id": "T-002",
        "title": "Second",
        "acceptanceCriteria": ["Run `test -s two.txt` - exits with code 0"],
        "passes": False,
    },
]
PLAN = json.dumps({"project": "Report of the week", "tasks": TASKS}, indent=2)


def write(path: str, content: str = "done\n") -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def from_report(f: Fleet, then: list[Any]) -> str:
    """A session that writes its plan from a report which is a file."""
    report = f.root / "report.md"
    report.write_text(play([write("prd.json", PLAN)], "The plan is written.", *then))
    launched = f.json(
        "launch", "--repo", str(f.repository()), "--goal-file", str(report), "--plan-from-goal", "prd.json"
    )
    return str(launched[0]["sid"])


def on_branch(f: Fleet, branch: str, path: str) -> str:
    done = subprocess.run(["git", "show", f"{branch}:{path}"], cwd=f.repository(), capture_output=True, text=True)
    return done.stdout


def passes(text: str) -> list[bool | None]:
    return [task.get("passes") for task in json.loads(text)["tasks"]] if text else []


def test_each_stage_of_a_chain_begins_again_alone() -> None:
    with fleet() as f:
        # the report read again, when the first reading came to nothing
        lost = from_report(f, ["Done."])
        f.approval(lost)
        f.run("stop", lost)
        f.wait_state(lost, "stopped")
        planner = from_report(f, [[("shell", {"script": "touch at-work; sleep 300"})], "Done."])
        card = f.approval(planner)
        kill(f.supervisor_pid())
        f.run("supervisor", "start")
        f.approve(card["approval_id"])
        begun = Path(f.row(planner)["worktree"]) / "at-work"
        wait_for("its work to begin", begun.exists)
        f.run("stop", planner)
        f.wait_state(planner, "stopped")
        plan = Path(f.row(planner)["worktree"]) / "prd.json"
        assert passes(plan.read_text()) == [False, False], "the plan is what this stage leaves"

        # the work begun from that plan alone, through the death of its brain
        work = play([write("one.txt")], "First.", [write("two.txt")], "Second.")
        worker = str(f.json("fork", planner, "--goal", work)[0]["sid"])
        f.wait_event(worker, "model.request")
        if (brain := f.brain_pid(worker)) > 0:
            kill(brain)
        row = f.wait_state(worker, "done", "failed")
        assert (row["state"], row["verified"], row["plan_passed"], row["plan_total"]) == ("done", True, 2, 2)
        assert passes(on_branch(f, row["branch"], "prd.json")) == [True, True]
        assert [r for r in f.records(worker) if isinstance(r.body, t.PlanDrafted)] == [], "it was not planned again"

        # delivered by itself, once
        f.run("merge", worker)
        assert passes((f.repository() / "prd.json").read_text()) == [True, True]
        again = f.run("merge", worker, check=False)
        assert (again.returncode, "already" in again.stderr) == (5, True)
        assert f.violations() == []

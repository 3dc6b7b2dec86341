"""Checkpoints on a real fleet: when they are made, what they hold, and going back to one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, git, make_repository, play, wait_for
from tests.process.undolib import State, dump

pytestmark = pytest.mark.fence
PLAN = {
    "userStories": [
        {"id": "US-001", "title": "First", "acceptanceCriteria": ["File `one.txt` exists"], "passes": False},
        {"id": "US-002", "title": "Second", "acceptanceCriteria": ["File `two.txt` exists"], "passes": False},
    ]
}
FILES = {"prd.json": json.dumps(PLAN, indent=2), "notes.txt": "keep\n", "src/a.txt": "alpha\n"}
ASK: tuple[str, dict[str, Any]] = ("exec", {"argv": ["true"], "access": "unfenced", "why": "because"})


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet() as made:
        make_repository(made.root / "repo", FILES)
        yield made


def shell(script: str) -> tuple[str, dict[str, Any]]:
    return "shell", {"script": script}


def bodies(f: Fleet, sid: str, kind: type[t.Body]) -> list[Any]:
    return [r.body for r in f.records(sid) if isinstance(r.body, kind)]


def tree(f: Fleet, sid: str) -> State:
    """The worktree, without what git itself keeps there."""
    return {name: value for name, value in dump(Path(f.row(sid)["worktree"])).items() if name != b".git"}


def refs(f: Fleet, sid: str) -> list[str]:
    """Numbers of the checkpoints that the repository holds for a session."""
    found = git(f.repository(), "for-each-ref", "--format=%(refname)", f"refs/watchfloor/checkpoints/{sid}").split()
    return sorted((name.rpartition("/")[2] for name in found), key=int)


def files(f: Fleet, commit: str) -> dict[str, str]:
    names = git(f.repository(), "ls-tree", "-r", "--name-only", commit).split()
    return {name: git(f.repository(), "show", f"{commit}:{name}") for name in names}


def test_milestones_are_kept_and_one_is_gone_back_to(f: Fleet) -> None:
    sid = f.launch(
        play(
            [shell("echo 1 > one.txt; echo secret > .env; chmod 600 .env; mkdir __pycache__; touch __pycache__/x.pyc")],
            "Done.",
            [shell("echo 2 > two.txt; rm src/a.txt; git add -A; git commit -qm two")],
            [ASK],
            "Done, all of it.",
        ),
        more=("--plan", "prd.json"),
    )
    f.wait_state(sid, "waiting")
    first = bodies(f, sid, t.CheckpointCreated)[0]
    assert (first.checkpoint_id, first.why, first.label) == ("k1", "entry", "entry US-001 passed")
    assert first.passing == ["US-001"]
    held = files(f, first.commit)
    assert held["one.txt"] == "1\n"
    assert held[".env"] == "secret\n"
    assert held["src/a.txt"] == "alpha\n"
    assert json.loads(held["prd.json"])["userStories"][0]["passes"] is True
    assert not any("pyc" in name for name in held)
    by_hand = json.loads(f.run("checkpoint", sid, "--label", "before the yes", "--json").stdout)
    assert (by_hand["why"], by_hand["label"]) == ("hand", "before the yes")
    there = tree(f, sid)

    f.approve(f.approval(sid)["approval_id"])
    f.wait_state(sid, "done")
    last = "entry US-002 passed"
    wait_for("the end is kept", lambda: bodies(f, sid, t.CheckpointCreated)[-1].label == last)
    made = bodies(f, sid, t.CheckpointCreated)
    assert refs(f, sid) == [b.checkpoint_id[1:] for b in made]
    assert git(f.repository(), "log", "-1", "--format=%s", f"{made[-1].commit}^").strip() == "two"
    listed = f.json("checkpoints", sid)
    assert [one["id"] for one in listed] == [b.checkpoint_id for b in reversed(made)]

    done = json.loads(f.run("restore", sid, "k1", "--json").stdout)
    assert done["refused_count"] == 0
    now = {name.decode() for name in tree(f, sid)}
    assert {"one.txt", ".env", "src/a.txt", "__pycache__/x.pyc"} <= now
    assert "two.txt" not in now
    assert [p["passes"] for p in json.loads(_plan(f, sid))["userStories"]] == [True, False]
    assert bodies(f, sid, t.PlanFlipped)[-1] == t.PlanFlipped(
        entry="US-002", passes=False, why="checkpoint k1 was restored", calls=[]
    )
    assert bodies(f, sid, t.CheckpointRestored)[-1].undo_id == done["undo_id"]

    f.run("restore", sid, by_hand["id"])
    assert tree(f, sid) == there
    assert f.run("restore", sid, "k99", check=False).returncode == 4
    assert f.violations() == []


def _plan(f: Fleet, sid: str) -> str:
    return (Path(f.row(sid)["worktree"]) / "prd.json").read_text()

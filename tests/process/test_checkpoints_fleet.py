"""Checkpoints on a real fleet: when they are made, what they hold, and going back to one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, git, kill, make_repository, play, wait_for
from tests.process.keeperlib import wait_gone
from tests.process.undolib import State, dump

pytestmark = pytest.mark.sandbox
PLAN = {
    "userStories": [
        {"id": "US-001", "title": "First", "acceptanceCriteria": ["File `one.txt` exists"], "passes": False},
        {"id": "US-002", "title": "Second", "acceptanceCriteria": ["File `two.txt` exists"], "passes": False},
    ]
}
FILES = {"prd.json": json.dumps(PLAN, indent=2), "notes.txt": "keep\n", "src/a.txt": "alpha\n"}
ASK: tuple[str, dict[str, Any]] = ("exec", {"argv": ["true"], "access": "unsandboxed", "why": "because"})


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
    """Numbers of the checkpoints that are held for a session."""
    store = f.folders.session(sid).checkpoints
    told = git(store, "for-each-ref", "--format=%(refname)").split() if store.is_dir() else []
    return sorted((name.rpartition("/")[2] for name in told), key=int)


def in_repository(f: Fleet) -> str:
    return git(f.repository(), "for-each-ref", "--format=%(refname)", "refs/watchfloor")


def files(f: Fleet, sid: str, commit: str) -> dict[str, str]:
    store = f.folders.session(sid).checkpoints
    names = git(store, "ls-tree", "-r", "--name-only", commit).split()
    return {name: git(store, "show", f"{commit}:{name}") for name in names}


def test_milestones_are_kept_and_one_is_gone_back_to(f: Fleet) -> None:
    sid = f.launch(
        play(
            [
                shell(
                    "echo 1 > one.txt; echo secret > .env; chmod 600 .env; mkdir node_modules; touch node_modules/x.js"
                )
            ],
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
    held = files(f, sid, first.commit)
    assert held["one.txt"] == "1\n"
    assert held[".env"] == "secret\n"
    assert held["src/a.txt"] == "alpha\n"
    assert json.loads(held["prd.json"])["userStories"][0]["passes"] is True
    assert not any("node_modules" in name for name in held)
    by_hand = json.loads(f.run("checkpoint", sid, "--label", "before the yes", "--json").stdout)
    assert (by_hand["why"], by_hand["label"]) == ("hand", "before the yes")
    there = tree(f, sid)

    f.approve(f.approval(sid)["approval_id"])
    f.wait_state(sid, "done")
    last = "entry US-002 passed"
    wait_for("the end is kept", lambda: bodies(f, sid, t.CheckpointCreated)[-1].label == last)
    made = bodies(f, sid, t.CheckpointCreated)
    assert refs(f, sid) == [b.checkpoint_id[1:] for b in made]
    assert git(f.folders.session(sid).checkpoints, "log", "-1", "--format=%s", f"{made[-1].commit}^").strip() == "two"
    listed = f.json("checkpoints", sid)
    assert [one["id"] for one in listed] == [b.checkpoint_id for b in reversed(made)]

    done = json.loads(f.run("restore", sid, "k1", "--json").stdout)
    assert done["refused_count"] == 0
    now = {name.decode() for name in tree(f, sid)}
    assert {"one.txt", ".env", "src/a.txt", "node_modules/x.js"} <= now
    assert "two.txt" not in now
    assert [p["passes"] for p in json.loads(_plan(f, sid))["userStories"]] == [True, False]
    assert bodies(f, sid, t.PlanFlipped)[-1] == t.PlanFlipped(
        entry="US-002", passes=False, why="checkpoint k1 was restored", calls=[]
    )
    assert bodies(f, sid, t.CheckpointRestored)[-1].undo_id == done["undo_id"]

    mine = Path(f.row(sid)["worktree"]) / "mine.txt"
    mine.write_text("what a person wrote, in no record\n")
    done = json.loads(f.run("restore", sid, by_hand["id"], "--json").stdout)
    assert tree(f, sid) == there
    f.run("restore", sid, done["before"])
    assert mine.read_text() == "what a person wrote, in no record\n", "nothing is lost by a restore"
    assert f.run("restore", sid, "k99", check=False).returncode == 4
    assert f.violations() == []


ODD = "printf 'a\\r\\nb\\n' > crlf.txt; echo '*.txt text eol=crlf' > .gitattributes; mkdir -p .venv; touch .venv/x"
FIRST = f"echo 1 > one.txt; git add one.txt; git commit -qm one; echo draft > draft.txt; echo s > .env; {ODD}"


def test_another_session_goes_on_from_one_whatever_dies_meanwhile(f: Fleet) -> None:
    sid = f.launch(play([shell(FIRST)], "Done.", [ASK], "Done."), more=("--plan", "prd.json"))
    f.wait_state(sid, "waiting")
    goal = play("Here I am.", [shell("echo 2 > two.txt")], "Done.")
    made = f.json("fork", sid, "--at", "1", "--goal", goal, "--name", "child")[0]
    kill(f.supervisor_pid())
    child = made["sid"]
    wait_for("the child has ended", lambda: f.row_or_start(child)["state"] in ("done", "failed"))
    row = f.row(child)
    assert (row["state"], row["verified"], row["plan_passed"]) == ("done", True, 2)
    root = Path(row["worktree"])
    assert (root / "draft.txt").read_text() == "draft\n"
    assert (root / "crlf.txt").read_bytes() == b"a\r\nb\n"
    assert (root / ".env").read_text() == "s\n"
    assert not (root / ".venv").exists()
    commits = git(f.repository(), "log", "-2", "--format=%s", row["branch"]).splitlines()
    assert commits == ["Second", "one"], "its own task behind what the other one had committed"
    (intent,) = bodies(f, child, t.SessionIntent)
    assert (intent.forked.sid, intent.forked.checkpoint_id, intent.goal) == (sid, "k1", goal)
    flips = bodies(f, child, t.PlanFlipped)
    assert [(b.entry, b.passes) for b in flips] == [("US-001", True), ("US-002", True)]
    assert flips[0].why == f"as it stood at checkpoint k1 of session {sid}"
    assert any("Of 2 entries of the plan 1 passed; left: US-002." in b.text for b in bodies(f, child, t.UserMessage))
    assert [(b.checkpoint_id, b.child) for b in bodies(f, sid, t.SessionForked)] == [("k1", child)]
    assert bodies(f, sid, t.RatchetViolation) == bodies(f, child, t.RatchetViolation) == []

    (root / "mine.txt").write_text("mine\n")
    again = f.json("fork", child, "--goal", play("Done."), "--name", "grandchild")[0]
    late = f.wait_state(again["sid"], "done")
    assert (Path(late["worktree"]) / "mine.txt").read_text() == "mine\n", "from the work as it is now"
    assert [b.child for b in bodies(f, child, t.SessionForked)] == [again["sid"]], "an ended session's log took it"
    assert f.run("fork", sid, "--at", "k77", check=False).returncode == 4
    assert refs(f, child) != []
    assert "gone with it: " in f.run("rm", "--force", child).stdout
    assert refs(f, child) == []
    assert f.violations() == []


SEARCH = """
git cat-file --batch-all-objects --batch --unordered > all; grep -ac {token} all; grep -ac seed all
git for-each-ref | grep -c refs/watchfloor
for c in {commits}; do git cat-file -t $c; git show $c:.env; git show $c:mine.txt; done 2>/dev/null
ls {folder} 2>/dev/null
true
"""


def test_an_agent_of_another_session_on_the_repository_reads_nothing_of_them(f: Fleet) -> None:
    token = "canary-0f9d3b"
    sid = f.launch(play([shell(f"echo {token} > .env; echo seed > s; git add s; git commit -qm s")], [ASK], "Done."))
    f.wait_state(sid, "waiting")
    f.run("checkpoint", sid)
    (Path(f.row(sid)["worktree"]) / "mine.txt").write_text(f"{token} of a person\n")
    f.run("checkpoint", sid)
    commits = [b.commit for b in bodies(f, sid, t.CheckpointCreated)]
    assert all(token in files(f, sid, commit)[".env"] for commit in commits)
    folder = f.folders.session(sid).root
    search = SEARCH.format(token=token, commits=" ".join(commits), folder=folder)
    other = f.launch(play([shell(search)], "Done."))
    f.wait_state(other, "done")
    ended = next(b for b in bodies(f, other, t.ToolEnded) if b.status == "ok")
    assert ended.preview.split() == ["0", "1", "0"], "it reads what was committed, and nothing else"
    child = f.json("fork", sid, "--goal", play("Done."))[0]["sid"]
    assert token in (Path(f.wait_state(child, "done")["worktree"]) / ".env").read_text(), "a person can have it go on"

    assert sid in in_repository(f)
    f.run("stop", sid)
    f.wait_state(sid, "stopped")
    assert "gone with it: 3 checkpoints" in f.run("rm", "--force", sid).stdout
    assert f"/under/{sid}/" not in in_repository(f)
    kept = f.folders.archive / sid
    assert (kept / "log").is_dir()
    assert not (kept / "checkpoints.git").exists()
    f.run("purge", "--yes", sid)
    assert not kept.exists()
    assert f.violations() == []


def test_what_leaves_the_sandbox_a_stop_and_a_sigterm_are_kept(f: Fleet) -> None:
    def whys(sid: str) -> list[str]:
        return [b.why for b in bodies(f, sid, t.CheckpointCreated)]

    sid = f.launch(play([shell("echo 1 > a")], [ASK], [shell("echo 2 > b")], [ASK], "Done."))
    f.wait_state(sid, "waiting")
    assert whys(sid) == [], "it was asked, and nothing left yet"
    f.approve(f.approval(sid)["approval_id"])
    f.wait_event_count(sid, "tool.ended", 3)
    f.wait_event_count(sid, "approval.requested", 2)
    assert whys(sid) == ["leaving"]
    os.kill(supervisor := f.supervisor_pid(), signal.SIGTERM)
    wait_gone(supervisor)
    assert whys(sid) == ["leaving", "stop"]
    last = bodies(f, sid, t.CheckpointCreated)[-1]
    assert (last.label, files(f, sid, last.commit)["b"]) == ("as Watchfloor was stopped", "2\n")

    with f.folders.config_file.open("a") as file:
        file.write("\n[checkpoints]\nkeep = 2\n")
    other = f.launch(play([shell("echo 3 > c")], [ASK], "Done."))
    f.run("checkpoint", sid)
    assert (refs(f, sid), bodies(f, sid, t.CheckpointDropped)[-1].checkpoint_ids) == (["2", "3"], ["k1"])
    assert "older ones kept no longer ([checkpoints] keep in config.toml): 1" in f.run("checkpoints", sid).stdout
    f.wait_state(other, "waiting")
    f.run("stop", other)
    wait_for("its stop is kept", lambda: whys(other) == ["stop"])
    assert files(f, other, bodies(f, other, t.CheckpointCreated)[-1].commit)["c"] == "3\n"
    f.run("stop", sid)
    f.wait_state(sid, "stopped")
    assert whys(sid) == ["leaving", "stop", "hand"], "nothing changed since"


def test_a_keeper_told_to_end_alone_has_its_state_kept_first_and_one_without_a_supervisor_leaves_at_once() -> None:
    with fleet() as f:
        make_repository(f.root / "repo", FILES)
        sid = f.launch(play([shell("echo 1 > a")], [ASK], [shell("echo 2 > b")], [ASK], "Done."))
        f.wait_state(sid, "waiting")
        os.kill(first := f.keeper_pid(sid), signal.SIGTERM)
        wait_gone(first)
        f.wait_event_count(sid, "keeper.started", 2)
        order = [r.type for r in f.records(sid) if r.type in ("checkpoint.created", "keeper.started")]
        assert order == ["keeper.started", "checkpoint.created", "keeper.started"]
        f.approve(f.approval(sid)["approval_id"])
        f.wait_event_count(sid, "approval.requested", 2)
        keeper = f.keeper_pid(sid)
        supervisor = f.supervisor_pid()
        kill(int(Path(f"/proc/{supervisor}/stat").read_text().rsplit(")", 1)[1].split()[1]))
        with contextlib.suppress(ProcessLookupError):  # it ends by itself when its guardian is gone
            kill(supervisor)
        os.kill(keeper, signal.SIGTERM)
        wait_gone(keeper)
        f.run("resume", sid)
        wait_for("kept at take-up", lambda: "ended" in [b.why for b in bodies(f, sid, t.CheckpointCreated)] or None)


def _plan(f: Fleet, sid: str) -> str:
    return (Path(f.row(sid)["worktree"]) / "prd.json").read_text()

"""Undo through a real supervisor: which states there are, bringing them back whatever the session does, and who is
told.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from harness.protocol.client import SupervisorError
from tests.fleetlib import HOLD, Fleet, fleet, git, play, wait_for
from tests.process.undolib import State, dump

pytestmark = pytest.mark.sandbox
ASK: tuple[str, dict[str, Any]] = ("exec", {"argv": ["true"], "access": "unsandboxed", "why": "because"})
WORK = [
    [("shell", {"script": "echo one > one; git add one; git commit -qm one"})],
    [("shell", {"script": "ls"})],
    [("shell", {"script": "rm -rf src; echo secret > .env; chmod 600 .env"})],
    [("shell", {"script": "git rm -q one; git commit -qm two; echo more > .env"})],
]


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def points(f: Fleet, sid: str) -> list[dict[str, Any]]:
    return list(f.call("undo_points", sid=sid)["points"])


def undo(f: Fleet, sid: str, to: str = "") -> dict[str, Any]:
    return f.call("undo", sid=sid, to=to)


def refused(f: Fleet, sid: str, to: str = "") -> str:
    with pytest.raises(SupervisorError) as caught:
        undo(f, sid, to)
    return str(caught.value.code)


def tree(f: Fleet, sid: str) -> State:
    """The worktree, without what git itself keeps there."""
    return {name: value for name, value in dump(Path(f.row(sid)["worktree"])).items() if name != b".git"}


def head(f: Fleet, sid: str) -> str:
    return git(f.repository(), "rev-parse", f.row(sid)["branch"]).strip()


def subject(f: Fleet, sid: str) -> str:
    return git(f.repository(), "log", "-1", "--format=%s", f.row(sid)["branch"]).strip()


def calls(f: Fleet, sid: str) -> list[str]:
    return [r.body.call_id for r in f.records(sid) if isinstance(r.body, t.ToolStarted)]


def told(f: Fleet, sid: str) -> list[str]:
    return [r.body.text for r in f.records(sid) if isinstance(r.body, t.UserMessage) and r.body.origin == "harness"]


def launched(f: Fleet, state: str, name: str = "") -> str:
    """A session that has done its work and is now waiting, paused or stopped."""
    sid = f.launch(play(*WORK, [ASK], "All done."), name=name or f"undo-{state}")
    f.wait_state(sid, "waiting")
    wait_for("its commits are in the repository", lambda: subject(f, sid) == "two")
    if state == "paused":
        f.run("pause", sid)
        f.approve(f.approval(sid)["approval_id"])
        f.wait_event_count(sid, "tool.ended", 5)
        assert f.state(sid).desired == "paused"
    elif state == "stopped":
        f.run("stop", sid)
        f.wait_state(sid, "stopped", "ended")
    return sid


@pytest.mark.parametrize("state", ["waiting", "paused", "stopped"])
def test_steps_back_and_forth_in_every_state(f: Fleet, state: str) -> None:
    sid = launched(f, state)
    first, _, third, fourth = calls(f, sid)[:4]
    now = tree(f, sid)
    newest = head(f, sid)
    listed = {p["call_id"]: p for p in points(f, sid)}
    assert [p for p in listed if p in (first, third, fourth)] == [fourth, third, first], "newest first"
    assert all(listed[c]["changed"] for c in (first, third, fourth))
    assert "rm -rf src" in listed[third]["title"]

    done = undo(f, sid)
    assert (done["to"], done["refused"]) == (fourth, [])
    middle = tree(f, sid)
    assert middle[b".env"] == ("file", 0o600, b"secret\n")
    assert b"src/a.txt" not in middle
    wait_for("the branch is at the first commit again", lambda: subject(f, sid) == "one")

    again = undo(f, sid)
    assert again["to"] == third, "a plain undo steps back further"
    assert tree(f, sid)[b"src/a.txt"][2] == b"alpha\n"
    assert b".env" not in tree(f, sid)

    assert undo(f, sid, to=again["undo_id"])["refused"] == []
    assert tree(f, sid) == middle, "an undo is undone by its own name"
    assert undo(f, sid, to=done["undo_id"])["refused"] == []
    assert tree(f, sid) == now
    wait_for("the commit that was undone is back", lambda: head(f, sid) == newest)

    assert undo(f, sid, to=first)["refused"] == []
    assert b"one" not in tree(f, sid)
    wait_for("the branch is where it began", lambda: subject(f, sid) == "start")
    git(f.repository(), "cat-file", "-e", newest)
    messages = told(f, sid)
    if state == "stopped":
        assert messages == []
    else:
        assert len([m for m in messages if "The human undid your work" in m]) == 5
        assert f"just before {first}" in messages[-1]
    assert refused(f, sid, to="c99.9") == "not_found"
    assert f.violations() == []


def test_nothing_to_undo_is_said(f: Fleet) -> None:
    sid = f.launch(play([ASK], "Done."), name="undo-nothing")
    f.wait_state(sid, "waiting")
    assert refused(f, sid) == "not_found"


def test_a_running_call_is_not_pulled_from_under(f: Fleet) -> None:
    sid = f.launch(play([("shell", {"script": "echo x > x"})], [HOLD], "Done."), name="undo-busy")
    f.wait_event_count(sid, "tool.started", 2)
    assert refused(f, sid) == "busy"
    assert not any(isinstance(r.body, t.UndoStarted) for r in f.records(sid))
    f.release(sid)
    f.wait_state(sid, "done")
    assert undo(f, sid, to=calls(f, sid)[0])["refused"] == []
    assert b"x" not in tree(f, sid)
    assert b"notes.txt" in tree(f, sid)


def test_a_request_that_was_shown_another_world_asks_again(f: Fleet) -> None:
    """What waits for a yes was shown with the state that an undo takes away."""
    sid = launched(f, "waiting", "undo-stale")
    asked = f.approval(sid)["approval_id"]
    undo(f, sid)
    f.approve(asked, check=False)
    stale = f.wait_event(sid, "approval.stale").body
    assert isinstance(stale, t.ApprovalStale)
    assert stale.approval_id == asked


def test_a_state_that_expired_is_refused_and_the_newest_stay() -> None:
    script = "head -c 300000 /dev/urandom > data"
    with fleet(config="[undo]\nhistory_bytes = 1000000\n") as f:
        sid = f.launch(play(*[[("shell", {"script": f"{script}; echo {n}"})] for n in range(16)], [ASK], "Done."))
        f.wait_state(sid, "waiting")
        first = calls(f, sid)[0]
        gone = wait_for("old states expired", lambda: [p["call_id"] for p in points(f, sid) if p["expired"]], 30)
        assert first in gone
        assert refused(f, sid, to=first) == "expired"
        newest = calls(f, sid)[15]
        assert undo(f, sid)["to"] == newest
        assert f.violations() == []


@pytest.mark.parametrize("commit", [("pr", "--push-only", "--commit"), ("merge", "--commit", "--no-checks")])
def test_what_a_person_commits_is_no_change_of_the_last_call(f: Fleet, tmp_path: Path, commit: tuple[str, ...]) -> None:
    """An undo means the newest call that changed something; a person's commit goes with it only where that was said."""
    git(tmp_path, "init", "-q", "--bare", "far")
    if "origin" in git(f.repository(), "remote").split():
        git(f.repository(), "remote", "remove", "origin")
    git(f.repository(), "remote", "add", "origin", str(tmp_path / "far"))
    sid = f.launch(
        play([("write_file", {"path": f"{commit[0]}.txt", "content": "x"})], [("shell", {"script": "ls"})], "Done."),
        name=f"kept-{commit[0]}",
    )
    f.wait_state(sid, "done")
    before = [(p["call_id"], p["changed"]) for p in points(f, sid)]
    assert [changed for _, changed in before] == [0, 1]
    at = head(f, sid)
    f.run(*commit, sid)
    assert head(f, sid) != at
    assert [(p["call_id"], p["changed"]) for p in points(f, sid)] == before
    committed = head(f, sid)
    with pytest.raises(SupervisorError) as caught:
        undo(f, sid)
    assert caught.value.code == "yours"
    assert f"--to {before[1][0]}" in caught.value.hint
    assert head(f, sid) == committed
    assert undo(f, sid, to=before[1][0])["to"] == before[1][0]
    wait_for("the branch is where the call found it", lambda: head(f, sid) == at)
    assert f.violations() == []


@pytest.mark.parametrize("looked", [False, True], ids=["unseen", "seen"])
def test_what_a_person_did_by_hand_stays_on_a_ref_when_a_call_is_undone(f: Fleet, looked: bool) -> None:
    sid = f.launch(play([("write_file", {"path": "one", "content": "1\n"})], "Done."), name=f"by-hand-{looked}")
    f.wait_state(sid, "done")
    began = head(f, sid)
    worktree = Path(f.row(sid)["worktree"])
    (worktree / "mine").write_text("committed\n")
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", "by my own hand")
    commit = head(f, sid)
    (worktree / "mine").write_text("edited\n")
    if looked:
        assert points(f, sid)
    done = f.run("undo", sid)
    assert not (worktree / "mine").exists()
    assert f"off the branch: {commit[:7]} by my own hand" in done.stdout
    newest = f.state(sid).checkpoints.find("")
    assert newest is not None
    assert f"kept before it: checkpoint {newest.id}," in done.stdout
    assert git(f.folders.session(sid).checkpoints, "show", f"{newest.commit}:mine") == "edited\n"
    assert git(f.folders.session(sid).checkpoints, "rev-parse", f"{newest.commit}^").strip() == commit
    wait_for("the branch to stand where the call began", lambda: head(f, sid) == began)
    f.run("restore", sid, newest.id)
    assert (worktree / "mine").read_text() == "edited\n"
    wait_for("the person's commit on the branch again", lambda: head(f, sid) == commit)


MAPPER = """
import mmap, os, time
with open("data.bin", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
    n = 0
    while not os.path.exists("stop"):
        n += 1
        view[:8] = b"%08d" % n
        time.sleep(0.01)
    view[:8] = b"the last"
"""


def test_an_undo_gives_back_what_a_job_wrote_through_a_mapping(f: Fleet) -> None:
    write = ("write_file", {"path": "map.py", "content": MAPPER})
    fill = ("shell", {"script": "head -c 8192 /dev/zero > data.bin"})
    job = ("shell", {"script": "python3 map.py", "job": True})
    looks = [[("shell", {"script": f"sleep 0.3; true {i}"})] for i in range(4)]
    stop = [("shell", {"script": "touch stop"}), ("job", {"action": "wait", "job": "j1", "after_s": 20})]
    gone = ("shell", {"script": "rm data.bin"})
    sid = f.launch(play([write, fill], [job], *looks, stop, [gone], [ASK], "Done."), name="mapped")
    f.wait_state(sid, "waiting")
    before = [r.body for r in f.records(sid) if isinstance(r.body, t.ToolStarted) and "data.bin" in r.body.worked_names]
    assert len(before) >= 4, "each call has the state just before it"
    undo(f, sid)
    assert (Path(f.row(sid)["worktree"]) / "data.bin").read_bytes()[:8] == b"the last"

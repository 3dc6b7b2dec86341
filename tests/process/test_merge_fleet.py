"""`watchfloor merge` on a whole fleet: what was checked on the result is merged, the rest says why, and a kill leaves
it merged or not at all.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from harness.events import types as t
from harness.events.work import merge_events as m
from harness.protocol.client import Client, SupervisorError
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import COMMAND, Fleet, fleet, git, kill, play, wait_for

pytestmark = pytest.mark.sandbox
HELD = "while [ -e hold ]; do sleep 0.02; done; test -d .git || test -f .git"
"""A check that passes at once in a session, and on a result with the file ``hold`` when that goes."""


def work(name: str, text: str = "work") -> tuple[str, dict[str, str]]:
    return ("shell", {"script": f"echo {text} > {name}; git add {name}; git commit -qm '{name}'"})


def merge(f: Fleet, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND, "merge", *args],
        env=f.env | f.extra,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def held(f: Fleet, sid: str) -> Path:
    """The file that its check waits for, once it does."""
    path = f.folders.session(sid).root / "merge" / "tree" / "hold"
    wait_for(f"the check on the result of {sid}", lambda: path.exists() and checking(f, sid))
    return path


def checking(f: Fleet, sid: str) -> bool:
    """True while a check of its newest merge runs."""
    known = f.state(sid).merging
    if known.open is None or known.ran is None:
        return False
    return any(isinstance(r.body, t.ToolStarted) and r.body.call_id == known.ran.call_id for r in f.records(sid))


def outcome(f: Fleet, sid: str) -> str:
    ended = f.state(sid).merging.ended
    return ended.outcome if ended is not None else ""


def main_of(repo: Path) -> str:
    return git(repo, "rev-parse", "main").strip()


def test_from_done_to_merged() -> None:
    with fleet() as f:
        repo = f.repository()
        alone = "test ! -e a.txt || test ! -e c.txt"
        first = f.launch(play([work("a.txt")], "Done."), checks=("test -f a.txt",), name="first")
        settle = "git merge main; echo both > a.txt; git add a.txt; git commit -qm settled"
        other = f.launch(
            play([work("a.txt", "else")], "Done.", [("shell", {"script": settle})], "Settled."), name="other"
        )
        third = f.launch(play([work("c.txt")], "Done."), checks=(alone,), name="third")
        loose = f.launch(play([("write_file", {"path": "d.txt", "content": "d\n"})], "Done."), name="loose")
        for sid in (first, other, third, loose):
            f.wait_state(sid, "done")
        assert f.row(first)["group"] == "to review"
        assert f.run("diff", "--stat", first).stdout.splitlines()[-1] == "1 file changed, +1 -0"

        with Client(UnixSocket(f.folders.supervisor_socket)) as client:
            look = client.call("merge_look", sid=first)["merge"]
            assert (look["repo"], look["into"], look["commits"], look["no"]) == (str(repo), "main", 1, "")
            (repo / "README.md").write_text("changed\n")
            look = client.call("merge_look", sid=first)["merge"]
            assert (look["into"], "README.md" in look["no"]) == ("main", True)
            git(repo, "checkout", "-q", "--", "README.md")
            git(repo, "checkout", "-q", "--detach")
            assert client.call("merge_look", sid=first)["merge"]["into"] == ""
            git(repo, "checkout", "-q", "main")

        assert f.run("open", "--path", first).stdout == f"{f.row(first)['worktree']}\n"
        assert f.run("open", first, check=False).returncode == 2, "there is no terminal"

        (repo / "notes.txt").write_text("being edited\n")
        refused = f.run("merge", first, check=False)
        assert (refused.returncode, "notes.txt" in refused.stderr) == (5, True)
        (repo / "notes.txt").write_text("keep\n")

        assert f.json("merge", "first")[0]["outcome"] == m.MERGED
        assert (repo / "a.txt").read_text() == "work\n"
        assert git(repo, "status", "--porcelain") == ""
        row = wait_for("its row", lambda: r if (r := f.row(first)).get("merged") else None)
        assert (row["group"], row["merged"], row["merged_commit"]) == ("done", "main", main_of(repo))
        again = f.run("merge", first, check=False)
        assert (again.returncode, "already" in again.stderr) == (5, True)
        assert f.run("rm", first, check=False).returncode == 0

        before = main_of(repo)
        conflict = f.run("merge", other, check=False)
        assert (conflict.returncode, "a.txt" in conflict.stdout) == (1, True)
        failing = f.run("merge", "--squash", third, check=False)
        assert (failing.returncode, alone in failing.stdout) == (1, True)
        assert (main_of(repo), git(repo, "status", "--porcelain")) == (before, "")
        assert (outcome(f, other), outcome(f, third)) == (m.CONFLICTS, m.CHECKS_FAILED)
        assert f.row(other)["detail"].startswith("conflicts with main in a.txt")

        f.run("merge", "--resolve", "-m", "Keep mine.", other)
        wait_for(
            "it to be settled", lambda: git(repo, "log", "-1", "--format=%s", f.row(other)["branch"]) == "settled\n"
        )
        f.wait_state(other, "done")
        told = [r.body.text for r in f.records(other) if isinstance(r.body, t.UserMessage)][-1]
        assert told.startswith("Your work cannot go into the branch main as it is")
        assert f"`git merge {before}`" in told
        assert "both sides changed a.txt" in told
        assert told.endswith("Keep mine.")
        assert f.run("merge", "--resolve", other, check=False).returncode == 5
        f.run("merge", other)
        assert (repo / "a.txt").read_text() == "both\n"

        assert "d.txt" in f.run("merge", loose, check=False).stderr
        with Client(UnixSocket(f.folders.supervisor_socket)) as client:
            seen = client.call("diff", sid=loose)["seen"]
            late = Path(f.row(loose)["worktree"]) / "late.txt"
            late.write_text("after the look\n")
            with pytest.raises(SupervisorError, match="other work now than you looked at"):
                client.call("merge", sid=loose, commit=True, seen=seen)
            client.call("diff", sid=loose)
            assert f.row(loose)["files"] == 2, "what was done by hand is on the row once somebody looked"
            late.unlink()
            assert client.call("diff", sid=loose)["seen"] == seen, "the same work is the same"
            assert f.row(loose)["files"] == 1
        f.run("merge", "--commit", "--squash", "-m", "D at last", loose)
        assert git(repo, "log", "-1", "--format=%s %an").strip() == "D at last Test"
        for wrong in (("merge", "nobody"), ("merge", "--into", "no-such", third), ("merge", "--repo", "/", third)):
            assert f.run(*wrong, check=False).returncode in (4, 5)
        assert f.run("rm", loose, check=False).returncode == 0

        shutil.rmtree(f.row(third)["worktree"])
        gone = f.run("merge", third, check=False)
        assert (gone.returncode, f"watchfloor merge --no-checks {third}" in gone.stderr) == (5, True)
        f.run("merge", "--no-checks", third)
        assert (repo / "c.txt").read_text() == "work\n"
        assert f.violations() == []


def test_work_that_goes_on_after_it_was_squashed_and_a_person_who_does_not_wait() -> None:
    with fleet() as f:
        repo = f.repository()
        turns = [[work("a.txt", f"part{number}")] for number in (1, 2)]
        sid = f.launch(play(turns[0], "Done.", turns[1], "Done."), checks=(HELD,), name="parts")
        f.wait_state(sid, "done")
        f.run("merge", "--squash", sid)
        git(repo, "reset", "-q", "--keep", "HEAD@{1}")
        f.run("merge", "--squash", "-m", "Again", sid)
        (repo / "hold").write_text("")
        git(repo, "add", "hold")
        git(repo, "commit", "-qm", "moved on")
        f.run("continue", sid, "go on")
        f.wait_event_count(sid, "session.ended", 2)
        f.wait_state(sid, "done")
        left = merge(f, sid, "--squash")
        waits = held(f, sid)
        left.send_signal(signal.SIGINT)
        said = left.communicate(timeout=60)[0]
        assert (left.returncode, "goes on without you" in said) == (130, True)
        waits.unlink()
        wait_for("the merge", lambda: outcome(f, sid) == m.MERGED)
        assert (repo / "a.txt").read_text() == "part2\n"
        assert git(repo, "log", "--format=%s").split("\n")[1:3] == ["moved on", "Again"]
        assert f.violations() == []


def test_two_at_once_and_a_kill_in_the_middle() -> None:
    with fleet() as f:
        repo = f.repository()
        one, two = (
            f.launch(play([work(f"{name}.txt")], "Done."), checks=(HELD,), name=name) for name in ("one", "two")
        )
        for sid in (one, two):
            f.wait_state(sid, "done")
        (repo / "hold").write_text("")
        git(repo, "add", "hold")
        git(repo, "commit", "-qm", "moved on")
        before = main_of(repo)
        merges = {sid: merge(f, sid) for sid in (one, two)}
        waits = {sid: held(f, sid) for sid in (one, two)}
        assert main_of(repo) == before
        waits[one].unlink()
        assert merges[one].wait(60) == 0, merges[one].communicate()
        winner = main_of(repo)
        waits[two].unlink()
        said = merges[two].communicate(timeout=60)[0]
        assert (merges[two].returncode, "moved" in said) == (1, True), said
        assert main_of(repo) == winner
        assert outcome(f, two) == m.REFUSED

        doomed = merge(f, two)
        held(f, two)
        supervisor = f.supervisor_pid()
        kill(supervisor)
        doomed.communicate(timeout=60)
        assert doomed.returncode == 3
        f.run("supervisor", "start")
        wait_for("the merge to be settled", lambda: outcome(f, two) == m.BROKEN_OFF)
        assert (main_of(repo), git(repo, "status", "--porcelain")) == (winner, "")
        wait_for("its keeper to leave", lambda: f.row(two)["state"] == "done" and not f.state(two).calls.open)
        last = merge(f, two)
        held(f, two).unlink()
        assert last.wait(60) == 0, last.communicate()
        assert (repo / "two.txt").exists()
        assert git(repo, "for-each-ref", "refs/watchfloor/merge") == ""
        assert not (f.folders.session(two).root / "merge").exists()
        assert f.violations() == []


def test_a_keeper_that_is_killed_in_a_merge_leaves_it_broken_off_and_not_under_way() -> None:
    with fleet() as f:
        repo = f.repository()
        sid = f.launch(play([work("one.txt")], "Done."), checks=(HELD,), name="one")
        f.wait_state(sid, "done")
        (repo / "hold").write_text("")
        git(repo, "add", "hold")
        git(repo, "commit", "-qm", "moved on")
        before = main_of(repo)
        doomed = merge(f, sid)
        held(f, sid)
        kill(f.keeper_pid(sid))
        said = doomed.communicate(timeout=60)[0]
        assert (doomed.returncode, "the merge was broken off" in said) == (5, True), said
        wait_for("its end on record", lambda: outcome(f, sid) == m.BROKEN_OFF)
        wait_for("its keeper to leave", lambda: f.row(sid)["state"] == "done" and not f.state(sid).calls.open)
        assert (main_of(repo), git(repo, "status", "--porcelain")) == (before, "")
        assert not (f.folders.session(sid).root / "merge").exists()
        last = merge(f, sid)
        held(f, sid).unlink()
        assert last.wait(60) == 0, last.communicate()
        assert f.violations() == []

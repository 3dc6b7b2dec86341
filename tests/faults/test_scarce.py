"""A supervisor without a file to open: its sessions wait and say so, nobody is asked, nothing fails, and all go on."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

from harness.events import types as t
from harness.protocol.client import Client, SupervisorError
from harness.protocol.connection.transport import UnixSocket
from harness.workspace.git.run import open_repository
from tests.fleetlib import COMMAND, Fleet, fleet, make_repository, play, wait_for

pytestmark = pytest.mark.sandbox
BEGUN = ("exec", {"argv": ["sh", "-c", "touch begun; while [ -e notes.txt ]; do sleep 0.02; done"]})
WORK = play([BEGUN], [("write_file", {"path": "made.txt", "content": "made\n"})], "Done.")
NONE = 3
"""Only those that every process begins with."""
ENOUGH = 4096
CHECK = "test -e made.txt"


def limit(pid: int, files: int) -> None:
    """The soft limit of a process on open files; those that are open stay so."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, hard))


def test_a_low_limit_of_the_shell_is_raised_as_far_as_it_may_be() -> None:
    with fleet() as f:
        command = ["prlimit", "--nofile=200:4096", COMMAND, "supervisor", "start"]
        subprocess.run(command, env=f.env, check=True, capture_output=True)
        assert resource.prlimit(f.supervisor_pid(), resource.RLIMIT_NOFILE) == (4096, 4096)


def test_where_too_few_files_may_ever_be_open_nothing_is_started() -> None:
    with fleet() as f:
        command = ["prlimit", "--nofile=64:64", COMMAND, "supervisor", "start"]
        done = subprocess.run(command, env=f.env, capture_output=True, text=True, timeout=90)
        assert done.returncode == 3
        assert "only 64 files may be open here, and calls need 128; raise that (ulimit -n)" in done.stderr
        f.run("supervisor", "start")


def test_a_repository_is_no_other_folder_for_want_of_a_file(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo")
    open_repository(repo)  # what is imported for it is
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (NONE, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            open_repository(repo)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_without_a_file_to_open_a_session_waits_in_words_and_goes_on_by_itself() -> None:
    with fleet() as f:
        sid = f.launch(WORK, checks=(CHECK,))
        holding = _at_work(f, sid) / "notes.txt"
        pid = f.supervisor_pid()
        with Client(UnixSocket(f.folders.supervisor_socket)) as client:
            limit(pid, NONE)
            holding.unlink()
            wait_for("words for what it lacks", lambda: "no open file" in _detail(client, sid))
            assert client.call("approvals")["approvals"] == []
            limit(pid, ENOUGH)
        f.wait_state(sid, "done")
        _launched_meanwhile(f)
        assert not [r for r in f.records(sid) if isinstance(r.body, t.ApprovalRequested)]
        assert f.violations() == []


def test_a_launch_without_a_file_to_open_is_refused_in_words() -> None:
    with fleet() as f:
        f.run("ls")
        pid = f.supervisor_pid()
        asked = {"repo": str(f.repository()), "goal": play("Done.")}
        with Client(UnixSocket(f.folders.supervisor_socket)) as client:
            limit(pid, NONE)
            with pytest.raises(SupervisorError) as refused:
                client.call("launch", **asked)
            limit(pid, ENOUGH)
        assert refused.value.code == "scarce"
        assert "no open file" in str(refused.value)
        assert "ulimit -n" in str(refused.value)
        _launched_meanwhile(f)


def test_a_keeper_without_a_file_to_open_holds_its_call_and_loses_nothing() -> None:
    with fleet() as f:
        sid = f.launch(WORK, checks=(CHECK,))
        holding = _at_work(f, sid) / "notes.txt"
        pid = f.keeper_pid(sid)
        at_work = _children(pid)
        limit(pid, NONE)
        holding.unlink()
        wait_for("the keeper to hear of the call's end", lambda: at_work - _children(pid))
        assert f.requests() == []
        limit(pid, ENOUGH)
        f.wait_state(sid, "done")
        assert f.keeper_pid(sid) == pid
        records = [r.body for r in f.records(sid)]
        early = {b.call_id for b in records if isinstance(b, t.ToolProposed) and b.before_work}
        ends = [b for b in records if isinstance(b, t.ToolEnded) and b.call_id not in early]
        assert [end.status for end in ends] == ["ok"] * 3, "the two calls and the check, each once"
        assert f.violations() == []


def _at_work(f: Fleet, sid: str) -> Path:
    """The worktree of a session whose first call runs."""
    f.wait_event(sid, "tool.started")
    worktree = Path(f.row(sid)["worktree"])
    wait_for("the call to be at work", (worktree / "begun").exists)
    return worktree


def _children(pid: int) -> set[str]:
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def _detail(client: Client, sid: str) -> str:
    return str(client.call("session", sid=sid)["row"]["detail"])


def _launched_meanwhile(f: Fleet) -> None:
    """What was broken off for want of files left nothing behind that holds up the next."""
    f.wait_state(f.launch(play("Done.")), "done")

"""A supervisor without a file to open: its sessions wait and say so, nobody is asked, nothing fails, and all go on."""

from __future__ import annotations

import os
import resource
import subprocess

import pytest

from harness.events import types as t
from harness.protocol.client import Client
from harness.protocol.transport import UnixSocket
from tests.fleetlib import COMMAND, HOLD, Fleet, fleet, play, wait_for

pytestmark = pytest.mark.fence
WORK = play([HOLD], [("write_file", {"path": "made.txt", "content": "made\n"})], "Done.")
CHECK = "test -e made.txt"


def limit(pid: int, files: int) -> None:
    """The soft limit of a process on open files."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, hard))


def test_a_low_limit_of_the_shell_is_raised_as_far_as_it_may_be() -> None:
    with fleet() as f:
        command = ["prlimit", "--nofile=200:4096", COMMAND, "supervisor", "start"]
        subprocess.run(command, env=f.env, check=True, capture_output=True)
        assert resource.prlimit(f.supervisor_pid(), resource.RLIMIT_NOFILE) == (4096, 4096)


@pytest.mark.parametrize("spare", [0, 2, 5])
def test_without_a_file_to_open_a_session_waits_in_words_and_goes_on_by_itself(spare: int) -> None:
    with fleet() as f:
        sid = f.launch(WORK, checks=(CHECK,))
        f.wait_event(sid, "tool.started")
        pid = f.supervisor_pid()
        with Client(UnixSocket(f.folders.supervisor_socket)) as client:
            limit(pid, len(os.listdir(f"/proc/{pid}/fd")) + spare)
            f.release(sid)
            wait_for("words for what it lacks", lambda: "no open file" in _detail(client, sid))
            assert client.call("approvals")["approvals"] == []
            limit(pid, 4096)
        f.wait_state(sid, "done")
        _launched_meanwhile(f)
        assert not [r for r in f.records(sid) if isinstance(r.body, t.ApprovalRequested)]
        assert f.violations() == []


def _detail(client: Client, sid: str) -> str:
    return str(client.call("session", sid=sid)["row"]["detail"])


def _launched_meanwhile(f: Fleet) -> None:
    """What was broken off for want of files left nothing behind that holds up the next."""
    f.wait_state(f.launch(play("Done.")), "done")

"""A stop that is acknowledged while the session's brain is still being forked: that brain gets no lease."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from harness.linux.proc import descendants
from tests.fleetlib import Fleet, fleet, play, wait_for

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(180)]


def brain_nursery(f: Fleet) -> int:
    def look() -> int | None:
        of_supervisor = ((pid, Path(f"/proc/{pid}/cmdline").read_bytes()) for pid in descendants(f.supervisor_pid()))
        return next((pid for pid, command in of_supervisor if b"harness.brain.brain_fork_server" in command), None)

    return wait_for("the brains' fork server", look)


def test_no_lease_follows_a_stop() -> None:
    with fleet() as f:
        first = f.launch(play("Done."), name="first")
        f.wait_state(first, "done")
        fork_server = brain_nursery(f)
        os.kill(fork_server, signal.SIGSTOP)
        try:
            sid = f.launch(play("Done."), name="second")
            f.wait_event(sid, "session.created")
            f.run("stop", sid)
        finally:
            os.kill(fork_server, signal.SIGCONT)
        f.wait_state(sid, "stopped")
        third = f.launch(play("Done."), name="third")
        f.wait_state(third, "done")  # what would be woken by mistake would be by now
        types = [r.type for r in f.records(sid)]
        assert "lease.granted" not in types[types.index("session.desired") :], types
        assert f.violations() == []

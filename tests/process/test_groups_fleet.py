"""Supervisor, keepers and brains are behind the session of the screen, and an agent's calls behind them."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest

from harness.linux import groups
from harness.linux.proc import descendants
from harness.sandbox.limits import Limits
from tests.autogroup import grouping
from tests.fleetlib import fleet, play, wait_for


def group(pid: int) -> tuple[int, int]:
    """Number and nice value of the group that a process is in."""
    found = re.fullmatch(r"/autogroup-(\d+) nice (-?\d+)\n", Path(f"/proc/{pid}/autogroup").read_text())
    assert found is not None
    return int(found[1]), int(found[2])


def sleeps(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
    return False


@pytest.mark.sandbox
@pytest.mark.skipif(not grouping(), reason="this kernel does not group processes by session")
@pytest.mark.skipif(os.geteuid() != 0, reason="of others the kernel takes ten values a second, for all tests at once")
def test_ours_are_behind_the_screen_and_calls_behind_ours() -> None:
    with fleet() as f:
        sids = [f.launch(play([("exec", {"argv": ["sh", "-c", "sleep 600 & wait"]})], "Done.")) for _ in range(2)]
        calls = {}
        for sid in sids:
            f.wait_event(sid, "tool.started")
            keeper = f.keeper_pid(sid)
            calls[sid] = wait_for("the command", lambda k=keeper: next((p for p in descendants(k) if sleeps(p)), 0))
        ours = {"supervisor": group(f.supervisor_pid())}
        for sid in sids:
            ours[f"keeper of {sid}"] = group(f.keeper_pid(sid))
            ours[f"brain of {sid}"] = group(f.brain_pid(sid))
        assert {nice for _, nice in ours.values()} == {groups.OURS}, ours
        assert len(set(ours.values())) == 3, "the keepers are in one group, the brains in another"
        for pid in calls.values():
            wait_for("a call's group behind ours", lambda p=pid: group(p)[1] == Limits().nice)
        assert len({group(pid) for pid in calls.values()}) == 2, "each call has a group of its own"

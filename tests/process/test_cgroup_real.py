"""A real cgroup v2, where this machine lets us make one: a process enters through the descriptor, and one write ends
all of them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.linux import proc
from harness.sandbox import cgroups, fork_exec, rlimits
from harness.sandbox.cgroups import Group
from harness.sandbox.limits import Limits
from tests.process.keeperlib import wait_until

BOMBLET = """
import os, signal
from harness.sandbox import rlimits
rlimits.join_group(True)
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        break
signal.pause()
"""


@pytest.fixture
def call() -> Iterator[Group]:
    mount = cgroups.mount_point(Path("/proc/self/mountinfo").read_text())
    if mount is None:
        pytest.skip("this machine has no cgroup v2 hierarchy")
    group = cgroups.locate(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    made = cgroups.of_call(group, f"test{os.getpid()}", "c1.0")
    try:
        made.path.parent.mkdir()
    except OSError as exc:
        pytest.skip(f"no cgroup can be made here: {exc}")
    yield made
    made.kill()
    made.remove()


def members(group: Group) -> list[int]:
    return [int(pid) for pid in (group.path / "cgroup.procs").read_text().split()]


def test_a_call_lives_and_dies_with_its_group(call: Group) -> None:
    entry = call.create(Limits())
    null = os.open(os.devnull, os.O_RDWR)
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    leader = fork_exec.spawn(
        [sys.executable, "-c", BOMBLET], environment, {0: null, 1: null, 2: 2, rlimits.GROUP_FD: entry}
    )
    os.close(entry)
    os.close(null)
    inside = wait_until("all six processes are in the group", lambda: len(found := members(call)) == 6 and found)
    assert leader in inside
    assert os.getpid() not in inside
    call.kill()
    _, status = os.waitpid(leader, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    wait_until("every process of the group is gone", lambda: all(proc.identify(pid) is None for pid in inside))
    call.remove()
    assert not call.path.parent.exists()


def test_what_a_dead_keeper_left_is_taken_away_by_the_next_call(call: Group) -> None:
    os.close(call.create(Limits()))
    following = Group(call.path.with_name("call-c2.0"))
    os.close(following.create(Limits()))
    assert not call.path.exists()
    following.remove()
    assert not following.path.parent.exists()

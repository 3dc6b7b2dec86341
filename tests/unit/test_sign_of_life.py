"""By what a guardian knows that its supervisor hangs, on a real process that does nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from harness.linux.proc import stat
from harness.supervisor.sign_of_life import IDLE_S, LOOK_S, SILENT_S, STOPPED_S, Watched, give
from tests.fleetlib import wait_for

LOOKS = int(IDLE_S / LOOK_S)


@pytest.fixture
def idle() -> Iterator[subprocess.Popen[bytes]]:
    """A process that sleeps, and has begun to."""
    with subprocess.Popen(["sleep", "600"]) as child:
        try:
            wait_for("it to sleep", lambda: (stat(child.pid) or ["R"])[0] == "S")
            yield child
        finally:
            child.kill()


@pytest.fixture
def sign() -> Iterator[int]:
    fd = os.eventfd(0, os.EFD_NONBLOCK)
    try:
        yield fd
    finally:
        os.close(fd)


def test_one_that_does_nothing_hangs_after_half_a_minute_of_looks(idle: subprocess.Popen[bytes], sign: int) -> None:
    watched = Watched(idle.pid, sign)
    said = [watched.hangs() for _ in range(LOOKS + 1)]
    assert said == [""] * LOOKS + ["gave no sign of life for 35 s"]
    assert watched.hangs() == "", "one that was ended has a while to go"


def test_each_sign_begins_the_time_anew(idle: subprocess.Popen[bytes], sign: int) -> None:
    watched = Watched(idle.pid, sign)
    for _ in range(3):
        assert [watched.hangs() for _ in range(LOOKS)] == [""] * LOOKS
        give(sign)
    assert watched.hangs() == ""


def test_a_sign_of_one_before_it_counts_for_nobody(idle: subprocess.Popen[bytes], sign: int) -> None:
    give(sign)
    watched = Watched(idle.pid, sign)
    assert any(watched.hangs() for _ in range(LOOKS + 1))


def test_one_that_somebody_stopped_has_longer(idle: subprocess.Popen[bytes], sign: int) -> None:
    watched = Watched(idle.pid, sign)
    idle.send_signal(signal.SIGSTOP)
    wait_for("it to be stopped", lambda: (stat(idle.pid) or [""])[0] == "T")
    said = [watched.hangs() for _ in range(int(STOPPED_S / LOOK_S) + 1)]
    assert said == [""] * (len(said) - 1) + ["was stopped for 65 s"]


def test_one_at_work_has_five_minutes(sign: int) -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as child:
        watched = Watched(child.pid, sign)
        said = []
        while not said or not said[-1]:
            before = stat(child.pid)
            wait_for("it to have worked", lambda at=before: stat(child.pid) != at)
            said.append(watched.hangs())
        child.kill()
    assert len(said) == SILENT_S / LOOK_S


def test_one_that_is_gone_or_watched_by_nobody(sign: int) -> None:
    with subprocess.Popen(["true"]) as child:
        pass
    assert Watched(child.pid, sign).hangs() == ""
    give(-1)

"""A keeper says what is: nothing is "not run" that runs, nothing stays in memory that is over, everybody is answered while it looks at files."""

from __future__ import annotations

import contextlib
import gc
import re
import signal
import subprocess
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.session.loop import Loop
from tests.process.keeperlib import Keepers, action, allowed, keepers, strace_of_a_keeper, wait_until


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    (tmp_path / "work").mkdir()
    with keepers(tmp_path) as fleet:
        yield fleet


@contextlib.contextmanager
def failing(pid: int, inject: str) -> Iterator[None]:
    """One kind of system call of a living keeper fails meanwhile."""
    tracer = subprocess.Popen([strace_of_a_keeper(), "-q", "-p", str(pid), "-e", f"inject={inject}", "-o", "/dev/null"], stderr=subprocess.PIPE)
    try:
        wait_until("the tracer is attached", lambda: f"TracerPid:\t{tracer.pid}" in Path(f"/proc/{pid}/status").read_text())
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(10)


def test_a_call_without_a_descriptor_of_its_process_is_run_and_its_end_is_seen(fleet: Keepers, tmp_path: Path) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    link.append(*allowed(action(tmp_path / "work", "c0.0", ["sh", "-c", "echo ran >> once; exit 3"])))
    with failing(pid, "pidfd_open:error=EMFILE"):
        assert link.call("execute", call_id="c0.0")["started"] is True
        wait_until("the call has ended", lambda: "tool.ended" in fleet.types())
    ended = next(record["data"] for record in fleet.log() if record["type"] == "tool.ended")
    assert (ended["status"], ended["exit_code"]) == ("error", 3)
    assert (tmp_path / "work" / "once").read_text() == "ran\n"
    link.append(*allowed(action(tmp_path / "work", "c9.0", ["sh", "-c", "echo again >> once"])))
    assert link.call("execute", call_id="c9.0")["started"] is True
    wait_until("the next call has ended", lambda: fleet.types().count("tool.ended") == 2)


def test_what_read_file_says_it_shows_is_what_the_record_holds(fleet: Keepers, tmp_path: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    (tmp_path / "work" / "long").write_text("".join(f"this is line {n}\n" for n in range(1, 5001)))
    offset = 1
    for turn in range(3):
        call = f"c{10 * turn}.0"
        given = {"path": "long", "offset": offset}
        what = action(tmp_path / "work", call, ["read"], access="fence", tool="read_file", kind="file", path="long", input=given)
        link.append(*allowed(what))
        assert link.call("execute", call_id=call)["started"] is True
        wait_until("the call has ended", lambda turn=turn: fleet.types().count("tool.ended") == turn + 1)
        ended = next(record["data"] for record in reversed(fleet.log()) if record["type"] == "tool.ended")
        assert ended["status"] == "ok", ended
        *lines, last = ended["preview"].rstrip().split("\n")
        found = re.fullmatch(r"\(lines (\d+) to (\d+) of 5000; go on with offset (\d+)\)", last)
        assert found is not None, last
        first, end, offset = (int(number) for number in found.groups())
        assert [line.strip() for line in lines] == [f"{n}\tthis is line {n}" for n in range(first, end + 1)]
        assert offset == end + 1


def test_a_cancelled_timer_keeps_nothing(tmp_path: Path) -> None:
    """A call's time limit is an hour away when it ends after a second."""
    loop = Loop(tmp_path / "sock")

    class Call:
        def late(self) -> None:
            raise AssertionError("cancelled")

    kept = []
    try:
        for _ in range(1000):
            call = Call()
            kept.append(weakref.ref(call))
            loop.call_later(3600, call.late).cancel()
            del call
        gc.collect()
        assert not [ref for ref in kept if ref() is not None]
        assert len(loop._timers) < 50, "what was cancelled does not pile up either"
        ran: list[int] = []
        loop.on_frame = loop.on_closed = lambda *_: None
        loop.more = lambda: False
        loop.after_turn = lambda: None
        loop.call_later(0.01, lambda: (ran.append(1), setattr(loop, "stopping", True))[0])
        loop.run()
        assert ran == [1]
    finally:
        loop.stopping = True

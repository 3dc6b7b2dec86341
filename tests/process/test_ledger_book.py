"""The ledger on disk: durable before it is granted, rebuilt after a kill, idempotent, and honest when the disk
fails.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.agents.supervisor_requests import Reserve
from harness.budget.ledger import CapReached, NotReserved
from harness.domain.cap import Cap
from harness.eventlog.reader import read, verify
from harness.eventlog.writer import LogWriter
from harness.events.types import Caps, Usage
from harness.protocol.config.sections import CapsConfig
from harness.supervisor.money.reservations import DurableLedger, LedgerUnavailable

FREE = CapsConfig(day_usd=None)
MODEL = "claude-sonnet-5-5"


async def opened(folder: Path, limits: CapsConfig = FREE) -> DurableLedger:
    return await DurableLedger.open(folder / "ledger", lambda: limits)


async def test_a_reservation_is_on_disk_when_it_is_granted_and_settles_once(tmp_path: Path) -> None:
    books = await opened(tmp_path)
    made = await books.reserve("s", Reserve("q1", 1, MODEL, 1000, 1000), Caps())
    assert [b'"type":"ledger.reserved"' in line for line in read(tmp_path / "ledger")] == [True]
    assert made.nano == 1000 * 2500 + 1000 * 10_000
    assert books.session("s").reserved_nano == made.nano
    first, second = await asyncio.gather(
        *(books.settle(made.reservation, Usage(input=1000, output=10)) for _ in range(2))
    )
    assert first == second == await books.settle(made.reservation, Usage(input=999_999))
    assert first.nano == 1000 * 2000 + 10 * 10_000
    assert await books.settlement(made.reservation) == first, "whoever asks what a lost reply cost is told"
    assert (books.session("s").spent_nano, books.session("s").reserved_nano) == (first.nano, 0)
    assert len(list(read(tmp_path / "ledger"))) == 2
    await books.close()


async def test_the_same_attempt_asked_again_gets_the_same_reservation(tmp_path: Path) -> None:
    books = await opened(tmp_path)
    one, two = await asyncio.gather(*(books.reserve("s", Reserve("q", 1, MODEL, 10, 10), Caps()) for _ in range(2)))
    other = await books.reserve("s", Reserve("q", 2, MODEL, 10, 10), Caps())
    assert one.reservation == two.reservation != other.reservation
    await books.close()


async def test_a_grant_whose_answer_was_lost_is_let_go_before_the_next_attempt(tmp_path: Path) -> None:
    """The brain of the lease never heard of it, so its log names it nowhere; what is asked for again stays."""
    books = await opened(tmp_path)
    log = tmp_path / "sessions" / "s" / "log"
    LogWriter.open(log, "s").close()
    lost = await books.reserve("s", Reserve("q1", 1, MODEL, 1000, 100), Caps(), gen=3)
    other = await books.reserve("s", Reserve("q0", 1, MODEL, 1000, 100), Caps(), gen=2)
    await books.forsake("s", log, Reserve("q1", 1, MODEL, 1000, 100), 3)
    assert books.session("s").reserved_nano == lost.nano + other.nano
    await books.forsake("s", log, Reserve("q2", 1, MODEL, 1000, 100), 3)
    assert (books.session("s").reserved_nano, books.session("s").spent_nano) == (other.nano, 0)
    assert books.session("s").requests == 1
    await books.close()


async def test_a_restart_finds_everything_again(tmp_path: Path) -> None:
    books = await opened(tmp_path)
    kept = [await books.reserve("s", Reserve(f"q{n}", 1, MODEL, 1000, 100), Caps()) for n in range(4)]
    await books.settle(kept[0].reservation, Usage(input=10))
    await books.settle(kept[1].reservation, None)
    before = (books.session("s"), books.fleet(), books.days())
    await books.close()
    books = await opened(tmp_path)
    assert (books.session("s"), books.fleet(), books.days()) == before
    # An unknown outcome may still be reconciled, an open one settled, a settled one never again.
    await books.settle(kept[1].reservation, Usage(input=1))
    await books.settle(kept[2].reservation, Usage(input=1))
    with pytest.raises(NotReserved):
        await books.settle(kept[0].reservation, Usage(input=1))
    assert await books.conclude("s", tmp_path / "sessions" / "s" / "log") == 1
    assert books.session("s").reserved_nano == 0
    await books.close()


async def test_a_raised_cap_lets_the_next_request_through_and_survives(tmp_path: Path) -> None:
    need = 1000 * 2500 + 100 * 10_000
    limits = CapsConfig(day_usd=need)
    books = await opened(tmp_path, limits)
    await books.reserve("s", Reserve("q1", 1, MODEL, 1000, 100), Caps())
    with pytest.raises(CapReached) as caught:
        await books.reserve("s", Reserve("q2", 1, MODEL, 1000, 100), Caps())
    assert (caught.value.cap, caught.value.used, caught.value.need) == ("day.usd", need, need)
    with pytest.raises(ValueError, match="would not raise"):
        books.raising(Cap.DAY_USD, need, "d1")
    raise_ = books.raising(Cap.DAY_USD, 2 * need, "d1")
    await asyncio.gather(*(books.follow(raise_) for _ in range(3)))
    assert sum(b"ledger.raised" in line for line in read(tmp_path / "ledger")) == 1
    await books.reserve("s", Reserve("q2", 1, MODEL, 1000, 100), Caps())
    await books.close()
    books = await opened(tmp_path, limits)
    assert books.limits(Caps()).day_usd == 2 * need
    await books.close()


async def test_finishing_up_gets_its_allowance_and_no_more(tmp_path: Path) -> None:
    books = await opened(tmp_path)
    need = 1000 * 2500 + 100 * 10_000
    caps = Caps(usd_nano=need // 2, tokens=1)
    with pytest.raises(CapReached):
        await books.reserve("s", Reserve("q", 1, MODEL, 1000, 100), caps)
    await books.reserve("s", Reserve("q", 1, MODEL, 1000, 100), caps, allowance_nano=need)
    with pytest.raises(CapReached):
        await books.reserve("s", Reserve("q2", 1, MODEL, 1000, 100), caps, allowance_nano=need)
    await books.close()


async def test_many_waiting_records_share_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    books = await opened(tmp_path)
    flushes = 0
    commit = LogWriter.commit

    def counted(self: LogWriter, sync: bool) -> None:
        nonlocal flushes
        flushes += 1
        commit(self, sync)

    monkeypatch.setattr(LogWriter, "commit", counted)
    await asyncio.gather(*(books.reserve(f"s{n}", Reserve("q", 1, MODEL, 1, 1), Caps()) for n in range(64)))
    assert flushes <= 4
    await books.close()


async def test_a_full_disk_grants_nothing_and_gives_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    books = await opened(tmp_path)
    held = await books.reserve("s", Reserve("q0", 1, MODEL, 10, 10), Caps())

    write = os.write

    def full(fd: int, data: bytes) -> int:
        if data.startswith(b'{"v":'):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(LedgerUnavailable) as caught:
            await books.reserve("s", Reserve("q", 1, MODEL, 1000, 1000), Caps())
        with pytest.raises(LedgerUnavailable):
            await books.settle(held.reservation, Usage(input=1))
    assert caught.value.code == "no_space"
    assert books.session("s").reserved_nano == held.nano
    await books.reserve("s", Reserve("q", 1, MODEL, 1000, 1000), Caps())
    await books.settle(held.reservation, Usage(input=1))
    await books.close()
    assert verify(tmp_path / "ledger").records == 3


async def test_after_a_failed_sync_the_disk_says_what_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    books = await opened(tmp_path)
    held = await books.reserve("s", Reserve("q0", 1, MODEL, 10, 10), Caps())

    def fails(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fails)
        with pytest.raises(LedgerUnavailable) as caught:
            await books.reserve("s", Reserve("q1", 1, MODEL, 1000, 1000), Caps())
    assert caught.value.code == "ledger"
    assert books.problem
    again = await books.reserve("s", Reserve("q1", 1, MODEL, 1000, 1000), Caps())
    await books.settle(held.reservation, Usage(input=1))
    assert not books.problem
    seen = (books.session("s"), books.fleet(), books.holding("s"))
    assert again.reservation in seen[2]
    await books.close()
    assert verify(tmp_path / "ledger").records >= 3
    books = await opened(tmp_path)
    assert (
        books.session("s"),
        books.fleet(),
        books.holding("s"),
    ) == seen, "what it counts is what a new supervisor would count"
    await books.close()


async def test_a_defect_while_writing_leaves_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it is: who asked is refused, the exception is seen, and what was half begun is not written later."""
    books = await opened(tmp_path)
    append = LogWriter.append
    times = 0

    def broken(self: LogWriter, *args: Any, **named: Any) -> int:
        nonlocal times
        times += 1
        if times == 2:
            raise AttributeError("a defect")
        return append(self, *args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(LogWriter, "append", broken)
        asked = [books.reserve("s", Reserve(f"q{n}", 1, MODEL, 1000, 1000), Caps()) for n in range(3)]
        ended = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 60)
    refused = [exc for exc in ended if isinstance(exc, LedgerUnavailable)]
    assert refused
    assert "a defect" in str(refused[0])
    assert "AttributeError" in capsys.readouterr().err
    again = [await books.reserve("s", Reserve(f"q{n}", 1, MODEL, 1000, 1000), Caps()) for n in range(3)]
    assert not books.problem
    assert set(books.holding("s")) == {r.reservation for r in again}
    await books.close()
    books = await opened(tmp_path)
    assert set(books.holding("s")) == {r.reservation for r in again}
    await books.close()


async def test_a_cancelled_brain_leaves_its_reservation_counted(tmp_path: Path) -> None:
    books = await opened(tmp_path)
    task = asyncio.create_task(books.reserve("s", Reserve("q", 1, MODEL, 1000, 1000), Caps()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await books.close()
    books = await opened(tmp_path)
    assert books.session("s").reserved_nano > 0
    await books.close()


async def test_a_busy_ledger_refuses(tmp_path: Path) -> None:
    books = await opened(tmp_path)
    for n in range(3):
        await books.reserve("s", Reserve(f"q{n}", 1, MODEL, 1, 1), Caps())
    with pytest.raises(LedgerUnavailable, match="open for writing"):
        await opened(tmp_path)
    await books.close()


CHILD = """
import asyncio, sys
from pathlib import Path
from harness.agents.supervisor_requests import Reserve
from harness.events.types import Caps
from harness.protocol.config.sections import CapsConfig
from harness.supervisor.money.reservations import DurableLedger

async def main():
    books = await DurableLedger.open(Path(sys.argv[1]), lambda: CapsConfig(day_usd=None))
    async def one(n):
        made = await books.reserve("s", Reserve(f"q{n}", 1, "claude-sonnet-5-5", 100, 100), Caps())
        print(made.reservation, flush=True)
    for start in range(0, 100000, 8):
        await asyncio.gather(*(one(start + n) for n in range(8)))

asyncio.run(main())
"""


async def test_after_kill_9_every_granted_reservation_is_there(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "ledger")], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    granted = [child.stdout.readline().strip() for _ in range(200)]
    os.kill(child.pid, signal.SIGKILL)
    granted += [line.strip() for line in child.stdout if line.endswith("\n")]
    child.wait()
    books = await opened(tmp_path)
    text = b"".join(read(tmp_path / "ledger")).decode()
    assert all(name in text for name in granted)
    assert books.session("s").reserved_nano >= len(granted) * (100 * 2500 + 100 * 10_000)
    await books.close()


async def test_a_jump_of_the_clock_opens_no_new_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    books = await opened(tmp_path)
    day = books.today().day
    real = time.time
    for days in (2, -2):
        monkeypatch.setattr(time, "time", lambda days=days: real() + days * 86400)
        assert books.today().day == day
        assert books.clock.jumped
    await books.close()

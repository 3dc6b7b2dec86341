"""A log read through the socket: record for record what the disk says, in bounded memory, come what may."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.client.remote_log import AskedIndex
from harness.eventlog.framing import LogError
from harness.eventlog.writer import LogWriter
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.paths import SessionFolder
from harness.supervisor.base.errors import OpError
from harness.supervisor.serving import log_reading
from widgets.log.log_rows import DiskIndex, Needle, Rows

SID = "testsess00"
PIECE = 4096


class Far:
    """A supervisor that answers from its own disk, and counts what it was asked."""

    def __init__(self, root: Path) -> None:
        self.folder = SessionFolder(root / "s", root / "sock")
        self.log = LogWriter.open(self.folder.log, SID, segment_bytes=20_000)
        self.asked = 0
        self.down = False
        self.news = asyncio.Event()

    def write(self, count: int) -> None:
        for _ in range(count):
            text = f"note {self.log.head + 1} " + "ö" * (self.log.head % 300)
            self.log.append("harness.note", {"level": "info", "text": text}, actor="t")
        self.log.commit(sync=False)

    async def ask(self, op: str, **given: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        if self.down:
            raise Unreachable("nobody is there")
        self.asked += 1
        try:
            piece = log_reading.lines(self.folder, given["from_seq"], min(PIECE, given["most_bytes"]))
        except OpError as exc:
            raise SupervisorError(exc.code, exc.message, exc.hint) from exc
        return msgspec.structs.asdict(piece)

    def index(self, kept_bytes: int = 1 << 20) -> AskedIndex:
        return AskedIndex(SID, self.ask, self.news.set, kept_bytes=kept_bytes)


async def told(far: Far, index: AskedIndex) -> None:
    """Look until nothing new comes."""
    async with asyncio.timeout(20):
        while index.extend() or len(index) != far.log.head + 1:
            await asyncio.sleep(0)
    index.arrived()


async def here(far: Far, index: AskedIndex, first: int, stop: int) -> list[bytes]:
    async with asyncio.timeout(20):
        while not index.has(first, stop):
            far.news.clear()
            await far.news.wait()
    return index.lines(first, stop)


@settings(max_examples=20)
@given(
    wrote=st.lists(st.integers(0, 60), min_size=1, max_size=4),
    looks=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 70)), max_size=6),
    kept=st.sampled_from([1, 9000, 1 << 20]),
)
def test_it_says_what_the_disk_says(
    tmp_path_factory: pytest.TempPathFactory, wrote: list[int], looks: list[tuple[int, int]], kept: int
) -> None:
    async def run() -> None:
        far = Far(tmp_path_factory.mktemp("far"))
        index = far.index(kept)
        for count in wrote:
            far.write(count)
            await told(far, index)
            disk = DiskIndex(far.folder.log)
            assert len(index) == len(disk)
            for first, size in looks:
                assert await here(far, index, first, first + size) == disk.lines(first, first + size)
            disk.close()
        index.close()
        far.log.close()

    asyncio.run(run())


async def test_the_end_of_a_long_log_is_shown_without_the_rest(tmp_path: Path) -> None:
    far = Far(tmp_path)
    far.write(5000)
    index = far.index()
    await told(far, index)
    asked = far.asked
    assert asked <= 3
    assert (await here(far, index, 4960, 5000))[-1].startswith(b'{"v":1,"seq":4999,')
    assert far.asked - asked <= 12, "only what is looked at"


async def test_a_filter_and_a_search_wait_for_what_is_not_here_and_end_as_on_the_disk(tmp_path: Path) -> None:
    far = Far(tmp_path)
    far.write(700)
    far.log.append("user.message", {"text": "the needle", "origin": "human"}, actor="human")
    far.write(400)
    index = far.index(kept_bytes=1)
    await told(far, index)
    asked = Rows(lambda: index)
    disk = Rows(lambda: DiskIndex(far.folder.log))
    for rows in (asked, disk):
        rows.set_filter(frozenset({"talk"}))
        async with asyncio.timeout(20):
            while rows.scanned < 1:
                rows.step(1.0)
                await asyncio.sleep(0)
    assert [asked.seq_at(i) for i in range(len(asked))] == [disk.seq_at(i) for i in range(len(disk))] == [700]
    needle = Needle("THE NEEDLE")
    async with asyncio.timeout(20):
        for hit in asked.look(needle, 1100, forward=False):
            if hit is not None:
                break
            await asyncio.sleep(0)
    assert hit == 700


async def test_what_was_denied_while_nobody_answered_comes_when_somebody_does(tmp_path: Path) -> None:
    far = Far(tmp_path)
    far.write(300)
    index = far.index()
    await told(far, index)
    far.down = True
    assert not index.has(250, 260)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not index.has(250, 260)
    far.down = False
    far.write(5)
    await told(far, index)
    assert len(index) == 305
    assert len(await here(far, index, 250, 260)) == 10


async def test_a_damaged_record_stays_one_and_the_others_come(tmp_path: Path) -> None:
    far = Far(tmp_path)
    far.write(20)
    (file,) = far.folder.log.glob("*.jsonl")
    data = bytearray(file.read_bytes())
    data[data.index(b"note 7 ") + 2] ^= 1
    file.write_bytes(data)
    index = far.index()
    await told(far, index)
    lines = await here(far, index, 0, 20)
    assert [at for at, line in enumerate(lines) if not line] == [7]
    assert lines[8].startswith(b'{"v":1,"seq":8,')


async def test_records_that_were_taken_back_are_gone(tmp_path: Path) -> None:
    far = Far(tmp_path)
    far.write(20)
    index = far.index()
    await told(far, index)
    await here(far, index, 0, 20)
    far.log.close()
    (file,) = far.folder.log.glob("*.jsonl")
    data = file.read_bytes()
    file.write_bytes(data[: data.index(b'{"v":1,"seq":15,')])
    async with asyncio.timeout(20):
        while len(index) != 15:
            index.extend()
            await asyncio.sleep(0)
    with pytest.raises(IndexError):
        index.line(15)


async def test_a_removed_session_is_said(tmp_path: Path) -> None:
    async def gone(op: str, **given: Any) -> dict[str, Any]:
        raise SupervisorError("gone", "this session's folder is not there any more", "")

    came = asyncio.Event()
    index = AskedIndex(SID, gone, came.set)
    index.extend()
    await came.wait()
    with pytest.raises(LogError, match="not there any more"):
        index.extend()


async def test_what_was_written_while_it_asked_is_asked_for_too(tmp_path: Path) -> None:
    far = Far(tmp_path)
    far.write(3)
    asking = asyncio.Event()
    answer = asyncio.Event()

    async def slow(op: str, **given: Any) -> dict[str, Any]:
        reply = await far.ask(op, **given)
        asking.set()
        await answer.wait()
        return reply

    index = AskedIndex(SID, slow, far.news.set)
    await asking.wait()
    far.write(4)
    index.extend()  # as a row that changed has it done, once
    answer.set()
    await far.news.wait()
    assert index.extend() == 7


async def test_a_wish_of_whoever_is_told_that_records_came_is_not_lost(tmp_path: Path) -> None:
    far = Far(tmp_path)
    far.write(400)
    whole = asyncio.Event()

    def next_piece() -> None:
        """As a filter that goes on with the next block as soon as one is here."""
        index.extend()
        if len(index) and all(index.has(at, at + 40) for at in range(0, 400, 40)):
            whole.set()

    index = AskedIndex(SID, far.ask, next_piece)
    async with asyncio.timeout(20):
        await whole.wait()

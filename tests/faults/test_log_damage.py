"""Damage in several segments at once, as an ended session may show it: everything that reads a log says so, and nothing
else happens to its reader.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from harness.eventlog.framing import LogError
from harness.eventlog.index import OffsetIndex
from harness.eventlog.reader import read, verify
from harness.eventlog.tail import Tail
from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.projections import state_snapshots
from harness.projections.apply import fold
from harness.projections.state.session_state import SessionState

SID = "abcdefghij"


def ended(folder: Path) -> list[Path]:
    """The segments of the log of a session that is over."""
    log = LogWriter.open(folder / "log", SID, segment_bytes=3000)
    log.append(
        "session.intent",
        {"name": "n", "goal": "g", "repo": "/r", "branch": "b", "worktree": "/w", "model": "m"},
        actor="supervisor",
    )
    for i in range(80):
        log.append("harness.note", {"level": "info", "text": "x" * (i % 90)}, actor="brain")
        log.commit(sync=False)
    log.append("session.ended", {"outcome": "done"}, actor="brain")
    log.commit(sync=True)
    log.close()
    files = sorted((folder / "log").glob("*.jsonl"))
    assert len(files) >= 5
    state = fold(t.decode(line) for line in read(folder / "log"))
    chain = verify(folder / "log").hash
    state_snapshots.store(folder / "snapshots", state.seq, state_snapshots.encode(state, chain))
    return files


def flipped(*numbers: int) -> Callable[[list[Path]], None]:
    def damage(files: list[Path]) -> None:
        for number in numbers:
            data = bytearray(files[number].read_bytes())
            data[len(data) // 2] ^= 1
            files[number].write_bytes(data)

    return damage


def header(text: bytes, number: int) -> Callable[[list[Path]], None]:
    """A first line that is whole by its own checksum and says something else."""

    def damage(files: list[Path]) -> None:
        rest = files[number].read_bytes().partition(b"\n")[2]
        files[number].write_bytes(text + b',"_c":"%08x","_h":"%b"}\n' % (crc32(text), b"0" * 32) + rest)

    return damage


def gone(*numbers: int) -> Callable[[list[Path]], None]:
    def damage(files: list[Path]) -> None:
        for number in numbers:
            files[number].unlink()

    return damage


def written(content: bytes, *numbers: int) -> Callable[[list[Path]], None]:
    def damage(files: list[Path]) -> None:
        for number in numbers:
            files[number].write_bytes(content)

    return damage


def folder_in_place(files: list[Path]) -> None:
    files[2].unlink()
    files[2].mkdir()


def swapped(files: list[Path]) -> None:
    one = files[1].read_bytes()
    other = files[3].read_bytes()
    files[1].write_bytes(other)
    files[3].write_bytes(one)


DAMAGES: dict[str, Callable[[list[Path]], None]] = {
    "two flipped": flipped(1, 3),
    "all flipped": flipped(0, 1, 2, 3, 4),
    "first and last gone": gone(0, -1),
    "middle gone": gone(2),
    "last gone": gone(-1),
    "two empty": written(b"", 1, 3),
    "all empty": written(b"", 0, 1, 2, 3, 4),
    "two of zeros": written(bytes(5000), 1, -1),
    "no text": written(b"\xff\xfe\x00" * 900 + b"\n", 1, 3),
    "one long line": written(b"x" * 3_000_000, 2),
    "header without numbers": header(b'{"v":1,"segment":2', 1),
    "header with odd numbers": header(b'{"v":1,"segment":"two","sid":7,"prev":[],"format":1,"first_seq":"none"', 1),
    "header with a huge number": header(
        b'{"v":1,"segment":3,"sid":"abcdefghij","prev":"%b","format":1,"first_seq":99999999999' % (b"0" * 32), 2
    ),
    "header is no object": header(b'{"v":1,"segment":3,]', 2),
    "a folder in place": folder_in_place,
    "swapped": swapped,
}


def everything_that_reads(folder: Path) -> int:
    """Read a log in every way there is; how many ways said that it is damaged.

    Anything but a word about the log comes through.
    """
    log = folder / "log"
    said = 0

    def attempt(look: Callable[[], object]) -> None:
        nonlocal said
        try:
            look()
        except (LogError, OSError):
            said += 1

    def by_tail(after: int) -> None:
        with contextlib.closing(Tail(log, after)) as tail:
            for _ in range(200):
                tail.poll(2000)

    def by_index() -> None:
        with contextlib.closing(OffsetIndex(log)) as index:
            for i in range(len(index)) if len(index) < 1000 else (0, 1, 40, len(index) - 1):
                index.line(i)
            index.lines(0, min(len(index), 1000))
            at = 0
            for _ in range(50):
                at = index.scan(at, 500)[1]
            index.extend()

    def folded(after: int) -> SessionState:
        return fold(t.decode(line) for line in read(log, after))

    for after in (-1, 0, 30, 60, 81, 500):
        attempt(lambda after=after: folded(after))
        attempt(lambda after=after: by_tail(after))
    attempt(by_index)
    attempt(lambda: state_snapshots.load(folder / "snapshots", log))
    attempt(lambda: LogWriter.open(log, SID, segment_bytes=3000).close())
    return said


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_in_several_segments_is_named_by_every_reader_and_harms_none(
    tmp_path: Path, damage: Callable[[list[Path]], None]
) -> None:
    files = ended(tmp_path)
    damage(files)
    try:
        report = verify(tmp_path / "log")
    except OSError:
        assert damage is folder_in_place
    else:
        assert not report.ok
        assert report.problem is not None
        assert Path(report.problem.file).parent == tmp_path / "log"
    assert everything_that_reads(tmp_path) > 0


def test_random_damage_in_any_segments_harms_no_reader(tmp_path: Path) -> None:
    files = ended(tmp_path)
    whole = {file: file.read_bytes() for file in files}
    rng = random.Random(8)
    for _ in range(60):
        for file, data in whole.items():
            file.write_bytes(data)
        for file in rng.sample(files, rng.randrange(2, 5)):
            data = bytearray(whole[file][: rng.choice((len(whole[file]), rng.randrange(len(whole[file]))))])
            for _ in range(rng.randrange(1, 6) if data else 0):
                data[rng.randrange(len(data))] = rng.choice((rng.randrange(256), 10, 34, 48))
            file.write_bytes(data)
        same = all(file.read_bytes() == whole[file] for file in files)
        assert verify(tmp_path / "log").ok == same
        everything_that_reads(tmp_path)
        for leftover in (tmp_path / "log").iterdir():
            if leftover not in whole and leftover.name != "head":
                leftover.unlink()

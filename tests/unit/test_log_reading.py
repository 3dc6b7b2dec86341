"""Pieces of a log and of payloads as the supervisor hands them out: bounded, whole, and errors that are named."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.eventlog import blobs
from harness.eventlog.reader import read
from harness.eventlog.writer import LogWriter
from harness.protocol.paths import SessionFolder
from harness.supervisor.base.errors import OpError
from harness.supervisor.serving import log_reading
from harness.views.replies import LogPiece

N = 64


def _made(root: Path, n: int = N) -> SessionFolder:
    folder = SessionFolder(root / "s", root / "sock")
    folder.log.mkdir(parents=True)
    with_log = LogWriter.open(folder.log, "testsess00")
    for i in range(n):
        with_log.append(
            "harness.note", {"level": "info", "text": f"{i} " + "ö" * (i % 40), "component": "t"}, actor="keeper"
        )
    with_log.commit(sync=False)
    with_log.close()
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> SessionFolder:
    return _made(tmp_path_factory.mktemp("log"))


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(OpError) as exc:
        work()
    return exc.value.code


def walked(folder: SessionFolder, start: int, most: int) -> list[str]:
    out: list[str] = []
    at = start
    while True:
        piece = log_reading.lines(folder, at, most)
        out += piece.lines
        at = piece.next
        if at > piece.head:
            return out
        assert piece.lines, "a piece that is not the last holds at least one record"


@given(start=st.integers(0, N + 5), most=st.integers(1, 6_400))
@pytest.mark.slow
def test_any_size_of_piece_gives_the_whole_log(folder: SessionFolder, start: int, most: int) -> None:
    whole = [line.decode() for line in read(folder.log)]
    assert walked(folder, start, most) == whole[start:]
    piece = log_reading.lines(folder, start, most)
    assert piece.head == N - 1
    assert piece.closed
    assert sum(len(line.encode()) for line in piece.lines[:-1]) < most


def test_damage_is_named_where_it_is_and_not_before(tmp_path: Path) -> None:
    folder = _made(tmp_path, 20)
    file = folder.log / "000001.jsonl"
    raw = bytearray(file.read_bytes())
    at = raw.index(b'"seq":7,')
    raw[raw.index(b'"text":"', at) + 9] ^= 1
    file.write_bytes(raw)
    piece = log_reading.lines(folder, 0, 1 << 20)
    assert (len(piece.lines), piece.next, piece.head) == (7, 7, 19)
    assert refused(lambda: log_reading.lines(folder, 7, 1 << 20)) == "damaged"
    assert len(log_reading.lines(folder, 8, 1 << 20).lines) == 12


def test_a_log_that_is_not_there_yet_is_empty_and_a_removed_session_is_gone(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path / "s", tmp_path / "sock")
    assert refused(lambda: log_reading.lines(folder, 0, 1)) == "gone"
    assert refused(lambda: log_reading.blob(folder, "0" * 64, 0, 1)) == "gone"
    folder.root.mkdir()
    assert log_reading.lines(folder, 0, 1) == LogPiece(lines=[], next=0, head=-1, closed=True)


@given(data=st.binary(min_size=0, max_size=3000), most=st.integers(1, 1000))
def test_a_payload_comes_in_pieces(tmp_path_factory: pytest.TempPathFactory, data: bytes, most: int) -> None:
    root = tmp_path_factory.mktemp("blobs")
    folder = SessionFolder(root, root / "sock")
    folder.blobs.mkdir()
    sha, size = blobs.put(folder.blobs, data)
    out = b""
    while True:
        piece = log_reading.blob(folder, sha, len(out), most)
        assert piece.bytes == size
        out += base64.b64decode(piece.data)
        if len(out) == size:
            break
        assert len(base64.b64decode(piece.data)) == most
    assert out == data


def test_payloads_are_named_by_their_hash_alone(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path, tmp_path / "sock")
    folder.blobs.mkdir()
    sha, _ = blobs.put(folder.blobs, b"kept")
    assert refused(lambda: log_reading.blob(folder, "0" * 64, 0, 9)) == "not_found"
    for name in ("", "../keeper.lock", sha.upper(), sha + "\n", "/etc/passwd"):
        assert refused(lambda name=name: log_reading.blob(folder, name, 0, 9)) == "bad_request"  # type: ignore[misc]
    blobs.path(folder.blobs, sha).chmod(0o600)
    blobs.path(folder.blobs, sha).write_bytes(b"other")
    assert refused(lambda: log_reading.blob(folder, sha, 0, 9)) == "damaged"


@pytest.mark.parametrize("wrong", [-1, True, "3", None, 1.5])
def test_bounds_are_whole_numbers(wrong: object) -> None:
    assert refused(lambda: log_reading.bounded({"from_seq": wrong}, "from_seq", 0, 0)) == "bad_request"
    assert log_reading.bounded({}, "from_seq", 4, 0) == 4
    assert log_reading.bounded({"most": 99}, "most", 1, 1, 10) == 10

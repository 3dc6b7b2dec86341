"""A log that cannot be read without waiting: what lies in place of its files, and a disk that does not answer.

Nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.eventlog import blobs, head_marker, regular_files
from harness.eventlog.framing import BadLine
from harness.eventlog.index import OffsetIndex
from harness.eventlog.reader import read, verify
from harness.eventlog.tail import Tail
from harness.eventlog.writer import DamagedLog, LogWriter
from harness.projections import state_snapshots
from harness.projections.salvage import salvage
from harness.projections.state.session_state import SessionState
from harness.protocol.paths import SessionFolder
from harness.supervisor.fleet import fold_cache
from harness.supervisor.fleet.call_records import Track
from harness.supervisor.fleet.index import mark_of
from harness.supervisor.upkeep import epochs
from tests.fleetlib import Fleet, fleet, play, wait_for
from tests.process.served import served

KINDS: dict[str, Callable[[Path], object]] = {
    "a named pipe": os.mkfifo,
    "a symbolic link": lambda path: path.symlink_to("/dev/zero"),
    "a folder": lambda path: path.mkdir(),
}


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def made(folder: Path) -> None:
    log = LogWriter.open(folder, "abcdefghij", segment_bytes=400)
    for i in range(12):
        log.append("harness.note", {"level": "info", "text": f"note {i}"}, actor="test")
        log.commit(sync=True)
    log.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["000001.jsonl", "000002.jsonl", "last"])
def test_a_segment_that_is_no_file_is_damage_in_words(tmp_path: Path, kind: str, name: str) -> None:
    made(tmp_path)
    segment = max(tmp_path.glob("*.jsonl")) if name == "last" else tmp_path / name
    segment.unlink()
    KINDS[kind](segment)
    report = verify(tmp_path)
    assert report.problem is not None
    assert kind in report.problem.why
    with pytest.raises(DamagedLog, match=kind):
        list(read(tmp_path))
    with pytest.raises(DamagedLog, match=kind):
        tailed(tmp_path)
    if name == "last":
        with pytest.raises(DamagedLog, match=kind):
            LogWriter.open(tmp_path, "abcdefghij")
    assert kind in salvage(tmp_path)[1]
    OffsetIndex(tmp_path).close()
    mark_of(tmp_path)
    list(epochs.named_in(tmp_path))


def tailed(folder: Path) -> None:
    tail = Tail(folder)
    try:
        while tail.poll() or tail.waiting:
            pass
    finally:
        tail.close()


def test_no_file_beside_a_log_is_waited_for(tmp_path: Path) -> None:
    made(tmp_path / "log")
    (tmp_path / "log" / head_marker.FILE).unlink()
    os.mkfifo(tmp_path / "log" / head_marker.FILE)
    assert head_marker.load(tmp_path / "log") is None
    LogWriter.open(tmp_path / "log", "abcdefghij").close()
    (tmp_path / "snapshots").mkdir()
    os.mkfifo(tmp_path / "snapshots" / "000000000007.json")
    assert state_snapshots.load(tmp_path / "snapshots", tmp_path / "log") is None
    sha, _ = blobs.put(tmp_path / "blobs", b"payload")
    blobs.path(tmp_path / "blobs", sha).unlink()
    os.mkfifo(blobs.path(tmp_path / "blobs", sha))
    with pytest.raises(blobs.DamagedBlob, match="a named pipe"):
        blobs.get(tmp_path / "blobs", sha)
    with pytest.raises(BadLine, match="a socket"):
        regular_files.opened(bound(tmp_path / "socket"))


def bound(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
    return path


def test_a_fleet_serves_beside_a_log_that_is_a_pipe(f: Fleet) -> None:
    hurt, whole = (f.launch(play("Done."), name=name) for name in ("hurt", "whole"))
    for sid in (hurt, whole):
        f.wait_state(sid, "done")
    f.run("supervisor", "stop")
    segment = f.folders.session(hurt).log / "000001.jsonl"
    segment.unlink()
    os.mkfifo(segment)
    f.folders.index.unlink(missing_ok=True)
    rows = {row["sid"]: row for row in f.json("ls")}
    assert rows[whole]["state"] == "done"
    assert "damaged" in rows[hurt]["detail"]
    new = f.launch(play("Done."), name="new")
    f.wait_state(new, "done")
    assert "a named pipe" in f.run("verify", hurt, check=False).stdout
    f.run("rm", "--force", hurt)


async def test_a_log_that_does_not_answer_is_said_and_taken_up_when_it_does(
    f: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real supervisor, one log on a disk that hangs."""
    sids = [await asyncio.to_thread(f.launch, play("Done."), name=name) for name in ("hangs", "whole")]
    for sid in sids:
        await asyncio.to_thread(f.wait_state, sid, "done")
    await asyncio.to_thread(f.run, "supervisor", "stop")
    wait_for("the guardian to leave", lambda: not f.folders.supervisor_socket.exists())
    f.folders.index.unlink(missing_ok=True)
    answers = threading.Event()
    recall = fold_cache.recall

    def hangs(folder: SessionFolder) -> tuple[SessionState, Track, bytes, int]:
        if folder == f.folders.session(sids[0]):
            answers.wait()
        return recall(folder)

    monkeypatch.setattr(fold_cache, "recall", hangs)
    monkeypatch.setattr("harness.supervisor.fleet.session.READ_S", 0.1)
    async with served(f):
        try:
            rows = {row["sid"]: row for row in await asyncio.to_thread(f.json, "ls")}
            assert rows[sids[1]]["state"] == "done"
            assert "does not answer" in rows[sids[0]]["detail"]
        finally:
            answers.set()
        await asyncio.to_thread(f.wait_state, sids[0], "done")


def test_a_segment_without_its_end_is_damage_for_whoever_salvages_too(tmp_path: Path) -> None:
    made(tmp_path)
    first = tmp_path / "000001.jsonl"
    first.write_bytes(b"".join(line for line in first.read_bytes().splitlines(True) if b'"footer":true' not in line))
    with pytest.raises(DamagedLog, match="not sealed"):
        list(read(tmp_path))
    assert "not sealed" in salvage(tmp_path)[1]

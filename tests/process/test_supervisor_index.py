"""The index is derived: it is believed only while it fits the log, and rebuilt from nothing when it is unusable."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.eventlog.writer import LogWriter
from harness.supervisor.fleet.index import Entry, Index, mark_of
from harness.views.session_views import SessionRow

ROW = SessionRow("s1", "name", "done", "done", "", "", goal="\x1b[31m")


async def filled(path: Path) -> None:
    index = Index(path)
    assert await index.open() == {}
    index.put(Entry("s1", "1:2:3", True, ROW))
    index.put(Entry("s2", "1:2:3", False, ROW))
    index.put(Entry("s3", "1:2:3", True, ROW))
    index.drop("s3")
    await index.flush()
    await index.close()


async def test_ended_sessions_come_back(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    await filled(path)
    index = Index(path)
    found = await index.open()
    assert found == {"s1": Entry("s1", "1:2:3", True, ROW)}
    assert path.stat().st_mode & 0o777 == 0o600
    await index.close()


@pytest.mark.parametrize("damage", ["garbage", "empty", "cut", "version", "schema"])
async def test_an_unusable_index_is_rebuilt(tmp_path: Path, damage: str) -> None:
    import sqlite3

    path = tmp_path / "index.sqlite"
    await filled(path)
    raw = path.read_bytes()
    if damage == "garbage":
        path.write_bytes(b"\x00garbage" * 1000)
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(raw[: len(raw) // 2])
    else:
        with sqlite3.connect(path) as db:
            db.execute("UPDATE meta SET value='999'" if damage == "version" else "DROP TABLE sessions")
    index = Index(path)
    assert await index.open() == {}
    assert "built again" in index.problem
    index.put(Entry("s1", "m", True, ROW))
    await index.flush()
    await index.close()
    again = Index(path)
    assert set(await again.open()) == {"s1"}
    await again.close()


def test_mark_changes_with_the_log(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    assert mark_of(folder) == ""
    log = LogWriter.open(folder, "s1")
    log.append("harness.note", {"level": "info", "text": "x"}, actor="harness")
    log.commit(True)
    first = mark_of(folder)
    log.append("harness.note", {"level": "info", "text": "y"}, actor="harness")
    log.commit(True)
    log.close()
    assert first != mark_of(folder) != ""

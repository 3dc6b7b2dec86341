"""The SQLite index: rows of sessions, derived from their logs, so that a thousand ended sessions need not be read at
start.

It may be deleted at any time. A row counts only while the log it was made from still ends exactly where it did.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import aiosqlite
import msgspec

from harness.eventlog.framing import LogError
from harness.eventlog.reader import segment_name, segments
from harness.eventlog.regular_files import opened
from harness.views.session_views import SessionRow

VERSION = 3
_TAIL = 48
_UNWRITTEN = "the index could not be written"
_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sessions(sid TEXT PRIMARY KEY, mark TEXT NOT NULL, ended INTEGER NOT NULL, row BLOB NOT NULL);
"""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SessionRow).decode


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index holds of one session; ``mark`` names the end of the log it was made from."""

    sid: str
    mark: str
    ended: bool
    row: SessionRow


def mark_of(log: Path) -> str:
    """Where a log ends: newest segment, its size and its last bytes (which hold the chain hash).

    Empty when it has no end to be found.
    """
    try:
        numbers = segments(log)
        if not numbers:
            return ""
        with opened(log / segment_name(numbers[-1])) as f:
            size = f.seek(0, os.SEEK_END)
            f.seek(max(0, size - _TAIL))
            return f"{numbers[-1]}:{size}:{f.read(_TAIL).hex()}"
    except (OSError, LogError):
        return ""


class Index:
    """One connection, one writer task, commits in batches.

    Failures are reported, never fatal: nothing depends on the index.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: aiosqlite.Connection | None = None
        self._pending: dict[str, Entry | None] = {}
        self._wake = asyncio.Event()
        self.problem = ""

    async def open(self) -> dict[str, Entry]:
        """Open, or rebuild empty when missing, damaged or of another version; returns the entries of ended sessions."""
        try:
            return await self._open()
        except (sqlite3.Error, msgspec.DecodeError, ValueError) as exc:
            if self._path.exists():
                self.problem = f"the index was unusable ({exc}) and is built again from the logs"
            await self.close()
            self._delete()
            try:
                return await self._open(create=True)
            except (sqlite3.Error, ValueError) as again:
                self.problem = f"no index: {again}; everything works, only slower at start"
                await self.close()
                return {}

    def _delete(self) -> None:
        for suffix in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self._path}{suffix}")

    async def _open(self, create: bool = False) -> dict[str, Entry]:
        if not create and not self._path.exists():
            raise ValueError("there is none")
        db = await aiosqlite.connect(self._path)
        self._db = db
        os.chmod(self._path, 0o600)
        wal = sqlite3.sqlite_version_info >= (3, 51, 3)  # older ones can lose a WAL when a checkpoint and a reset meet
        await db.execute(f"PRAGMA journal_mode={'WAL' if wal else 'TRUNCATE'}")
        await db.execute("PRAGMA synchronous=NORMAL")
        if create:
            await db.executescript(_SCHEMA)
            await db.execute("INSERT INTO meta VALUES('version', ?)", (str(VERSION),))
            await db.commit()
            return {}
        async with db.execute("PRAGMA quick_check") as cursor:
            first = await cursor.fetchone()
            if first is None or first[0] != "ok":
                raise ValueError(f"quick_check: {first[0] if first else 'no answer'}")
        async with db.execute("SELECT value FROM meta WHERE key='version'") as cursor:
            version = await cursor.fetchone()
        if version is None or version[0] != str(VERSION):
            raise ValueError(f"it has version {version[0] if version else '?'}, this program writes {VERSION}")
        found: dict[str, Entry] = {}
        async with db.execute("SELECT sid, mark, row FROM sessions WHERE ended=1") as cursor:
            async for sid, mark, raw in cursor:
                found[sid] = Entry(sid, mark, True, _decode(raw))
        return found

    def put(self, entry: Entry) -> None:
        """Queue one session's entry; the newest wins."""
        self._pending[entry.sid] = entry
        self._wake.set()

    def drop(self, sid: str) -> None:
        """Queue the removal of one session."""
        self._pending[sid] = None
        self._wake.set()

    async def run(self, pause: float = 0.5) -> None:
        """Write what is queued, at most one transaction per ``pause`` seconds, until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(pause)
            await self.flush()

    async def flush(self) -> None:
        """Write what is queued now."""
        self._wake.clear()
        batch = self._pending
        self._pending = {}
        if self._db is None or not batch:
            return
        try:
            await self._write(self._db, batch.items())
            if self.problem.startswith(_UNWRITTEN):
                self.problem = ""
        except sqlite3.Error as exc:
            self.problem = f"{_UNWRITTEN}: {exc}; it is derived, nothing is lost"
            self._pending = batch | self._pending  # with the next change, when there may be room again
            with contextlib.suppress(sqlite3.Error):
                await self._db.rollback()

    async def _write(self, db: aiosqlite.Connection, batch: Iterable[tuple[str, Entry | None]]) -> None:
        gone = []
        rows = []
        for sid, entry in batch:
            gone.append((sid,))
            if entry is not None:
                rows.append((sid, entry.mark, int(entry.ended), _encode(entry.row)))
        await db.executemany("DELETE FROM sessions WHERE sid=?", gone)
        await db.executemany("INSERT INTO sessions VALUES(?,?,?,?)", rows)
        await db.commit()

    async def close(self) -> None:
        """Write nothing more; close the file."""
        db = self._db
        self._db = None
        if db is not None:
            with contextlib.suppress(sqlite3.Error):
                await db.close()

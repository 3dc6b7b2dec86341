"""What is remembered, and its one writer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from harness.memory.model import Memories
from harness.memory.records import Entry
from harness.memory.store import MEMORIES
from harness.supervisor.base.side_log_writer import Book, BookWords

MemoryBook: TypeAlias = Book[Memories, Entry]
_WORDS = BookWords("what was remembered cannot be read", "this was not remembered")


def open_book(folder: Path, changed: Callable[[], None]) -> MemoryBook:
    """``changed`` is told after each change."""
    return Book(MEMORIES, folder, _WORDS, changed=changed)


def now_utc() -> str:
    """The time as memories have it: RFC 3339 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

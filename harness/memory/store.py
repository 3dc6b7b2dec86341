"""The log of memories on disk: its only writer, and everything that it says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.events.framing import LogError
from harness.events.log import LogWriter
from harness.memory.model import Memories
from harness.memory.records import Entry, decode

MEMORY_ID = "memory"


class Store:
    """One at a time holds the folder, by the lock of its log."""

    def __init__(self, log: LogWriter, memories: Memories) -> None:
        """Use `open`."""
        self._log = log
        self.memories = memories

    @classmethod
    def open(cls, folder: Path) -> Store:
        """Take up the log, a torn tail cut, and fold all of it. Raises LogError (damage, busy, no space), OSError."""
        memories = Memories()

        def take(line: bytes) -> None:
            try:
                entry = decode(line)
            except msgspec.DecodeError as exc:
                raise LogError(f"a record of {folder} is none of a memory: {exc}") from exc
            if entry is not None:
                memories.apply(entry)

        return cls(LogWriter.open(folder, MEMORY_ID, take=take), memories)

    def keep(self, entries: Sequence[Entry]) -> None:
        """Durable when this returns; `Memories.apply` is the caller's. Raises LogError: nothing is kept then."""
        for entry in entries:
            self._log.append(entry.TYPE, msgspec.to_builtins(entry), actor=str(entry.origin.actor))
        self._log.commit(sync=True)

    def close(self) -> None:
        self._log.close()

"""A log of its own beside the sessions', and all that it says: one writer, durable before it counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

import msgspec

from harness.eventlog.framing import LogError
from harness.eventlog.writer import LogWriter


class Entry(Protocol):
    """A record: a msgspec struct that names its type."""

    TYPE: ClassVar[str]


E = TypeVar("E", bound=Entry)


F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Kind(Generic[F, E]):
    """``ident``: what the log calls itself; ``noun``: what a record of it is about; ``decode``: a line, None for a type
    of a newer version, msgspec.DecodeError when it is none; ``apply`` takes a record into what the records come to;
    ``actor``: who is behind one.
    """

    ident: str
    noun: str
    empty: Callable[[], F]
    apply: Callable[[F, E], None]
    decode: Callable[[bytes], E | None]
    actor: Callable[[E], str]


class FoldedLog(Generic[F, E]):
    """One at a time holds the folder, by the lock of its log."""

    def __init__(self, kind: Kind[F, E], log: LogWriter, folded: F) -> None:
        """Use `open`."""
        self._kind = kind
        self._log = log
        self.folded = folded

    @classmethod
    def open(cls, kind: Kind[F, E], folder: Path) -> FoldedLog[F, E]:
        """Take up the log, a torn tail cut, and fold all of it. Raises LogError (damage, busy, no space), OSError."""
        folded = kind.empty()

        def take(line: bytes) -> None:
            try:
                entry = kind.decode(line)
            except msgspec.DecodeError as exc:
                raise LogError(f"a record of {folder} is none of {kind.noun}: {exc}") from exc
            if entry is not None:
                kind.apply(folded, entry)

        return cls(kind, LogWriter.open(folder, kind.ident, take=take), folded)

    def keep(self, entries: Sequence[E]) -> None:
        """Durable when this returns; to apply them is the caller's. Raises LogError: nothing is kept then."""
        for entry in entries:
            self._log.append(entry.TYPE, msgspec.to_builtins(entry), actor=self._kind.actor(entry))
        self._log.commit(sync=True)

    def close(self) -> None:
        self._log.close()

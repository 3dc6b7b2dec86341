"""The one writer of a log that is not a session's: every change is thought out on what stands, durable, and only then
so. A log that cannot be read or written keeps nothing else from working.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from harness.eventlog.framing import LogError
from harness.eventlog.side_log import Entry, FoldedLog, Kind
from harness.eventlog.writer import NoSpace, Poisoned
from harness.supervisor.base.errors import OpError, out_of_space
from harness.supervisor.base.threads import Threads

E = TypeVar("E", bound=Entry)
F = TypeVar("F")
_AGAIN_S = 30.0
"""Seconds after which a log that could not be read is looked at again."""


@dataclass(frozen=True, slots=True)
class BookWords:
    """What is said, before the cause, when the log cannot be read and when a change was not kept."""

    unread: str
    unkept: str


class Book(Generic[F, E]):
    """Opened when it is first needed."""

    def __init__(
        self,
        kind: Kind[F, E],
        folder: Path,
        words: BookWords,
        *,
        changed: Callable[[], None] = lambda: None,
        owed: Callable[[F], list[E]] = lambda folded: [],
    ) -> None:
        """``changed`` is told after each change; ``owed``: the next that a fall left undone,
        asked until nothing is, as soon as the log is open."""
        self._kind = kind
        self._folder = folder
        self._words = words
        self._changed = changed
        self._owed = owed
        self._thread = Threads(kind.ident, 1)
        self._lock = asyncio.Lock()
        self._log: FoldedLog[F, E] | None = None
        self._refused: OpError | None = None
        self._again = 0.0
        self.problem = ""
        """Why nothing of it counts now; empty when it does."""

    async def read(self) -> F:
        """What stands now; not to be changed. Raises OpError."""
        async with self._lock:
            return (await self._opened()).folded

    async def change(self, think: Callable[[F], list[E]]) -> list[E]:
        """What ``think`` makes of what stands, durable when this returns. Raises OpError, and what ``think`` raises."""
        async with self._lock:
            log = await self._opened()
            entries = think(log.folded)
            if entries:
                await self._keep(log, entries)
            return entries

    async def close(self) -> None:
        """Let go of the log."""
        async with self._lock:
            await self._let_go()

    async def _let_go(self) -> None:
        if self._log is not None:
            log = self._log
            self._log = None
            with contextlib.suppress(LogError, OSError):  # all that was acknowledged is on the disk already
                await self._thread.call(log.close)

    async def _opened(self) -> FoldedLog[F, E]:
        if self._log is not None:
            return self._log
        if self._refused is not None and time.monotonic() < self._again:
            raise self._refused
        try:
            log = await self._thread.call(FoldedLog.open, self._kind, self._folder)
        except (LogError, OSError) as exc:
            self.problem = f"{self._words.unread}: {exc}"
            print(f"supervisor: {self.problem}", file=sys.stderr, flush=True)
            self._again = time.monotonic() + _AGAIN_S
            self._refused = _refusal(exc, self.problem)
            raise self._refused from exc
        self._log = log
        self._refused = None
        self.problem = ""
        while owed := self._owed(log.folded):
            await self._keep(log, owed)
        return log

    async def _keep(self, log: FoldedLog[F, E], entries: Sequence[E]) -> None:
        try:
            await self._thread.call(log.keep, entries)
        except Poisoned as exc:
            await self._let_go()  # what the log says is read anew before anything is added to it
            raise _refusal(exc, f"{self._words.unkept}: {exc}") from exc
        except (LogError, OSError) as exc:
            why = exc.what if isinstance(exc, NoSpace) else exc
            raise _refusal(exc, f"{self._words.unkept}: {why}") from exc
        for entry in entries:
            self._kind.apply(log.folded, entry)
        self._changed()


def _refusal(exc: Exception, message: str) -> OpError:
    if out_of_space(exc):
        return OpError("no_space", message, "free some space, then ask again")
    return OpError("damaged", message, "see what is wrong with the log: watchfloor verify")

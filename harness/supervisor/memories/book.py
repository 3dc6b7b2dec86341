"""The one writer of what is remembered: every change is thought out on what stands, durable, and only then so."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from harness.events.framing import LogError
from harness.events.log import Poisoned
from harness.memory import rules
from harness.memory.model import Memories
from harness.memory.records import Actor, Entry, Origin
from harness.memory.store import Store
from harness.supervisor.errors import OpError, out_of_space
from harness.supervisor.threads import Threads

_AGAIN_S = 30.0
"""Seconds after which a log that could not be read is looked at again."""
Think = Callable[[Memories], list[Entry]]


class Book:
    """Opened when it is first needed; a log that cannot be read keeps nothing else from working."""

    def __init__(self, folder: Path, changed: Callable[[], None]) -> None:
        """``changed`` is told after each change."""
        self._folder = folder
        self._changed = changed
        self._thread = Threads("memory", 1)
        self._lock = asyncio.Lock()
        self._store: Store | None = None
        self._refused: OpError | None = None
        self._again = 0.0
        self.problem = ""
        """Why nothing is remembered now; empty when it is."""

    async def read(self) -> Memories:
        """What stands now; not to be changed. Raises OpError."""
        async with self._lock:
            return (await self._opened()).memories

    async def change(self, think: Think) -> list[Entry]:
        """What ``think`` makes of what stands, durable when this returns. Raises NotRemembered, OpError."""
        async with self._lock:
            store = await self._opened()
            entries = think(store.memories)
            if entries:
                await self._keep(store, entries)
            return entries

    async def close(self) -> None:
        """Let go of the log."""
        async with self._lock:
            await self._let_go()

    async def _let_go(self) -> None:
        if self._store is not None:
            store = self._store
            self._store = None
            with contextlib.suppress(LogError, OSError):  # all that was acknowledged is on the disk already
                await self._thread.call(store.close)

    async def _opened(self) -> Store:
        if self._store is not None:
            return self._store
        if self._refused is not None and time.monotonic() < self._again:
            raise self._refused
        try:
            store = await self._thread.call(Store.open, self._folder)
        except (LogError, OSError) as exc:
            self.problem = f"what was remembered cannot be read: {exc}"
            print(f"supervisor: {self.problem}", file=sys.stderr, flush=True)
            self._again = time.monotonic() + _AGAIN_S
            self._refused = _refusal(exc, self.problem)
            raise self._refused from exc
        self._store = store
        self._refused = None
        self.problem = ""
        await self._believe(store)
        return store

    async def _believe(self, store: Store) -> None:
        """What was seen twice when we fell is remembered now."""
        now = Origin(Actor.HARNESS, now_utc())
        for lesson in store.memories.pending():
            if found := rules.believed(store.memories, lesson, now):
                await self._keep(store, found)

    async def _keep(self, store: Store, entries: Sequence[Entry]) -> None:
        try:
            await self._thread.call(store.keep, entries)
        except Poisoned as exc:
            await self._let_go()  # what the log says is read anew before anything is added to it
            raise _refusal(exc, f"this was not remembered: {exc}") from exc
        except (LogError, OSError) as exc:
            raise _refusal(exc, f"this was not remembered: {exc}") from exc
        for entry in entries:
            store.memories.apply(entry)
        self._changed()


def now_utc() -> str:
    """The time as memories have it: RFC 3339 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _refusal(exc: Exception, message: str) -> OpError:
    if out_of_space(exc):
        return OpError("no_space", message, "free some space, then ask again")
    return OpError("damaged", message, "see what is wrong with the log: watchfloor verify")

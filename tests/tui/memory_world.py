"""Memory in the tests' stand-in for a supervisor: the real rules, kept nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from harness.memory import changes
from harness.memory.changes import MemoryRequest, NotRemembered
from harness.memory.model import Memories
from harness.memory.records import Actor, Entry, Origin, Place, Scope, Written
from harness.supervisor.memories.book import now_utc
from harness.supervisor.serving.ops.memory_ops import lesson_of, version_of, view_of

Reply = dict[str, Any]
Writer = asyncio.StreamWriter


class Refused(Exception):
    """An operation was refused."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Remembering:
    """The operations on memory."""

    def __init__(self) -> None:
        self.memories = Memories()

    def remember(self, place: Place, key: str, text: str) -> None:
        """A person writes a memory."""
        self._put(lambda m: changes.write(m, MemoryRequest(place, key, _person(), text)))

    def propose(self, place: Place, key: str, text: str, session: str) -> None:
        """An agent leaves a lesson."""
        self._put(
            lambda m: changes.propose(m, MemoryRequest(place, key, Origin(Actor.AGENT, now_utc(), session), text))
        )

    def _put(self, think: Callable[[Memories], list[Entry]]) -> Reply:
        try:
            entries = think(self.memories)
        except NotRemembered as exc:
            raise Refused(exc.code, str(exc)) from exc
        for entry in entries:
            self.memories.apply(entry)
        return {"written": msgspec.to_builtins([version_of(e, {}) for e in entries if isinstance(e, Written)])}

    def _op_memories(self, r: Reply, w: Writer) -> Reply:
        now = now_utc()
        held = [view_of(m, now, {}) for m in self.memories.by_key.values() if m.live(now)]
        return msgspec.to_builtins(  # type: ignore[no-any-return]
            {"memories": held, "lessons": [lesson_of(x) for x in self.memories.pending()]}
        )

    def _op_memory_history(self, r: Reply, w: Writer) -> Reply:
        memory = self.memories.by_key.get((_place(r), r["key"]))
        if memory is None:
            raise Refused("not_found", f"nothing is remembered under {r['key']!r}")
        versions = [version_of(v, {}) for v in reversed(memory.versions)]
        return msgspec.to_builtins(  # type: ignore[no-any-return]
            {"memory": view_of(memory, now_utc(), {}), "versions": versions}
        )

    def _op_memory_remove(self, r: Reply, w: Writer) -> Reply:
        return self._put(lambda m: changes.remove(m, _wish(r)))

    def _op_memory_rollback(self, r: Reply, w: Writer) -> Reply:
        return self._put(lambda m: changes.roll_back(m, _wish(r), r.get("to")))

    def _op_lesson_accept(self, r: Reply, w: Writer) -> Reply:
        return self._put(lambda m: changes.accept(m, r["lesson"], _person()))

    def _op_lesson_reject(self, r: Reply, w: Writer) -> Reply:
        return self._put(lambda m: changes.reject(m, r["lesson"], _person(), r.get("why", "")))


def _person() -> Origin:
    return Origin(Actor.PERSON, now_utc())


def _place(r: Reply) -> Place:
    return Place(Scope(r.get("scope") or "user"), r.get("of", ""))


def _wish(r: Reply) -> MemoryRequest:
    return MemoryRequest(_place(r), r["key"], _person(), expected=r.get("if_sha", changes.ANYTHING))

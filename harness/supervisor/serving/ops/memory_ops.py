"""What a person may ask of memory and do to it: look, search, write, accept and reject lessons, roll back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.memory import changes
from harness.memory.changes import ANYTHING, MemoryRequest, NotRemembered
from harness.memory.model import PENDING, Lesson, Memories, Memory
from harness.memory.records import Actor, Entry, Origin, Place, Scope, Written
from harness.memory.search import search
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.fleet.session import Session
from harness.supervisor.memories.book import now_utc
from harness.supervisor.serving.parts import Parts, number_of, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.views.memory_views import (
    LessonView,
    MemoriesFound,
    MemoriesShown,
    MemoryVersions,
    MemoryView,
    MemoryWritten,
    VersionView,
)
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.git.run import open_repository

_MOST = 200
_MOST_DAYS = 3650
_TOLD_S = 5.0


class MemoryOps:
    """The table of what is asked about memory."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {
            "memories": self.memories,
            "memory_history": self.history,
            "memory_search": self.search,
            "memory_set": self.write,
            "memory_remove": self.remove,
            "memory_rollback": self.roll_back,
            "lesson_accept": self.accept,
            "lesson_reject": self.reject,
        }

    # -- looking -----------------------------------------------------------------------------------

    async def memories(self, c: Connection, m: Fields) -> MemoriesShown:
        """What is remembered, and the lessons that wait, at one place or everywhere."""
        now = now_utc()
        found = await self._p.book.read()
        place = await self._place(m)
        held = [x for x in found.by_key.values() if (place is None or x.place == place) and x.live(now)]
        held.sort(key=lambda x: (_ORDER[x.place.scope], x.place.of, x.key))
        lessons = [x for x in found.lessons.values() if place is None or x.first.place == place]
        waiting = [x for x in lessons if x.state == PENDING or m.get("decided") is True]
        names = self._names()
        return MemoriesShown(memories=[view_of(x, now, names) for x in held], lessons=[lesson_of(x) for x in waiting])

    async def history(self, c: Connection, m: Fields) -> MemoryVersions:
        """The versions of one memory, newest first."""
        memory = self._named(await self._p.book.read(), await self._place(m), text_of(m, "key"))
        names = self._names()
        versions = [version_of(v, names) for v in reversed(memory.versions)]
        return MemoryVersions(memory=view_of(memory, now_utc(), names), versions=versions)

    async def search(self, c: Connection, m: Fields) -> MemoriesFound:
        """Memories that match words, best first."""
        now = now_utc()
        found = await self._p.book.read()
        place = await self._place(m)
        places = [place] if place is not None else sorted({name[0] for name in found.by_key})
        hits = search(found.at(places, now), text_of(m, "query"), _MOST)
        names = self._names()
        return MemoriesFound(memories=[view_of(found.by_key[w.place, w.key], now, names) for w in hits])

    def _names(self) -> dict[str, str]:
        return {session.sid: session.name for session in self._p.fleet}

    # -- changing ----------------------------------------------------------------------------------

    async def write(self, c: Connection, m: Fields) -> MemoryWritten:
        """Write a memory."""
        place = await self._place(m)
        if place is None:
            raise OpError("bad_request", "say whose memory it is: a repository's, a session's or yours")
        wish = self._wish(m, place, text_of(m, "key"), text=text_of(m, "text", 4 * changes.TEXT_BYTES))
        return await self._change(lambda known: changes.write(known, wish))

    async def remove(self, c: Connection, m: Fields) -> MemoryWritten:
        """Remove a memory."""
        wish = await self._about(m)
        return await self._change(lambda known: changes.remove(known, wish))

    async def roll_back(self, c: Connection, m: Fields) -> MemoryWritten:
        """Go back to version ``to`` of a memory, 0 for what was before the first; without it, to the one before the
        newest.
        """
        to = m.get("to")
        if to is not None and (isinstance(to, bool) or not isinstance(to, int) or to < 0):
            raise OpError("bad_request", "to must be the number of a version")
        wish = await self._about(m)
        return await self._change(lambda known: changes.roll_back(known, wish, to))

    async def accept(self, c: Connection, m: Fields) -> MemoryWritten:
        """Accept a lesson of an agent."""
        ident = text_of(m, "lesson")
        return await self._change(lambda known: changes.accept(known, ident, _person(), text_of(m, "why")))

    async def reject(self, c: Connection, m: Fields) -> MemoryWritten:
        """Reject a lesson of an agent."""
        ident = text_of(m, "lesson")
        return await self._change(lambda known: changes.reject(known, ident, _person(), text_of(m, "why")))

    async def _change(self, think: Callable[[Memories], list[Entry]]) -> MemoryWritten:
        try:
            entries = await self._p.book.change(think)
        except NotRemembered as exc:
            raise OpError(exc.code, str(exc)) from exc
        names = self._names()
        written = [version_of(entry, names) for entry in entries if isinstance(entry, Written)]
        await self._told(entries)
        return MemoryWritten(written=written)

    async def _told(self, entries: list[Entry]) -> None:
        """Whoever shows what changed has it on record before the person hears that it is done."""
        for session in list(self._p.fleet):
            if session.link is None or session.state.terminal or not self._p.recall.concerns(session, entries):
                continue
            with contextlib.suppress(OpError, LinkLost, TimeoutError):  # its worker tells it as soon as it can
                async with asyncio.timeout(_TOLD_S):
                    await self._p.recall.step(session)

    # -- what is meant -----------------------------------------------------------------------------

    async def _about(self, m: Fields) -> MemoryRequest:
        memory = self._named(await self._p.book.read(), await self._place(m), text_of(m, "key"))
        return self._wish(m, memory.place, memory.key)

    def _wish(self, m: Fields, place: Place, key: str, text: str = "") -> MemoryRequest:
        expected = text_of(m, "if_sha") if "if_sha" in m else ANYTHING
        return MemoryRequest(
            place, key, _person(), text, expected, _expiry(m), text_of(m, "why"), known=self._p.credentials.keys()
        )

    @staticmethod
    def _named(found: Memories, place: Place | None, key: str) -> Memory:
        """The memory with this key, at the only place that has one. Raises OpError."""
        named = [x for x in found.by_key.values() if x.key == key and place in (None, x.place)]
        if not named:
            raise OpError(
                "not_found", f"nothing is remembered under {key[: changes.KEY_CHARS]!r}", "watchfloor memory ls"
            )
        if len(named) > 1:
            raise OpError("ambiguous", f"{key!r} is remembered at {len(named)} places", "say whose memory you mean")
        return named[0]

    async def _place(self, m: Fields) -> Place | None:
        """Whose memory is meant; None when nothing was said. ``of`` names a session or a folder of a repository."""
        scope = text_of(m, "scope")
        of = text_of(m, "of")
        if not scope:
            return None
        if scope == Scope.USER:
            return Place(Scope.USER)
        if scope == Scope.SESSION:
            return Place(Scope.SESSION, self._p.fleet.find(of).sid)
        if scope != Scope.REPOSITORY:
            raise OpError("bad_request", f"a memory is a session's, a repository's or the user's, not {scope[:40]!r}'s")
        if any(place == (Scope.REPOSITORY, of) for place, _ in (await self._p.book.read()).by_key):
            return Place(Scope.REPOSITORY, of)
        try:
            repository = await at_home(open_repository, Path(of))
        except WorkspaceError as exc:
            hint = "--repo DIR names the repository that it is about, --user keeps it for all of them"
            raise OpError("no_repo", str(exc), hint) from exc
        return Place(Scope.REPOSITORY, str(repository.common))


async def drop(parts: Parts, session: Session) -> None:
    """A session was removed: so is what only it remembered."""
    parts.recall.forget(session)
    origin = Origin(Actor.HARNESS, now_utc(), session.sid)
    with contextlib.suppress(OpError):  # a memory of nobody is shown to nobody
        await parts.book.change(lambda known: changes.drop(known, Place(Scope.SESSION, session.sid), origin))


_ORDER = {Scope.SESSION: 0, Scope.REPOSITORY: 1, Scope.USER: 2}


def _person() -> Origin:
    return Origin(Actor.PERSON, now_utc())


def _expiry(m: Fields) -> str:
    if m.get("days") is None:
        return ""
    until = datetime.now(UTC) + timedelta(days=number_of(m, "days", 0, 1, _MOST_DAYS))
    return until.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def view_of(memory: Memory, now: str, names: Mapping[str, str]) -> MemoryView:
    """A memory as clients see it; ``names`` are those of the sessions by id."""
    place = memory.place
    return MemoryView(
        scope=str(place.scope),
        of=place.of,
        key=memory.key,
        live=memory.live(now),
        newest=version_of(memory.newest, names),
    )


def version_of(v: Written, names: Mapping[str, str]) -> VersionView:
    """A version as clients see it; ``names`` are those of the sessions by id."""
    return VersionView(
        version=v.version,
        op=v.op,
        ts=v.origin.ts,
        actor=str(v.origin.actor),
        author=v.origin.author,
        by=said_by(v, names),
        sha=v.sha,
        before=v.before,
        text=v.text,
        expires=v.expires,
        why=v.why,
    )


def said_by(v: Written, names: Mapping[str, str]) -> str:
    """Whose word a version is, as the person is told."""
    match v.origin.actor:
        case Actor.PERSON:
            return "an agent's lesson, accepted by you" if v.lesson else "you"
        case Actor.HARNESS:
            return "said by two sessions" if v.lesson else "Watchfloor"
        case Actor.AGENT:
            return f"session {names.get(v.origin.author, v.origin.author)}"


def lesson_of(lesson: Lesson) -> LessonView:
    """A lesson as clients see it."""
    first = lesson.first
    return LessonView(
        lesson=lesson.ident,
        scope=str(first.scope),
        of=first.of,
        key=first.key,
        text=first.text,
        state=lesson.state,
        sightings=lesson.sightings,
        ts=first.origin.ts,
        removes=first.removes,
        standing=first.base,
        why=lesson.why,
    )

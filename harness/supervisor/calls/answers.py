"""Calls that the supervisor answers from what is on record: memory, the session's own log, and a person's words.
Nothing runs for them.

The change is durable before the call ends, and the call's id is on it: asked again after a fall, it is not made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain

from harness.domain import problems
from harness.domain.text import fields
from harness.eventlog.framing import LogError
from harness.eventlog.index import OffsetIndex
from harness.events import types as t
from harness.memory import changes as wishes
from harness.memory import files
from harness.memory.changes import ANYTHING, SHA_CHARS, MemoryRequest, NotRemembered
from harness.memory.layer import who
from harness.memory.model import Memories
from harness.memory.records import Actor, Entry, Origin, Place, Proposed, Scope, Written
from harness.memory.search import search
from harness.protocol.config.sections import MemoryConfig
from harness.protocol.paths import SessionFolder
from harness.reports import history
from harness.supervisor.base.errors import FOR_NOW, Later, OpError
from harness.supervisor.calls.on_record import input_of, put_blob
from harness.supervisor.calls.queue import questions
from harness.supervisor.calls.recall import Recall
from harness.supervisor.fleet.session import Session
from harness.supervisor.memories.book import MemoryBook, now_utc
from harness.tools import memory_files, person_tool, registry
from harness.workspace.git.errors import WorkspaceError

_MOST_HITS = 10
_MOST_KEYS = 100
_MOST_BYTES = 7 * 1024
_LOOK_S = 20.0
_RETRY_SPACE = 5.0
_CHANGES = ("write", "delete")


@dataclass(frozen=True, slots=True)
class _Told:
    """What the agent is told, and the records of what changed."""

    text: str
    changes: tuple[t.Body, ...] = ()
    failed: bool = False


class Answers:
    """``keys`` gives the secrets that we hold ourselves, ``rule`` what the person lets enter without a word."""

    def __init__(
        self,
        book: MemoryBook,
        recall: Recall,
        keys: Callable[[], tuple[str, ...]],
        rule: Callable[[], MemoryConfig],
    ) -> None:
        self._book = book
        self._recall = recall
        self._keys = keys
        self._rule = rule

    async def answer(self, session: Session, call_id: str) -> None:
        """Answer one allowed call and record its end. Raises OpError, LinkLost, Later."""
        known = session.track.calls.get(call_id)
        if known is None:
            return
        if known.proposed.tool == person_tool.NAME:
            await questions.ask(session, call_id)
            return
        given = await input_of(session, known.proposed)
        assert isinstance(given, dict)
        try:
            told = await self._told(session, call_id, known.proposed.tool, given)
        except NotRemembered as exc:
            told = _Told(str(exc), failed=exc.code != "known")
        except OpError as exc:
            if exc.code in FOR_NOW:
                raise Later(_RETRY_SPACE, problems.of_code(exc.code, exc.message)) from exc
            told = _Told(f"Memory cannot be used now: {exc.message}", failed=True)
        except (WorkspaceError, OSError, LogError) as exc:
            told = _Told(f"It cannot be read now: {exc}", failed=True)
        await session.append(*told.changes, await _ended(session, call_id, told))

    async def _told(self, session: Session, call_id: str, tool: str, given: dict[str, object]) -> _Told:
        if tool == registry.HISTORY:
            return _Told(await session.look("its history", _LOOK_S, lambda: _history(session.folder, given)))
        return await self._memory(session, call_id, given)

    # -- memory ------------------------------------------------------------------------------------

    async def _memory(self, session: Session, call_id: str, given: dict[str, object]) -> _Told:
        mine = await self._recall.of(session)
        if memory_files.meant(given):
            return await self._file(session, call_id, given, next(p for p in mine if p.scope is Scope.SESSION))
        scope = str(given.get("scope", ""))
        action = given["action"]
        if action in _CHANGES:
            place = next(place for place in mine if place.scope == (scope or Scope.SESSION))
            return await self._change(session, call_id, given, place)
        memories = await self._book.read()
        wanted = [place for place in mine if scope in ("", place.scope)]
        if action == "search":
            hits = search(memories.at(wanted, now_utc()), str(given.get("text", "")), _MOST_HITS)
            return _Told("\n".join(map(_whole, hits)) or "Nothing that is remembered has any of these words.")
        return _Told(_viewed(memories, wanted, str(given.get("key", ""))))

    async def _change(self, session: Session, call_id: str, given: dict[str, object], place: Place) -> _Told:
        wish = MemoryRequest(
            place,
            str(given.get("key", "")),
            _by(session, call_id),
            str(given.get("text", "")),
            str(given.get("if_sha", ANYTHING)),
            _expiry(given.get("days")) if place.scope is Scope.SESSION else "",
            known=self._keys(),
        )
        made: list[Entry] = []

        def think(m: Memories) -> list[Entry]:
            known = m.calls.get((session.sid, call_id))
            if known is not None:  # we fell before its end was on record
                made.append(known)
                return []
            made.extend(_thought(m, wish, self._rule(), removes=given["action"] == "delete"))
            return made

        await self._book.change(think)
        if not made:
            return _Told("It says so already.")
        told = [entry for entry in made if isinstance(entry, Written | Proposed)]
        return _Told("\n".join(map(_said, told[-1:])), tuple(_changed(call_id, entry) for entry in told))

    async def _file(self, session: Session, call_id: str, given: dict[str, object], place: Place) -> _Told:
        """The vendor's memory tool, on what is the session's own."""
        if given["command"] not in memory_files.CHANGES:
            return _Told(files.view(await self._book.read(), place, given, now_utc()))
        wish = MemoryRequest(place, "", _by(session, call_id), known=self._keys())
        made: list[files.Done] = []

        def think(m: Memories) -> list[Entry]:
            made.append(files.change(m, wish, given))
            return list(made[0].entries)

        await self._book.change(think)
        return _Told(made[0].text, tuple(_changed(call_id, entry) for entry in made[0].entries))


def _thought(m: Memories, wish: MemoryRequest, rule: MemoryConfig, *, removes: bool) -> list[Entry]:
    """An agent changes what is its session's, and proposes everything else."""
    if wish.place.scope is not Scope.SESSION:
        said = wishes.propose(m, replace(wish, text="") if removes else wish, removes=removes)
        promoted = [wishes.promote(m, one, rule.promote, rule.witnesses) for one in said if isinstance(one, Proposed)]
        return [*said, *chain.from_iterable(promoted)]
    return wishes.remove(m, wish) if removes else wishes.write(m, wish)


def _said(entry: Entry) -> str:
    match entry:
        case Written() if entry.sha:
            return f"Remembered: {entry.key!r}, version {entry.version}, sha {entry.sha[:SHA_CHARS]}."
        case Written():
            return f"Forgotten: {entry.key!r}."
        case Proposed():
            waits = "not remembered yet: the person has to accept it. Do not wait for that."
            return f"Noted as lesson {entry.lesson}, {waits}"
    return ""


def _changed(call_id: str, entry: Entry) -> t.MemoryChanged:
    assert isinstance(entry, Written | Proposed)
    if isinstance(entry, Proposed):
        sha = entry.base  # a lesson changes nothing yet
        return t.MemoryChanged(
            call_id=call_id,
            scope=str(entry.scope),
            key=entry.key,
            op="proposed",
            sha_before=sha,
            sha_after=sha,
            lesson=entry.lesson,
        )
    return t.MemoryChanged(
        call_id=call_id,
        scope=str(entry.scope),
        key=entry.key,
        op="learned" if entry.lesson else entry.op,
        sha_before=entry.before,
        sha_after=entry.sha,
        lesson=entry.lesson,
    )


def _viewed(memories: Memories, places: Iterable[Place], key: str) -> str:
    found = list(memories.at(places, now_utc()))
    if key:
        return "\n".join(_whole(w) for w in found if w.key == key) or f"Nothing is remembered under {key[:200]!r}."
    if not found:
        return "Nothing is remembered yet."
    lines = [f"[{w.scope}] {w.key} (version {w.version}, sha {w.sha[:SHA_CHARS]})" for w in found[:_MOST_KEYS]]
    more = [f"({len(found) - _MOST_KEYS} more: search them)"] if len(found) > _MOST_KEYS else []
    return "\n".join([*lines, *more])


def _by(session: Session, call_id: str) -> Origin:
    intent = session.state.intent
    root = intent.forked.line if intent is not None and intent.forked is not None else ""
    return Origin(Actor.AGENT, now_utc(), session.sid, call_id, root)


def _whole(w: Written) -> str:
    """A memory as data: its origin, then its text, set in."""
    until = f", until {w.expires[:10]}" if w.expires else ""
    head = f"[{w.scope}] {w.key} ({who(w)}, {w.origin.ts[:10]}, version {w.version}, sha {w.sha[:SHA_CHARS]}{until}):"
    return "\n".join([head, *(f"  {line}" for line in w.text.splitlines())])


def _expiry(days: object) -> str:
    if not isinstance(days, int):
        return ""
    until = datetime.now(UTC) + timedelta(days=days)
    return until.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _ended(session: Session, call_id: str, told: _Told) -> t.ToolEnded:
    """The end of the call; a long answer stands beside the log, as a tool's long output does."""
    status = "error" if told.failed else "ok"
    data = told.text.encode("utf-8", "replace")
    if len(data) <= _MOST_BYTES:
        return t.ToolEnded(call_id=call_id, status=status, preview=data.decode("utf-8"))
    stored = await put_blob(session, data, "text/plain")
    beginning = data[:_MOST_BYTES].decode("utf-8", "ignore")
    return t.ToolEnded(call_id=call_id, status=status, preview=beginning, output=stored)


# -- the session's own log ---------------------------------------------------------------------------


def _history(folder: SessionFolder, given: dict[str, object]) -> str:
    log = OffsetIndex(folder.log)
    try:
        question = history.Question(
            str(given.get("grep", "")),
            str(given.get("type", "")),
            fields.number(given, "from", 0) if "from" in given else None,
            fields.number(given, "limit", history.LIMIT),
        )
        return history.answer(log, question)
    finally:
        log.close()

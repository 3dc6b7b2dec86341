"""What a wish about a memory leads to: the records that it adds, or why it is refused. Pure.

Only a person writes what is the repository's or the user's. What an agent wants remembered there is a lesson: it
enters by a person, or by a rule that a person wrote, however many sessions say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import sha256

import msgspec

from harness.domain.text import secret_scan
from harness.memory.model import PENDING, REJECTED, VERSIONS, Lesson, Memories, normal
from harness.memory.records import (
    CREATED,
    DELETED,
    MODIFIED,
    RESTORED,
    Actor,
    Decided,
    Dropped,
    Entry,
    Origin,
    Place,
    Proposed,
    Scope,
    Written,
    sha_of,
)

TEXT_BYTES = 8 * 1024
KEY_CHARS = 120
MOST_LIVE = 500
"""Memories of one place."""
MOST_WAITING = 50
"""Lessons of one session that nobody decided yet."""
SHA_CHARS = 12
"""A hash may be shortened to so many digits, which is what a request shows of it."""
ANYTHING = "*"
"""As the expected hash: whatever stands there."""
ABSENT = ""
"""As the expected hash: nothing must stand there."""


class NotRemembered(Exception):
    """Why nothing was changed. ``code``: precondition, secret, too_large, full, bad_request, not_found."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """A change somebody wants. ``expected`` is the hash that must stand under the key, `ANYTHING` or `ABSENT`;
    ``known`` are secrets that must not be in the text.
    """

    place: Place
    key: str
    origin: Origin
    text: str = ""
    expected: str = ANYTHING
    expires: str = ""
    why: str = ""
    known: tuple[str, ...] = ()


def write(m: Memories, wish: MemoryRequest, *, lesson: str = "") -> list[Entry]:
    """A new version under the key; nothing when it says the same already. Raises NotRemembered."""
    _sound(wish)
    standing = _expected(m, wish)
    if standing is not None and standing.text == wish.text and standing.expires == wish.expires:
        return []
    if standing is None and sum(1 for _ in m.at([wish.place], wish.origin.ts)) >= MOST_LIVE:
        raise NotRemembered("full", f"{MOST_LIVE} memories are kept there; delete one first")
    return [_version(m, wish, CREATED if standing is None else MODIFIED, lesson)]


def remove(m: Memories, wish: MemoryRequest, *, lesson: str = "") -> list[Entry]:
    """The memory is gone from now on; its versions stay. Raises NotRemembered."""
    if _expected(m, wish) is None:
        raise NotRemembered("not_found", f"nothing is remembered under {wish.key[:KEY_CHARS]!r} there")
    return [_version(m, replace(wish, text="", expires=""), DELETED, lesson)]


def roll_back(m: Memories, wish: MemoryRequest, to: int | None) -> list[Entry]:
    """What version ``to`` said stands again; 0, or None with only one version, = it is gone. Raises NotRemembered."""
    memory = m.by_key.get((wish.place, wish.key))
    if memory is None:
        raise NotRemembered("not_found", f"nothing was ever remembered under {wish.key[:KEY_CHARS]!r} there")
    wanted = memory.newest.version - 1 if to is None else to
    if wanted == 0:
        return remove(m, wish)
    found = next((v for v in memory.versions if v.version == wanted), None)
    if found is None:
        kept = f"; the newest {VERSIONS} are at hand" if len(memory.versions) == VERSIONS else ""
        raise NotRemembered("not_found", f"{wish.key!r} has no version {wanted}{kept}")
    _expected(m, wish)
    if found.op == DELETED:
        return remove(m, wish)
    again = replace(wish, text=found.text, expires=found.expires, why=wish.why or f"back to version {wanted}")
    return [_version(m, again, RESTORED, "")]


def propose(m: Memories, wish: MemoryRequest, *, removes: bool = False) -> list[Entry]:
    """An agent's wish beyond its session: one more sighting of the same lesson, or a new one. Raises NotRemembered."""
    if not removes:
        _sound(wish)
    standing = _expected(m, wish)
    if removes and standing is None:
        raise NotRemembered("not_found", f"nothing is remembered under {wish.key[:KEY_CHARS]!r} there")
    said = Proposed(
        lesson=_ident(wish, removes),
        scope=wish.place.scope,
        of=wish.place.of,
        key=wish.key,
        text=wish.text,
        origin=wish.origin,
        base=standing.sha if standing is not None else "",
        removes=removes,
    )
    known = next((w for w in m.at([wish.place], wish.origin.ts) if normal(w.text) == normal(wish.text)), None)
    if known is not None and not removes:
        raise NotRemembered("known", f"that is remembered there already, as {known.key!r}")
    same = m.same(said)
    if same is None:
        waiting = sum(lesson.first.origin.line == wish.origin.line for lesson in m.pending())
        if waiting >= MOST_WAITING:
            raise NotRemembered("full", f"{MOST_WAITING} lessons of this session wait for a person already")
        return [said]
    return [msgspec.structs.replace(said, lesson=same.ident)]


def accept(m: Memories, ident: str, origin: Origin, why: str = "") -> list[Entry]:
    """A person believes a lesson. Raises NotRemembered, also when what it was made on has changed since."""
    lesson = _waiting(m, ident, rejected=True)
    first = lesson.first
    wish = MemoryRequest(
        first.place, first.key, origin, first.text, first.base, why=why or f"said by {lesson.sightings[0]}"
    )
    done = remove(m, wish, lesson=ident) if first.removes else write(m, wish, lesson=ident)
    return [*done, Decided(lesson=ident, decision="accepted", origin=origin, why=why)]


def promote(m: Memories, said: Proposed, patterns: Sequence[str], witnesses: int) -> list[Entry]:
    """What a rule of the person's makes of one more sighting: the repository's lesson is believed where its key fits
    and as many said so; nothing in any other case, also where a person wrote what stands there or it has changed.
    """
    lesson = m.lessons.get(said.lesson) or Lesson(said)
    pattern = next((one for one in patterns if fnmatchcase(said.key, one)), None)
    lines = {*lesson.lines, said.origin.line}
    if pattern is None or said.scope is not Scope.REPOSITORY or lesson.state != PENDING or len(lines) < witnesses:
        return []
    first = lesson.first
    standing = m.get(first.place, first.key, said.origin.ts)
    if standing is not None and standing.origin.actor is Actor.PERSON:
        return []
    origin = Origin(Actor.HARNESS, said.origin.ts, said.origin.author, said.origin.call)
    why = f"by your rule [memory] promote {pattern!r}; said by {', '.join(sorted(lines))}"
    wish = MemoryRequest(first.place, first.key, origin, first.text, first.base, why=why)
    try:
        done = (remove if first.removes else write)(m, wish, lesson=said.lesson)
    except NotRemembered:
        return []
    return [*done, Decided(lesson=said.lesson, decision="accepted", origin=origin, why=why)]


def reject(m: Memories, ident: str, origin: Origin, why: str = "") -> list[Entry]:
    """A person does not want it: it never enters by being seen again. Raises NotRemembered."""
    _waiting(m, ident, rejected=False)
    return [Decided(lesson=ident, decision=REJECTED, origin=origin, why=why)]


def drop(m: Memories, place: Place, origin: Origin) -> list[Entry]:
    """A session is removed, and its own memory with it."""
    held = any(name[0] == place for name in m.by_key)
    return [Dropped(scope=place.scope, of=place.of, origin=origin)] if held else []


def _waiting(m: Memories, ident: str, *, rejected: bool) -> Lesson:
    lesson = m.lessons.get(ident)
    if lesson is None:
        raise NotRemembered("not_found", f"there is no lesson {ident[:40]!r}")
    if lesson.state != PENDING and not (rejected and lesson.state == REJECTED):
        raise NotRemembered("bad_request", f"lesson {ident} was {lesson.state} already")
    return lesson


def _sound(wish: MemoryRequest) -> None:
    key = wish.key
    if not key.strip() or len(key) > KEY_CHARS or not key.isprintable():
        raise NotRemembered("bad_request", f"a key is 1 to {KEY_CHARS} printable characters")
    try:
        size = len(wish.text.encode())
    except UnicodeEncodeError as exc:
        raise NotRemembered("bad_request", "the text holds half of a surrogate pair, which is no text") from exc
    if not wish.text.strip():
        raise NotRemembered("bad_request", "the text is empty; delete the memory instead")
    if size > TEXT_BYTES:
        raise NotRemembered("too_large", f"the text has {size} bytes, over the limit of {TEXT_BYTES}")
    if what := secret_scan.found(f"{key}\n{wish.text}", wish.known):
        raise NotRemembered("secret", f"the text holds {what}; secrets are never remembered")


def _expected(m: Memories, wish: MemoryRequest) -> Written | None:
    """What stands under the key now. Raises NotRemembered when it is not what was expected."""
    standing = m.get(wish.place, wish.key, wish.origin.ts)
    sha = standing.sha if standing is not None else ABSENT
    shortened = len(wish.expected) >= SHA_CHARS and sha.startswith(wish.expected)
    if wish.expected not in (ANYTHING, sha) and not shortened:
        now = f"it is {sha[:12]} now" if sha else "nothing stands there now"
        wanted = f"on {wish.expected[:12]}" if wish.expected else "where nothing stands"
        raise NotRemembered("precondition", f"{wish.key!r} was to be changed {wanted}, and {now}; look again first")
    return standing


def _version(m: Memories, wish: MemoryRequest, op: str, lesson: str) -> Written:
    memory = m.by_key.get((wish.place, wish.key))
    return Written(
        scope=wish.place.scope,
        of=wish.place.of,
        key=wish.key,
        version=1 if memory is None else memory.newest.version + 1,
        op=op,
        origin=wish.origin,
        text=wish.text,
        before=memory.sha(wish.origin.ts) if memory is not None else "",
        expires=wish.expires,
        lesson=lesson,
        why=wish.why,
    )


def _ident(wish: MemoryRequest, removes: bool) -> str:
    """A short name, the same for the same wish by the same call."""
    what = "\0".join((wish.place.scope, wish.place.of, wish.key, wish.text, wish.origin.author, wish.origin.call))
    return "l" + sha256(f"{removes}\0{what}\0{wish.origin.ts}\0{sha_of(wish.text)}".encode()).hexdigest()[:9]


__all__ = [
    "ABSENT",
    "ANYTHING",
    "MemoryRequest",
    "NotRemembered",
    "Scope",
    "accept",
    "drop",
    "promote",
    "propose",
    "reject",
    "remove",
    "roll_back",
    "write",
]

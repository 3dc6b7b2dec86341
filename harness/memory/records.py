"""What the log of memories holds: every version of every memory, every lesson, and what became of it. Pure."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from typing import ClassVar, NamedTuple, TypeAlias

import msgspec

from harness.events.log_entries import Entries


class Scope(StrEnum):
    """Whose a memory is."""

    SESSION = "session"
    REPOSITORY = "repository"
    USER = "user"


class Place(NamedTuple):
    """A scope and which of its kind: a session's id, a repository's common git folder, nothing for the user."""

    scope: Scope
    of: str = ""


class Actor(StrEnum):
    """Who made a version."""

    AGENT = "agent"
    PERSON = "person"
    HARNESS = "harness"


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who did it, in which session, by which call; ``ts`` is RFC 3339 in UTC. ``root`` is the session that the author
    comes from by forks, empty when it began by itself.
    """

    actor: Actor
    ts: str
    author: str = ""
    call: str = ""
    root: str = ""

    @property
    def line(self) -> str:
        """What all sessions share that come from one by forks: they know of each other, and are one witness."""
        return self.root or self.author


class Written(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version. ``op``: created, modified, deleted, restored (rolled back). ``before`` is the hash that stood there,
    empty for none; ``expires`` is empty for never; ``lesson`` is the one that it came from.
    """

    TYPE: ClassVar[str] = "memory.written"
    scope: Scope
    of: str
    key: str
    version: int
    op: str
    origin: Origin
    text: str = ""
    before: str = ""
    expires: str = ""
    lesson: str = ""
    why: str = ""

    @property
    def place(self) -> Place:
        return Place(self.scope, self.of)

    @property
    def sha(self) -> str:
        """Of the text, in hex; empty when the memory is gone."""
        return "" if self.op == DELETED else sha_of(self.text)


class Proposed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent wants something remembered beyond its session. ``base`` is the hash of what stood under the key then;
    the same ``lesson`` again is another sighting.
    """

    TYPE: ClassVar[str] = "lesson.proposed"
    lesson: str
    scope: Scope
    of: str
    key: str
    text: str
    origin: Origin
    base: str = ""
    removes: bool = False

    @property
    def place(self) -> Place:
        return Place(self.scope, self.of)


class Decided(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``accepted`` or ``rejected``; a rejected lesson never enters by being seen again."""

    TYPE: ClassVar[str] = "lesson.decided"
    lesson: str
    decision: str
    origin: Origin
    why: str = ""


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of a place is gone with its session."""

    TYPE: ClassVar[str] = "memory.dropped"
    scope: Scope
    of: str
    origin: Origin


Entry: TypeAlias = Written | Proposed | Decided | Dropped
CREATED = "created"
MODIFIED = "modified"
DELETED = "deleted"
RESTORED = "restored"


def sha_of(text: str) -> str:
    """The name of a text: its SHA-256 in hex."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_ENTRIES: Entries[Entry] = Entries(
    {Written.TYPE: Written, Proposed.TYPE: Proposed, Decided.TYPE: Decided, Dropped.TYPE: Dropped}
)
decode = _ENTRIES.decode
"""One line of the log; None for a kind that a newer version wrote. Raises msgspec.DecodeError."""

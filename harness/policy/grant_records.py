"""What the log of rules holds: each rule that a person made of a request, each use of one, and each that was taken
back. Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, TypeAlias

import msgspec

from harness.events.body import By
from harness.events.log_entries import Entries
from harness.policy.grants import Wider


class Scope(StrEnum):
    """Whose requests a rule covers."""

    SESSION = "session"
    REPOSITORY = "repository"
    FLEET = "fleet"


class Source(msgspec.Struct, frozen=True):
    """The request that a rule was made from."""

    sid: str
    approval_id: str
    call_id: str
    action_hash: str


class Made(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule. ``of`` is a session's id, a repository's common git folder, or nothing; ``asked_by`` the rule of the
    policy that asked; ``ts`` and ``expires`` are RFC 3339 in UTC; ``count`` is how many calls it lets run; ``typed``:
    the session's name was typed, so that it covers what is critical.
    """

    TYPE: ClassVar[str] = "grant.made"
    grant: str
    scope: Scope
    pattern: dict[str, object]
    words: list[str]
    title: str
    asked_by: str
    source: Source
    by: By
    ts: str
    expires: str
    count: int
    of: str = ""
    wider: Wider = Wider()
    typed: bool = False


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """A rule allowed this action of this call. The same call again, for another action after the world changed, is the
    same use.
    """

    TYPE: ClassVar[str] = "grant.used"
    grant: str
    sid: str
    call_id: str
    action_hash: str
    ts: str


class Revoked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person took a rule back: it allows nothing from here on."""

    TYPE: ClassVar[str] = "grant.revoked"
    grant: str
    by: By
    ts: str
    why: str = ""


Entry: TypeAlias = Made | Used | Revoked

_ENTRIES: Entries[Entry] = Entries({Made.TYPE: Made, Used.TYPE: Used, Revoked.TYPE: Revoked})
decode = _ENTRIES.decode
"""One line of the log; None for a kind that a newer version wrote. Raises msgspec.DecodeError."""

"""Events of what was committed on a session's branch, as the repository has it."""

from __future__ import annotations

import msgspec

from harness.events.body import Body


class Commit(msgspec.Struct, frozen=True):
    """One commit: its short id, and its subject, which is untrusted text."""

    id: str
    subject: str


class WorkCommitted(Body, frozen=True, kw_only=True):
    """The session's branch moved from ``before`` to ``head``; ``commits`` are the new ones, oldest first, the newest
    of them when there are ``more``. None are new when it went back. ``files`` are the first that differ between the
    two.
    """

    TYPE = "work.committed"
    head: str
    before: str
    commits: list[Commit] = []
    more: int = 0
    files: list[str] = []


HELD_BACK = "its newest commits are not on its branch yet"


class WorkHeldBack(Body, frozen=True, kw_only=True):
    """The session's newest commits are not on its branch yet, for ``why``; taking the work brings them in."""

    TYPE = "work.held_back"
    why: str

"""Rules as clients see them. Texts are untrusted: whoever shows them passes the display function."""

from __future__ import annotations

import msgspec

from harness.events.body import By


class UseView(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a rule let run, and when (RFC 3339, UTC)."""

    sid: str
    call_id: str
    action_hash: str
    ts: str = ""


class RevokedView(msgspec.Struct, frozen=True, kw_only=True):
    """Who revoked a rule, when and why."""

    by: By
    ts: str
    why: str


class GrantView(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that lets requests through. ``ended`` says why it covers nothing more (revoked, expired, used up); empty
    while it stands. ``of`` is the session's id or the repository's common git folder; ``by`` who made it, ``uses``
    every call that it let run, the oldest first.
    """

    grant: str
    scope: str
    of: str
    title: str
    words: list[str]
    asked_by: str
    ts: str
    expires: str
    count: int
    typed: bool
    uses: list[UseView]
    ended: str
    sid: str
    approval_id: str
    by: By = By()
    revoked: RevokedView | None = None

    @property
    def last_use(self) -> str:
        """When it let a call run last; empty when it never did."""
        return max((use.ts for use in self.uses), default="")


class PastRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A past request that a rule would have covered; ``decision`` is ``open`` while it waits."""

    sid: str
    session: str
    approval_id: str
    title: str
    ts: str
    decision: str


class GrantPreview(msgspec.Struct, frozen=True, kw_only=True):
    """A rule before it is made: what it says, whether the session's name must be typed, which past requests it would
    have covered, and how many were looked at. ``problem`` says why it cannot be made.
    """

    words: list[str]
    critical: bool
    past: list[PastRequest]
    looked_at: int
    problem: str = ""


class GrantList(msgspec.Struct, frozen=True, kw_only=True):
    """Rules, the oldest first."""

    grants: list[GrantView]


class GrantPreviewed(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of ``grant_preview``."""

    preview: GrantPreview


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The rule is made, and decided this many open requests."""

    grant: GrantView
    decided: int

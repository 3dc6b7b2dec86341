"""What is asked of the process that exports a session, and what it made."""

from __future__ import annotations

import msgspec


class ExportOrder(msgspec.Struct, frozen=True, kw_only=True):
    """``session`` is its folder, ``ledger`` that of the fleet's ledger; ``file`` is made and must not be there.

    ``thin``: commits from the session's start on only, which need its repository to be unpacked. ``checkpoints``: these
    and kept work, too, which hold files that git ignores.
    """

    session: str
    ledger: str
    file: str
    thin: bool = False
    checkpoints: bool = False


class ExportMade(msgspec.Struct, frozen=True, kw_only=True):
    """What was exported: ``seal`` is the bundle's hash, ``commits`` the refs in it."""

    file: str
    bytes: int
    seal: str
    records: int
    payloads: int
    commits: int
    notes: tuple[str, ...]

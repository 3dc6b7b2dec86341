"""What the screen knows at one moment: one frozen snapshot, replaced as a whole, never changed in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Flag, auto
from types import MappingProxyType
from typing import Any

import msgspec

from harness.events.views import ApprovalView, FleetView, SessionRow
from harness.protocol.client import Client, SupervisorError, Unreachable
from harness.protocol.paths import Folders

_NO_ROWS: Mapping[str, SessionRow] = MappingProxyType({})


class Dirty(Flag):
    """Which parts of the snapshot changed since the last tick."""

    NOTHING = 0
    ROWS = auto()
    APPROVALS = auto()
    FLEET = auto()
    LINK = auto()
    EVERYTHING = ROWS | APPROVALS | FLEET | LINK


@dataclass(frozen=True, slots=True)
class Link:
    """The connection to the supervisor: ``connecting``, ``live``, ``mute`` (there, but without an answer) or ``lost``,
    and a sentence for people.
    """

    state: str = "connecting"
    text: str = "looking for the supervisor"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Rows by session id, open requests, totals, and how fresh all of it is."""

    rows: Mapping[str, SessionRow] = field(default_factory=lambda: _NO_ROWS)
    approvals: tuple[ApprovalView, ...] = ()
    fleet: FleetView = field(default_factory=FleetView)
    link: Link = field(default_factory=Link)

    @property
    def live(self) -> bool:
        """True while pushes arrive."""
        return self.link.state == "live"

    def approval(self, approval_id: str) -> ApprovalView | None:
        """The open request of this id."""
        return next((view for view in self.approvals if view.approval_id == approval_id), None)


def first_look(folders: Folders) -> Snapshot:
    """What a supervisor that answers at once knows, so that the first paint already shows it; else an empty
    snapshot.
    """
    try:
        with Client(folders.supervisor_socket, name="tui", timeout=1.0) as client:
            known = client.call("sessions")
            waiting = client.call("approvals")
        return Snapshot(
            rows_of(known["rows"]), approvals_of(waiting["approvals"]), fleet_of(known["fleet"]), Link("live", "")
        )
    except (Unreachable, SupervisorError, msgspec.ValidationError):
        # the feed meets the same and says so on the screen
        return Snapshot()


def rows_of(data: object) -> dict[str, SessionRow]:
    """Rows by id from a reply or push. Raises msgspec.ValidationError."""
    return {row.sid: row for row in msgspec.convert(data, list[SessionRow])}


def approvals_of(data: object) -> tuple[ApprovalView, ...]:
    """Open requests from a reply or push. Raises msgspec.ValidationError."""
    return tuple(msgspec.convert(data, list[ApprovalView]))


def fleet_of(data: object) -> FleetView:
    """Totals from a reply or push. Raises msgspec.ValidationError."""
    return msgspec.convert(data, FleetView)


def merge(rows: Mapping[str, SessionRow], push: dict[str, Any]) -> dict[str, SessionRow]:
    """The rows after a ``rows`` push: changed ones replaced, gone ones dropped."""
    changed = dict(rows) | rows_of(push.get("rows", []))
    for sid in push.get("gone", ()):
        changed.pop(str(sid), None)
    return changed

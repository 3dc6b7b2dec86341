"""What the screen knows at one moment: one frozen snapshot, replaced as a whole, never changed in place."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto
from types import MappingProxyType

import msgspec

from harness.protocol.client import Client, SupervisorError, Unreachable
from harness.protocol.connection.struct_json import STRUCT_JSON
from harness.protocol.connection.transport import UnixSocket
from harness.protocol.paths import Folders
from harness.views import attention
from harness.views.replies import ApprovalsPush, RowsPush
from harness.views.session_views import ApprovalView, FleetView, SessionRow

_NO_ROWS: Mapping[str, SessionRow] = MappingProxyType({})


class Dirty(Flag):
    """Which parts of the snapshot changed since the last tick."""

    NOTHING = 0
    ROWS = auto()
    APPROVALS = auto()
    FLEET = auto()
    LINK = auto()
    EVERYTHING = ROWS | APPROVALS | FLEET | LINK


class Link(msgspec.Struct, frozen=True):
    """The connection to the supervisor: ``connecting``, ``live``, ``mute`` (there, but without an answer) or ``lost``,
    and a sentence for people.
    """

    state: str = "connecting"
    text: str = "looking for the supervisor"


class Snapshot(msgspec.Struct, frozen=True):
    """Rows by session id, open requests, totals, and how fresh all of it is."""

    rows: Mapping[str, SessionRow] = _NO_ROWS
    approvals: tuple[ApprovalView, ...] = ()
    fleet: FleetView = FleetView()
    link: Link = Link()

    @property
    def live(self) -> bool:
        """True while pushes arrive."""
        return self.link.state == "live"

    def approval(self, approval_id: str) -> ApprovalView | None:
        """The open request, or the item of a session that hangs, of this id."""
        if (row := self.rows.get(attention.session_of(approval_id))) is not None:
            return attention.held(row)
        return next((view for view in self.approvals if view.approval_id == approval_id), None)

    def needs(self) -> tuple[ApprovalView, ...]:
        """Everything that needs a person: what the queue shows."""
        return attention.items(self.rows.values(), self.approvals)

    @property
    def names(self) -> dict[str, str]:
        """What the sessions are called, by id."""
        return {sid: row.name for sid, row in self.rows.items()}


WHOLE = frozenset({"rows", "approvals"})
"""The pushes that follow a ``subscribe`` at once; together they say everything."""


class FirstLook(msgspec.Struct, frozen=True):
    """What was known before the first paint, and the connection that goes on saying it (None: nobody answered)."""

    snapshot: Snapshot
    client: Client | None

    def close(self) -> None:
        """Nobody goes on with it."""
        if self.client is not None:
            self.client.close()


def first_look(folders: Folders) -> FirstLook:
    """What a supervisor that answers at once knows, so that the first paint already shows it; else an empty
    snapshot.
    """
    # whatever goes wrong here, the feed meets it too and says so on the screen
    try:
        client = Client(UnixSocket(folders.supervisor_socket), name="tui", timeout=1.0, codec=STRUCT_JSON)
    except (Unreachable, SupervisorError):
        return FirstLook(Snapshot(), None)
    try:
        client.call("subscribe")
        snapshot = Snapshot(link=Link("live", ""))
        missing = set(WHOLE)
        pushes = client.pushes()
        while missing:
            push = next(pushes)
            snapshot, _ = applied(snapshot, push)
            missing.discard(push["push"])
    except (Unreachable, SupervisorError, msgspec.ValidationError, KeyError, TypeError):
        client.close()
        return FirstLook(Snapshot(), None)
    return FirstLook(snapshot, client)


def applied(snapshot: Snapshot, push: Mapping[str, object]) -> tuple[Snapshot, Dirty]:
    """The snapshot after a push, and which parts of it that touched. Raises msgspec.ValidationError, KeyError."""
    if push["push"] == "approvals":
        queue = msgspec.convert(push, ApprovalsPush)
        return msgspec.structs.replace(snapshot, approvals=tuple(queue.approvals)), Dirty.APPROVALS
    if push["push"] != "rows":
        return snapshot, Dirty.NOTHING
    news = msgspec.convert(push, RowsPush)
    dirty = Dirty.FLEET
    if news.rows or news.gone:
        snapshot = msgspec.structs.replace(snapshot, rows=merge(snapshot.rows, news))
        dirty |= Dirty.ROWS
    return msgspec.structs.replace(snapshot, fleet=news.fleet), dirty


def merge(rows: Mapping[str, SessionRow], news: RowsPush) -> dict[str, SessionRow]:
    """The rows after a push: changed ones replaced, gone ones dropped."""
    changed = dict(rows) | {row.sid: row for row in news.rows}
    for sid in news.gone:
        changed.pop(sid, None)
    return changed

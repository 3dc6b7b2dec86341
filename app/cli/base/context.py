"""What every verb needs: the folders, a connection, decoded views."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from app.cli.base.output import safe, warn
from app.client import start_supervisor
from harness.domain.endpoints import sentence
from harness.domain.text.formatting import cap_text, spend, usd
from harness.protocol import identity
from harness.protocol.client import Client, at_rest, reach
from harness.protocol.identity import ForeignState
from harness.protocol.paths import Folders
from harness.views.session_views import FleetView

if TYPE_CHECKING:
    from app.cli.base.offline_fleet import OfflineReader


_UNCUT = 1 << 16
"""Columns where there is no terminal: what reads a pipe wants every line whole."""


class Context(msgspec.Struct, frozen=True):
    """One invocation: where the fleet lives and how wide the terminal is."""

    folders: Folders
    width: int

    def connect(self, *, meant: bool = False) -> Client:
        """A connection to the supervisor; one that has to be started gets the key of our environment, and unless that
        is ``meant`` it is said that a stopped fleet goes on.
        """
        if not meant and at_rest(self.folders):
            warn("watchfloor: the fleet was stopped; this starts it again")
        return start_supervisor.supervisor(
            self.folders, name="cli", tell=lambda text: warn(f"watchfloor: {safe(text)}")
        )

    def reach(self) -> Client:
        """A connection to the supervisor that runs; never starts one."""
        return reach(self.folders, tell=lambda text: warn(f"watchfloor: {safe(text)}"))

    def look(self) -> Client | OfflineReader:
        """The same for a verb that only looks: a fleet that was stopped, and a state folder that must not be driven, is
        read from the disk, and nothing is started.
        """
        if at_rest(self.folders) and identity.look(self.folders.state) is None:
            from app.cli.base.offline_fleet import OfflineReader

            warn("watchfloor: the fleet is stopped, this is what its logs say; start it: watchfloor supervisor start")
            return OfflineReader(self.folders)
        try:
            return self.connect()
        except ForeignState as exc:
            from app.cli.base.offline_fleet import OfflineReader

            warn(f"watchfloor: {safe(exc.foreign.why)}\nwatchfloor: {safe(exc.foreign.hint)}")
            return OfflineReader(self.folders)


def make(folders: Folders) -> Context:
    return Context(folders, shutil.get_terminal_size((_UNCUT, 40)).columns)


def money(fleet: FleetView) -> str:
    """What the fleet spent today and in all, against its caps."""
    today = spend(fleet.spent_today_nano, fleet.unknown_today_nano, usd)
    whole = spend(fleet.spent_total_nano, fleet.unknown_total_nano, usd)
    return f"today {today} of {cap_text(fleet.day_cap_nano)}; in all {whole} of {cap_text(fleet.fleet_cap_nano)}"


def endpoints(fleet: FleetView) -> list[str]:
    """A sentence for each endpoint that does not simply answer, safe to print."""
    now = datetime.now(UTC)
    return [safe(sentence(view, now)) for view in fleet.endpoints]

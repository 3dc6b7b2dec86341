"""What every verb needs: the folders, a connection, decoded views."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from app.cli.output import safe
from harness.events.endpoints import sentence
from harness.events.views import ApprovalView, FleetView, SessionRow
from harness.protocol import config as configuration
from harness.protocol.client import Client, ensure_supervisor
from harness.protocol.paths import Folders

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Context:
    """One invocation: where the fleet lives and how wide the terminal is."""

    folders: Folders
    width: int

    def connect(self) -> Client:
        """A connection to the supervisor, started when needed."""
        drop: tuple[str, ...] = ()
        with contextlib.suppress(configuration.ConfigError):  # the verbs that need settings report it; a look at the floor must still work
            drop = (configuration.load(self.folders).model.api_key_env,)
        return ensure_supervisor(self.folders, drop=drop)


def make(folders: Folders) -> Context:
    return Context(folders, shutil.get_terminal_size((120, 40)).columns)


def convert(value: Any, kind: type[T]) -> T:
    """A reply's part as one of our structs; raises msgspec.ValidationError on a supervisor that speaks otherwise."""
    return msgspec.convert(value, kind)


def rows(reply: dict[str, Any]) -> list[SessionRow]:
    return convert(reply["rows"], list[SessionRow])


def fleet(reply: dict[str, Any]) -> FleetView:
    return convert(reply["fleet"], FleetView)


def endpoints(reply: dict[str, Any]) -> list[str]:
    """A sentence for each endpoint that does not simply answer, safe to print."""
    now = datetime.now(UTC)
    return [safe(sentence(view, now)) for view in fleet(reply).endpoints]


def approvals(reply: dict[str, Any]) -> list[ApprovalView]:
    return convert(reply["approvals"], list[ApprovalView])

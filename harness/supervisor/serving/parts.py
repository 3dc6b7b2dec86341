"""What the operations reach for, and how they read what they were sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from harness.protocol.paths import Folders
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.settings import Settings
from harness.supervisor.calls.approvals import Approvals
from harness.supervisor.calls.queue.granting import Granting
from harness.supervisor.calls.recall import Recall
from harness.supervisor.endpoints.credentials import Credentials
from harness.supervisor.endpoints.endpoint_gates import Gates
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.index import Index
from harness.supervisor.memories.book import MemoryBook
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.serving.server import Fields
from harness.supervisor.sessions.begin.launch import Launcher
from harness.supervisor.sessions.brains import Brains
from harness.supervisor.sessions.conductor import Conductor
from harness.supervisor.sessions.continuing import Continuing
from harness.supervisor.sessions.keepers import Keepers
from harness.supervisor.sessions.restoring import Restoring
from harness.supervisor.sessions.taking.merging import Merging
from harness.supervisor.sessions.taking.pulling import Pulling
from harness.supervisor.sessions.undo import Undo
from harness.supervisor.upkeep import health
from harness.supervisor.upkeep.sandbox_report import SandboxReport


@dataclass(slots=True)
class Parts:
    """Everything the operations reach for."""

    folders: Folders
    epoch: int
    fleet: Fleet
    settings: Settings
    credentials: Credentials
    budget_service: BudgetService
    book: MemoryBook
    recall: Recall
    granting: Granting
    brains: Brains
    gates: Gates
    keepers: Keepers
    conductor: Conductor
    launcher: Launcher
    approvals: Approvals
    index: Index
    sandbox: SandboxReport
    undo: Undo
    restoring: Restoring
    merging: Merging
    pulling: Pulling
    continuing: Continuing
    disk: health.Disk
    stop: Callable[[], Awaitable[None]]


def text_of(message: Fields, name: str, limit: int = 4096) -> str:
    """A field of a message as a text; empty without one. Raises OpError ``bad_request``."""
    value = message.get(name, "")
    if not isinstance(value, str) or len(value) > limit:
        raise OpError("bad_request", f"{name} must be a text of at most {limit} characters")
    return value


def number_of(message: Fields, name: str, default: int, least: int, most: int) -> int:
    """A field of a message as a whole number between bounds. Raises OpError ``bad_request``."""
    value = message.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise OpError("bad_request", f"{name} must be a whole number from {least} to {most}")
    return value

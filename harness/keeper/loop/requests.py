"""What only its supervisor may ask of a keeper, and what it answers. What others may ask too stands in
`harness.protocol.keeper_requests`. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from harness.protocol.connection.op import BadArgument, Op, Yes
from harness.sandbox import limits as call_limits
from harness.vault import limits as undo_limits
from harness.vault.vault_ops import StateExported, StateList, StateTaken

L = TypeVar("L")


def _limits(read: Callable[[object], L]) -> Callable[[object], L]:
    def reads(value: object) -> L:
        try:
            return read(value)
        except ValueError as exc:
            raise BadArgument(str(exc)) from exc

    return reads


_OF_CALLS = {"read": _limits(call_limits.from_wire)}
_OF_UNDO = {"read": _limits(undo_limits.from_wire)}


@dataclass(frozen=True, slots=True)
class GrantLease(Op[Yes]):
    """Let this process, which knows this secret, be the session's agent."""

    OP = "lease"
    gen: int
    epoch: int
    secret: str
    pid: int
    start: int
    boot: str


@dataclass(frozen=True, slots=True)
class EndLease(Op[Yes]):
    """Say that the agent's process is gone."""

    OP = "lease_end"
    gen: int
    reason: str
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class JobLimits:
    """``at_once``: jobs of a session at a time; ``grace_s``: seconds that one has to end when it is asked to."""

    at_once: int = 4
    grace_s: int = 10


@dataclass(frozen=True, slots=True)
class CallBegun:
    """A call has started; or why not: what has changed since it was allowed, or why the state before it cannot be
    kept.
    """

    started: bool = False
    stale: tuple[str, ...] = ()
    unprotected: str = ""


@dataclass(frozen=True, slots=True)
class Execute(Op[CallBegun]):
    """Start a call that was judged, within these limits; without ``jobs`` and ``undo_limits`` those of before hold."""

    OP = "execute"
    call_id: str
    limits: call_limits.Limits = field(default=call_limits.DEFAULT, metadata=_OF_CALLS)
    undo_limits: undo_limits.VaultLimits | None = field(default=None, metadata=_OF_UNDO)
    jobs: JobLimits | None = None


@dataclass(frozen=True, slots=True)
class CancelCall(Op[Yes]):
    """End a running call."""

    OP = "cancel"
    call_id: str


@dataclass(frozen=True, slots=True)
class CancelJob(Op[Yes]):
    """End a running job."""

    OP = "cancel_job"
    job: str


@dataclass(frozen=True, slots=True)
class TakeState(Op[StateTaken]):
    """Keep the worktree as it is now, between two calls. The reply says what differs from state ``since``, and what was
    worked on since ``worked``.
    """

    OP = "snapshot"
    label: str = "state"
    full: bool = False
    since: str | None = None
    worked: str | None = None
    undo_limits: undo_limits.VaultLimits | None = field(default=None, metadata=_OF_UNDO)


@dataclass(frozen=True, slots=True)
class StatesKept(Op[StateList]):
    """The states of the worktree that are kept."""

    OP = "snapshots"


@dataclass(frozen=True, slots=True)
class ExportState(Op[StateExported]):
    """Keep the worktree as it is now, and write what a commit of it takes into the session's folder."""

    OP = "export"
    label: str
    head: str
    ground: str
    since: str
    undo_limits: undo_limits.VaultLimits | None = field(default=None, metadata=_OF_UNDO)


@dataclass(frozen=True, slots=True)
class UndoDone:
    """How an undo ended. With ``error`` not all of it was, and what was is not known."""

    undo_id: str
    call_id: str
    before: str
    written: int = 0
    removed: int = 0
    refused: tuple[str, ...] = ()
    refused_count: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class UndoCall(Op[UndoDone]):
    """Bring ``snapshot``, the state before ``call_id``, back; ``by`` is who asked."""

    OP = "undo"
    undo_id: str
    call_id: str
    snapshot: str
    by: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Shutdown(Op[Yes]):
    """Close the log and leave, once nothing runs; with ``kill`` what runs is cancelled."""

    OP = "shutdown"
    kill: bool = False

"""Who may append which record: the keeper's own records are nobody else's, and a brain has its own. Standard library
only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.domain.calls.call_states import CallStage
from harness.keeper.log.appender import Record
from harness.keeper.log.judged_action import call_of
from harness.keeper.log.state import KeeperState
from harness.keeper.loop.errors import OpError
from harness.protocol.keeper_requests import NewRecord

BRAIN_TYPES = frozenset(
    {
        "user.message",
        "model.request",
        "model.message",
        "model.failed",
        "model.summary",
        "context.cleared",
        "context.compacted",
        "context.kept",
        "context.reset",
        "tool.proposed",
        "iteration.ended",
        "approach.failed",
        "budget.reached",
        "breaker.opened",
        "evaluation.requested",
        "evaluation.ended",
        "contract.drafted",
        "contract.agreed",
        "session.parked",
        "session.ended",
        "harness.note",
    }
)
"""What a brain may append; of ``user.message`` only what does not claim to come from the human."""
KEEPER_TYPES = frozenset(
    {
        "keeper.started",
        "log.recovered",
        "lease.granted",
        "lease.ended",
        "tool.started",
        "tool.in_doubt",
        "undo.started",
        "undo.ended",
        "job.started",
        "job.ended",
        "job.waiting",
    }
)
"""What nobody may append: these records are the keeper's own, written by what it does."""
_MAX_TYPE = 64


def records(memory: KeeperState, role: str, wanted: Iterable[NewRecord]) -> list[Record]:
    """The records that one of this role asks to append. Raises OpError: they are none, or not for this role."""
    found: list[Record] = []
    for one in wanted:
        kind = one.type
        data = one.data
        if not isinstance(kind, str) or not isinstance(data, dict) or not 0 < len(kind) <= _MAX_TYPE:
            raise OpError("bad_request", "each record must be {type: text, data: object}")
        _may_append(memory, role, kind, data)
        found.append((kind, data))
    return found


def _may_append(memory: KeeperState, role: str, kind: str, data: Mapping[str, object]) -> None:
    if kind in KEEPER_TYPES:
        raise OpError("refused", f"{kind} is written by the keeper alone")
    if role == "brain" and (
        kind not in BRAIN_TYPES or (kind == "user.message" and data.get("origin", "human") == "human")
    ):
        raise OpError("refused", f"a brain may not append this {kind}")
    if (
        kind == "tool.ended"
        and (call := call_of(memory, data.get("call_id"))) is not None
        and call.stage == CallStage.STARTED
    ):
        raise OpError("refused", f"call {call.call_id} is running: its end is written by the keeper alone", "cancel it")

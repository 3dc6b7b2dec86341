"""The stages of every call, as a pure fold over plain dicts. Standard library only: the keeper enforces it, the big
fold reuses it.

proposed → judged → (asked → decided) → started → ended | in doubt → resolved. Only ``started`` has outside effects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.domain.calls.call_states import CallStage
from harness.domain.decision import PERMITS, Decision, Ruling


@dataclass(slots=True)
class Call:
    """Where one call stands.

    ``verdict`` is the newest judgement; ``allowed_by`` the unused decision for ``action_hash``.
    """

    call_id: str
    tool: str
    stage: CallStage = CallStage.PROPOSED
    action_hash: str = ""
    verdict: str = ""
    approval_id: str = ""
    allowed_by: str = ""
    used_decisions: list[str] = field(default_factory=list)
    attempt: int = 0
    effect: str = ""
    resolution: str = ""


_ASKABLE = (CallStage.JUDGED, CallStage.ASKED, CallStage.DECIDED)
"""Those in which a decision, or that one is stale, changes what may start."""


class CallError(Exception):
    """A record that must not follow what the log already holds."""


def order(call_id: str) -> tuple[int, int]:
    """Sort key of ``c<seq>.<i>``; raises CallError on another form."""
    head, _, tail = str(call_id).partition(".")
    if not (head[:1] == "c" and head[1:].isascii() and head[1:].isdigit() and tail.isascii() and tail.isdigit()):
        raise CallError(f"call id {call_id[:40]!r} is not of the form c<seq>.<i>")
    return int(head[1:]), int(tail)


def _text(data: Mapping[str, object], name: str) -> str:
    """A field of a record; empty where there is none."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


_NEEDED: dict[str, tuple[str, ...]] = {
    "tool.proposed": ("call_id", "tool"),
    "tool.judged": ("call_id", "verdict", "action_hash"),
    "tool.started": ("call_id", "action_hash", "effect"),
    "tool.ended": ("call_id", "status"),
    "tool.in_doubt": ("call_id",),
    "tool.resolved": ("call_id", "resolution"),
    "approval.requested": ("approval_id",),
    "approval.decided": ("approval_id", "decision_id", "decision"),
    "approval.stale": ("approval_id", "call_id"),
    "approval.withdrawn": ("approval_id",),
    "approval.deferred": ("approval_id",),
}


@dataclass(slots=True)
class OpenCalls:
    """The calls of a session that are not over, by id.

    Ended calls leave it; `last` rejects a proposal that comes twice.
    """

    open: dict[str, Call] = field(default_factory=dict)
    approvals: dict[str, str] = field(default_factory=dict)
    last: tuple[int, int] = (-1, -1)

    def check(self, kind: str, data: Mapping[str, object]) -> None:
        """Raise CallError when the record may not be appended now."""
        for name in _NEEDED.get(kind, ()):
            if not isinstance(data.get(name), str):
                raise CallError(f"{kind}: {name} is missing or not text")
        call_id = _text(data, "call_id")
        approval_id = _text(data, "approval_id")
        if kind == "tool.proposed":
            if order(call_id) <= self.last:
                raise CallError(f"call {call_id} was proposed before")
        elif kind in ("tool.judged", "tool.started", "tool.ended", "tool.in_doubt", "tool.resolved"):
            call = self.open.get(call_id)
            if call is None:
                raise CallError(f"{kind}: call {call_id} is not open")
            if kind == "tool.started" and not self.may_start(call, _text(data, "action_hash")):
                raise CallError(f"call {call.call_id} has no allow verdict or unused decision for this action")
            if kind == "tool.in_doubt" and call.stage != CallStage.STARTED:
                raise CallError(f"call {call.call_id} was not started")
            if kind == "tool.resolved" and call.stage != CallStage.IN_DOUBT:
                raise CallError(f"call {call.call_id} is not in doubt")
            if kind == "tool.judged" and call.stage in (CallStage.STARTED, CallStage.IN_DOUBT):
                raise CallError(f"call {call.call_id} has started already")
        elif kind in ("approval.decided", "approval.withdrawn", "approval.deferred"):
            if approval_id not in self.approvals:
                raise CallError(f"approval {approval_id} is not open")
            call = self.open.get(self.approvals[approval_id])
            if (
                kind == "approval.decided"
                and call is not None
                and data.get("decision") in PERMITS
                and data.get("action_hash") != call.action_hash
            ):
                raise CallError(f"decision on {approval_id} is for another action")
        elif kind == "approval.stale":
            call = self.open.get(call_id)
            if call is None or call.approval_id != approval_id or call.stage not in _ASKABLE:
                raise CallError(f"approval {approval_id} does not belong to a call that waits")
        elif kind == "approval.requested" and approval_id in self.approvals:
            raise CallError(f"approval {approval_id} is open already")

    def may_start(self, call: Call, action_hash: str) -> bool:
        """True when exactly this action may have its effect now."""
        if call.action_hash != action_hash or call.stage not in (CallStage.JUDGED, CallStage.DECIDED):
            return False
        if call.stage == CallStage.JUDGED:
            return call.verdict == Ruling.ALLOW
        return call.verdict in (Ruling.ALLOW, Ruling.ASK) and bool(call.allowed_by)

    def apply(self, kind: str, data: Mapping[str, object]) -> None:
        """Advance by one durable record; records of other kinds, and calls whose id has another form, are ignored."""
        call_id = _text(data, "call_id")
        approval_id = _text(data, "approval_id")
        if kind == "tool.proposed":
            try:
                self.last = max(self.last, order(call_id))
            except CallError:
                return
            self.open[call_id] = Call(call_id, _text(data, "tool"))
        elif kind == "approval.requested":
            self.approvals[approval_id] = call_id
            if call := self.open.get(call_id):
                call.approval_id = approval_id
                if call.stage == CallStage.JUDGED:
                    call.stage = CallStage.ASKED
        elif kind == "approval.decided":
            call = self.open.get(self.approvals.pop(approval_id, ""))
            if call is not None and call.stage in _ASKABLE:
                allow = data.get("decision") == Decision.ALLOW
                if data.get("decision") == Decision.ALLOW_EDITED:
                    # What was asked about is not what was allowed: only the judgement of the edited action, which
                    # follows, may start anything.
                    call.stage = CallStage.PROPOSED
                    call.verdict = ""
                    call.allowed_by = ""
                elif call.stage == CallStage.ASKED or not allow:
                    # A refusal always counts, also one that comes beside an earlier permission.
                    call.stage = CallStage.DECIDED
                    call.allowed_by = _text(data, "decision_id") if allow else ""
        elif kind == "approval.withdrawn":
            self.approvals.pop(approval_id, None)
        elif kind == "approval.stale":
            self.approvals.pop(approval_id, None)
            if (call := self.open.get(call_id)) is not None and call.stage in _ASKABLE:
                call.stage = CallStage.PROPOSED
                call.verdict = ""
                call.allowed_by = ""
        elif (call := self.open.get(call_id)) is not None:
            self._step(kind, call, data)

    def _step(self, kind: str, call: Call, data: Mapping[str, object]) -> None:
        if kind == "tool.judged":
            call.stage = CallStage.JUDGED
            call.verdict = _text(data, "verdict")
            call.action_hash = _text(data, "action_hash")
            call.allowed_by = ""
            call.approval_id = ""
        elif kind == "tool.started":
            call.stage = CallStage.STARTED
            call.effect = _text(data, "effect")
            attempt = data.get("attempt")
            call.attempt = attempt if isinstance(attempt, int) else 1
            if call.allowed_by:
                call.used_decisions.append(call.allowed_by)
                call.allowed_by = ""
        elif kind == "tool.ended":
            del self.open[call.call_id]
        elif kind == "tool.in_doubt":
            call.stage = CallStage.IN_DOUBT
        elif kind == "tool.resolved":
            call.resolution = _text(data, "resolution")
            if _text(data, "resolution") == "confirmed_not_done":
                call.stage = CallStage.PROPOSED
                call.verdict = ""
                call.action_hash = ""
            else:
                del self.open[call.call_id]

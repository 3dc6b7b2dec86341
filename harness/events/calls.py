"""The stages of every call, as a pure fold over plain dicts. Standard library only: the keeper enforces it, the big
fold reuses it.

proposed → judged → (asked → decided) → started → ended | in doubt → resolved. Only ``started`` has outside effects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.events.call_states import CallStage


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

    def check(self, kind: str, data: dict[str, Any]) -> None:
        """Raise CallError when the record may not be appended now."""
        for name in _NEEDED.get(kind, ()):
            if not isinstance(data.get(name), str):
                raise CallError(f"{kind}: {name} is missing or not text")
        if kind == "tool.proposed":
            if order(data["call_id"]) <= self.last:
                raise CallError(f"call {data['call_id']} was proposed before")
        elif kind in ("tool.judged", "tool.started", "tool.ended", "tool.in_doubt", "tool.resolved"):
            call = self.open.get(data["call_id"])
            if call is None:
                raise CallError(f"{kind}: call {data['call_id']} is not open")
            if kind == "tool.started" and not self.may_start(call, data["action_hash"]):
                raise CallError(f"call {call.call_id} has no allow verdict or unused decision for this action")
            if kind == "tool.in_doubt" and call.stage != CallStage.STARTED:
                raise CallError(f"call {call.call_id} was not started")
            if kind == "tool.resolved" and call.stage != CallStage.IN_DOUBT:
                raise CallError(f"call {call.call_id} is not in doubt")
            if kind == "tool.judged" and call.stage in (CallStage.STARTED, CallStage.IN_DOUBT):
                raise CallError(f"call {call.call_id} has started already")
        elif kind in ("approval.decided", "approval.withdrawn", "approval.deferred"):
            if data["approval_id"] not in self.approvals:
                raise CallError(f"approval {data['approval_id']} is not open")
            call = self.open.get(self.approvals[data["approval_id"]])
            if (
                kind == "approval.decided"
                and call is not None
                and data["decision"] in ("allow", "allow_edited")
                and data.get("action_hash") != call.action_hash
            ):
                raise CallError(f"decision on {data['approval_id']} is for another action")
        elif kind == "approval.stale":
            call = self.open.get(data["call_id"])
            if call is None or call.approval_id != data["approval_id"] or call.stage not in _ASKABLE:
                raise CallError(f"approval {data['approval_id']} does not belong to a call that waits")
        elif kind == "approval.requested" and data["approval_id"] in self.approvals:
            raise CallError(f"approval {data['approval_id']} is open already")

    def may_start(self, call: Call, action_hash: str) -> bool:
        """True when exactly this action may have its effect now."""
        if call.action_hash != action_hash or call.stage not in (CallStage.JUDGED, CallStage.DECIDED):
            return False
        if call.stage == CallStage.JUDGED:
            return call.verdict == "allow"
        return call.verdict in ("allow", "ask") and bool(call.allowed_by)

    def apply(self, kind: str, data: dict[str, Any]) -> None:
        """Advance by one durable record; records of other kinds, and calls whose id has another form, are ignored."""
        if kind == "tool.proposed":
            try:
                self.last = max(self.last, order(data["call_id"]))
            except CallError:
                return
            self.open[data["call_id"]] = Call(data["call_id"], data["tool"])
        elif kind == "approval.requested":
            self.approvals[data["approval_id"]] = data.get("call_id", "")
            if call := self.open.get(data.get("call_id", "")):
                call.approval_id = data["approval_id"]
                if call.stage == CallStage.JUDGED:
                    call.stage = CallStage.ASKED
        elif kind == "approval.decided":
            call = self.open.get(self.approvals.pop(data["approval_id"], ""))
            if call is not None and call.stage in _ASKABLE:
                allow = data["decision"] == "allow"
                if data["decision"] == "allow_edited":
                    # What was asked about is not what was allowed: only the judgement of the edited action, which
                    # follows, may start anything.
                    call.stage = CallStage.PROPOSED
                    call.verdict = ""
                    call.allowed_by = ""
                elif call.stage == CallStage.ASKED or not allow:
                    # A refusal always counts, also one that comes beside an earlier permission.
                    call.stage = CallStage.DECIDED
                    call.allowed_by = data["decision_id"] if allow else ""
        elif kind == "approval.withdrawn":
            self.approvals.pop(data["approval_id"], None)
        elif kind == "approval.stale":
            self.approvals.pop(data["approval_id"], None)
            if (call := self.open.get(data.get("call_id", ""))) is not None and call.stage in _ASKABLE:
                call.stage = CallStage.PROPOSED
                call.verdict = ""
                call.allowed_by = ""
        elif (call := self.open.get(data.get("call_id", ""))) is not None:
            self._step(kind, call, data)

    def _step(self, kind: str, call: Call, data: dict[str, Any]) -> None:
        if kind == "tool.judged":
            call.stage = CallStage.JUDGED
            call.verdict = data["verdict"]
            call.action_hash = data["action_hash"]
            call.allowed_by = ""
            call.approval_id = ""
        elif kind == "tool.started":
            call.stage = CallStage.STARTED
            call.effect = data["effect"]
            call.attempt = data.get("attempt", 1)
            if call.allowed_by:
                call.used_decisions.append(call.allowed_by)
                call.allowed_by = ""
        elif kind == "tool.ended":
            del self.open[call.call_id]
        elif kind == "tool.in_doubt":
            call.stage = CallStage.IN_DOUBT
        elif kind == "tool.resolved":
            call.resolution = data["resolution"]
            if data["resolution"] == "confirmed_not_done":
                call.stage = CallStage.PROPOSED
                call.verdict = ""
                call.action_hash = ""
            else:
                del self.open[call.call_id]

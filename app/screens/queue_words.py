"""What the queue calls its decisions: what approving a request does, and what is said when one was taken. Pure."""

from __future__ import annotations

from harness.events.request import Request
from harness.events.views import ApprovalView

_APPROVAL: dict[str, tuple[str, str]] = {
    Request.PROTECTED: ("accept", "lets its version count from now on"),
    Request.PLAN: ("accept plan", "accepts the plan; the work begins"),
    Request.GATE: ("go on", "lets the phase go on"),
}
_DONE_OF: dict[tuple[str, str], str] = {
    (Request.QUESTION, "done"): "taken as finished",
    (Request.PROTECTED, "allow"): "allowed; its version counts from now on",
    (Request.PROTECTED, "deny"): "denied; the originals stay",
    (Request.PLAN, "allow"): "accepted; the work begins",
    (Request.PLAN, "deny"): "sent back with your words",
    (Request.GATE, "allow"): "the phase goes on",
    (Request.GATE, "deny"): "the session is paused; resumed, it asks again",
}
_DONE = {
    "allow": "approved; it runs now, once",
    "allow_edited": "approved as edited",
    "deny": "denied; the agent reads your reason",
    "answer": "answered",
    "raise": "cap raised",
    "finish": "finishing up",
    "stop": "stopping",
    "done": "recorded as done",
    "failed": "recorded as not done",
    "unknown": "recorded as unknown",
    "retry": "trying again",
}


def approving(view: ApprovalView) -> bool:
    """True when something runs, or is taken as it is, once this is approved."""
    return bool({"allow", "retry"} & set(view.options))


def approval(view: ApprovalView) -> tuple[str, str]:
    """What approving this kind of request is called, and what it does."""
    if "allow" not in view.options:
        return "try again", "tries again"
    return _APPROVAL.get(view.kind, ("approve", "approves exactly this, once"))


def done(view: ApprovalView, decision: str) -> str:
    """What is said when a decision was taken."""
    return _DONE_OF.get((view.kind, decision)) or _DONE.get(decision, decision)

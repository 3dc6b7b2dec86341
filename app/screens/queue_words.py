"""What the queue calls its decisions: what approving a request does, and what is said when one was taken. Pure."""

from __future__ import annotations

from harness.domain.calls.approval_kind import Request
from harness.domain.decision import Decision
from harness.views.session_views import ApprovalView

_APPROVAL: dict[str, tuple[str, str]] = {
    Request.PROTECTED: ("accept", "lets this count from now on"),
    Request.PLAN: ("accept plan", "accepts the plan; the work begins"),
    Request.GATE: ("go on", "lets the phase go on"),
}
_DONE_OF: dict[tuple[str, str], str] = {
    (Request.QUESTION, Decision.DONE): "taken as finished",
    (Request.PROTECTED, Decision.ALLOW): "allowed; it counts from now on",
    (Request.PROTECTED, Decision.DENY): "denied; the originals stay",
    (Request.PLAN, Decision.ALLOW): "accepted; the work begins",
    (Request.PLAN, Decision.DENY): "sent back with your words",
    (Request.GATE, Decision.ALLOW): "the phase goes on",
    (Request.GATE, Decision.DENY): "the session is paused; resumed, it asks again",
}
_DONE: dict[str, str] = {
    Decision.ALLOW: "approved; it runs now, once",
    Decision.ALLOW_EDITED: "approved as edited",
    Decision.DENY: "denied; the agent reads your reason",
    Decision.ANSWER: "answered",
    Decision.RAISE: "cap raised",
    Decision.FINISH: "finishing up",
    Decision.STOP: "stopping",
    Decision.DONE: "recorded as done",
    Decision.FAILED: "recorded as not done",
    Decision.UNKNOWN: "recorded as unknown",
    Decision.RETRY: "trying again",
    Decision.FRESH: "it begins anew with a hand-off",
    Decision.BELIEVE: "believed as far as it can be",
}


_ASKING: dict[str, tuple[str, str, str]] = {
    Decision.STOP: (
        "Stop",
        "The request is refused and its agent ends. The worktree, the branch and the log stay.",
        "stop it",
    ),
    Decision.FINISH: (
        "Finish up",
        "The agent gets one last reply, which is paid for beyond the cap; then the session ends.",
        "finish up",
    ),
    Decision.DONE: ("Was done, in", "The agent is told that the call had its effect, and goes on.", "was done"),
    Decision.FAILED: ("Was not done, in", "The agent is told that the call had no effect, and goes on.", "not done"),
    Decision.FRESH: (
        "Begin anew",
        "A hand-off built from its log takes the place of the conversation. Log, worktree and branch stay as they are.",
        "begin anew",
    ),
    Decision.BELIEVE: (
        "Believe the endpoint of",
        "It goes on. Each reply with a usage that cannot be counts as what was reserved for it, and nobody is asked"
        " again.",
        "believe it",
    ),
    Decision.UNKNOWN: ("Unknown, in", "The agent is told that nobody knows, and to look before it repeats.", "unknown"),
}
_FINISHED = ("Take as finished", "The session ends here as done, and its question gets no answer.", "finished")


def asking(view: ApprovalView, decision: str) -> tuple[str, str, str]:
    """What is asked before such a decision: of what, what follows, and what the key that sends it is called."""
    ends = view.kind == Request.QUESTION and decision == Decision.DONE
    return _FINISHED if ends else _ASKING[decision]


def approving(view: ApprovalView) -> bool:
    """True when something runs, or is taken as it is, once this is approved."""
    return bool({Decision.ALLOW, Decision.RETRY} & set(view.options))


def approval(view: ApprovalView) -> tuple[str, str]:
    """What approving this kind of request is called, and what it does."""
    if Decision.ALLOW not in view.options:
        return "try again", "tries again"
    return _APPROVAL.get(view.kind, ("approve", "approves exactly this, once"))


def done(view: ApprovalView, decision: str) -> str:
    """What is said when a decision was taken."""
    return _DONE_OF.get((view.kind, decision)) or _DONE.get(decision, decision)

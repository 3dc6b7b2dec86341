"""Why a key of the queue does nothing now: sentences about the request on screen, empty when the key does something.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from app.screens.dialogs.deciding import input_of
from harness.domain import problems
from harness.domain.calls.approval_kind import Request
from harness.domain.decision import Decision
from harness.views.session_views import ApprovalView

Refusal: TypeAlias = Callable[[ApprovalView], str]
NOTHING = "no request is selected"
IN_DOUBT = "no call is in doubt in this request"


def unless(sentence: str, *options: str) -> Refusal:
    """Says the sentence unless the request offers one of the options."""
    return lambda view: "" if set(options) & set(view.options) else sentence


not_stopping = unless("this request does not offer to stop its session", "stop")


def shown(view: ApprovalView) -> str:
    """Something is on screen, and that is enough."""
    return ""


def not_deferrable(view: ApprovalView) -> str:
    """It is put off already."""
    if view.deferred is None or view.kind not in problems.NO_REQUEST:
        return ""
    return "it is put off already; open its session to see what helps"


def no_changes(view: ApprovalView) -> str:
    """It has no comparison of a file."""
    return "" if view.diff else "this request changes no file"


def not_editable(view: ApprovalView) -> str:
    """Its input cannot be changed."""
    editable = Decision.ALLOW_EDITED in view.options and input_of(view) is not None
    return "" if editable else "this request has no input that could be edited"


def alone(like: Sequence[ApprovalView]) -> str:
    """Its group is itself."""
    return "" if len(like) > 1 else "no other open request is like this one"


def no_rule(view: ApprovalView) -> str:
    """No rule can be made of it."""
    return "" if view.kind == Request.TOOL else "only a call that asks to leave the sandbox can get a rule"


def not_in_doubt(view: ApprovalView) -> str:
    """It is not about a call that may have had its effect."""
    return "" if "done" in view.options and view.kind != Request.QUESTION else IN_DOUBT


def not_finished(view: ApprovalView) -> str:
    """It does not ask whether the session is finished."""
    asks = "done" in view.options and view.kind == Request.QUESTION
    return "" if asks else "this request does not ask whether the session is finished"

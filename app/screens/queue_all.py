"""Deciding the same request of several sessions at once: which are meant, and the one question before it."""

from __future__ import annotations

from collections.abc import Sequence

from app.screens.dialogs import Confirm
from harness.events.views import ApprovalView

_NAMED = 8


def same(view: ApprovalView, group: Sequence[ApprovalView]) -> list[ApprovalView]:
    """The requests of a group that differ from this one in nothing but call and worktree, itself first."""
    others = [one for one in group if view.same and one.same == view.same and one.approval_id != view.approval_id]
    return [view, *others]


def refusal(view: ApprovalView, group: Sequence[ApprovalView]) -> str:
    """Why nothing can be decided at once here; empty when it can."""
    if len(group) > 1 and not view.same:
        return "what is critical is decided one by one"
    return "" if len(same(view, group)) > 1 else "no other open request is the same as this one"


def question(chosen: Sequence[ApprovalView]) -> Confirm:
    """The last look before all of them run."""
    names = ", ".join(one.session_name[:32] for one in chosen[:_NAMED])
    more = f" and {len(chosen) - _NAMED} more" if len(chosen) > _NAMED else ""
    text = (
        f"Each is decided alone, for exactly the action that its session asks for, and runs once. They ask for the"
        f" same as the card that you have seen: {chosen[0].title[:160]}. Sessions: {names}{more}."
    )
    return Confirm("Approve", f"{len(chosen)} requests", text, "approve all of them")

"""Requests that are alike as one item of the queue, which unfolds. Pure: what is alike the supervisor says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harness.views.session_views import ApprovalView


@dataclass(frozen=True, slots=True)
class QueueItem:
    """One line of the queue. ``size`` counts the requests of its group, itself included; ``inside``: it stands below
    the first of its group.
    """

    view: ApprovalView
    size: int = 1
    inside: bool = False


def items(views: Sequence[ApprovalView], unfolded: Collection[str], selected: str) -> list[QueueItem]:
    """The queue with each group at the place of its first request, folded unless ``unfolded`` has its name.

    A folded group is shown as the request that is selected when it is one of it, so that folding and new requests
    never move the selection.
    """
    groups: dict[str, list[ApprovalView]] = {}
    for view in views:
        groups.setdefault(_name(view), []).append(view)
    found: list[QueueItem] = []
    for name, group in groups.items():
        if name in unfolded:
            found += [QueueItem(view, len(group), inside=index > 0) for index, view in enumerate(group)]
        else:
            shown = next((view for view in group if view.approval_id == selected), group[0])
            found.append(QueueItem(shown, len(group)))
    return found


def alike(views: Sequence[ApprovalView], approval_id: str) -> list[ApprovalView]:
    """The group of a request, itself included; empty when it is not there."""
    name = next((_name(view) for view in views if view.approval_id == approval_id), None)
    return [view for view in views if name is not None and _name(view) == name]


def _name(view: ApprovalView) -> str:
    return view.alike or view.approval_id

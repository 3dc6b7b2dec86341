"""In which order sessions stand in the list, and in which lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harness.domain.states import State
from harness.views.session_views import DONE, ERRORS, GROUPS, NEEDS_YOU, REVIEW, RUNNING, SessionRow


def ordered(rows: Iterable[SessionRow]) -> list[SessionRow]:
    """Floor order: by group; who waits or stands longest first, running in order of launch, newest ending first.

    Stable between pushes.
    """
    groups: dict[str, list[SessionRow]] = {name: [] for name in GROUPS}
    for row in rows:
        groups.get(row.group, groups[RUNNING]).append(row)
    for name in (NEEDS_YOU, ERRORS):
        groups[name].sort(key=lambda r: (r.since, r.sid))
    groups[RUNNING].sort(key=lambda r: (r.created, r.sid))
    for name in (REVIEW, DONE):
        groups[name].sort(key=lambda r: (r.last_ts, r.sid), reverse=True)
    return [row for name in GROUPS for row in groups[name]]


class SessionItem(msgspec.Struct, frozen=True):
    """One screen line: a group title (``row`` None) with its count and how many beside those stand still, or part 0/1
    of a session.
    """

    group: str
    row: SessionRow | None = None
    part: int = 0
    count: int = 0
    parked: int = 0


def layout(rows: list[SessionRow], selected: str, *, dense: bool) -> list[SessionItem]:
    """The lines of the list. Dense shows one line a session, and the second one only for the selected."""
    items: list[SessionItem] = []
    for group in GROUPS:
        members = [r for r in rows if (r.group if r.group in GROUPS else RUNNING) == group]
        if not members:
            continue
        parked = sum(row.state == State.PARKED for row in members) if group == RUNNING else 0
        items.append(SessionItem(group, count=len(members) - parked, parked=parked))
        for row in members:
            items.append(SessionItem(group, row, 0))
            if not dense or row.sid == selected:
                items.append(SessionItem(group, row, 1))
    return items

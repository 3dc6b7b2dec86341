"""What needs a person, from one source for the floor, the queue and the command line: every open request, and every
session that something holds up or that failed and that asks nothing. Pure.

A session is in the floor's groups `NEEDS_YOU` or `ERRORS` exactly when it has an item here.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.domain.calls.approval_kind import SPOKEN
from harness.domain.problems import HELD, RINGS
from harness.domain.text.formatting import line
from harness.views.session_views import ERRORS, ApprovalView, SessionRow

_PREFIX = "held:"
DO = "do"
COMMAND = "do it with"
"""Where the detail of an item has what to do in words, and the command that does it."""
_LOOK = "open it to see what happened"


def session_of(item_id: str) -> str:
    """The session that an item without a request is about; empty for the id of a request."""
    return item_id.removeprefix(_PREFIX) if item_id.startswith(_PREFIX) else ""


def held(row: SessionRow) -> ApprovalView | None:
    """The item of a session that stands still, failed, or rings; with what to do in words; None when nothing is wrong.

    It takes no decision: what helps is done to the session itself. One that was put off is deferred, and stays.
    """
    if row.group != ERRORS:
        return None
    said = {
        "goal": line(row.goal),
        DO: row.do or _LOOK,
        COMMAND: row.command,
        "next": row.next,
        "seen in": row.evidence,
    }
    return ApprovalView(
        approval_id=_PREFIX + row.sid,
        sid=row.sid,
        session_name=row.name,
        kind=RINGS if row.alarms else HELD,
        title=row.detail or row.state,
        options=[],
        risk="low",
        ts=row.since,
        seq=-1,
        detail={name: text for name, text in said.items() if text},
        repo=row.repo,
        branch=row.branch,
        deferred=row.put_off or None,
    )


def items(rows: Iterable[SessionRow], requests: Iterable[ApprovalView]) -> tuple[ApprovalView, ...]:
    """The whole queue: the requests as they are ordered, then the sessions that hang, the longest first."""
    hanging = [item for row in rows if (item := held(row)) is not None]
    return (*requests, *sorted(hanging, key=lambda item: (item.ts, item.sid)))


def question_of(requests: Iterable[ApprovalView], sid: str) -> ApprovalView | None:
    """What a session asks and words can answer: the oldest such request, a deferred one only when there is no other."""
    asked = [v for v in requests if v.sid == sid and v.kind in SPOKEN]
    fit = [v for v in asked if "answer" in v.options]
    return min(fit, key=lambda v: (v.deferred is not None, v.seq), default=None)

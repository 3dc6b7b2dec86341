"""A model endpoint that is not simply answering, as a client sees it: one struct, and its sentence for a person."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from harness.domain.calls.approval_kind import Request
from harness.domain.text.formatting import due, parse_ts

DOWN = "down"
LIMITED = "limited"
PERSON = "needs a person"
ITEM_KINDS = frozenset((Request.AUTH, Request.ENDPOINT))
"""Kinds of the one request that an endpoint has for all its sessions.

It holds none of them: when it is answered, or the endpoint answers, all go on.
"""


class EndpointView(msgspec.Struct, frozen=True, omit_defaults=True):
    """An endpoint that is not answering as it should. An endpoint that answers has none.

    ``state``: `DOWN` and `LIMITED` wait by themselves until ``next_try``; `PERSON` waits for the answer to
    ``approval_id``. ``why`` holds the endpoint's own words, so it is untrusted text. Times are UTC RFC 3339;
    ``next_try`` is empty while a try is under way or when none is planned. ``model`` is set when only that model is
    refused.
    """

    url: str
    state: str
    since: str
    why: str
    next_try: str = ""
    waiting: int = 0
    model: str = ""
    asking: bool = False
    """One session's request is out to see whether it answers again."""
    approval_id: str = ""


def sentence(view: EndpointView, now: datetime) -> str:
    """``https://… is down since 02:10 (connection refused); next try in 40s; 3 sessions wait``, in the reader's time
    zone.
    """
    what = f"{view.url} " + (f"(model {view.model}) " if view.model else "")
    parts = [f"{what}{_STATES.get(view.state, view.state)} since {_clock(view.since, now)} ({view.why})"]
    if view.asking:
        parts.append("it is being asked again")
    elif left := due(view.next_try, now.timestamp()):
        parts.append(f"next try {left}")
    elif view.state == PERSON:
        parts.append(
            f"answer request {view.approval_id}" if view.approval_id else "a request in the queue says what to do"
        )
    if view.waiting:
        parts.append(f"{view.waiting} session{'s wait' if view.waiting != 1 else ' waits'}")
    return "; ".join(parts)


def standing(view: EndpointView) -> str:
    """The same for a row, with times that stay true while it is shown: ``endpoint down since 02:10 (…); next try at
    02:14:30``.
    """
    now = datetime.now(UTC)
    what = (
        "endpoint"
        f" {'of ' + view.model + ' ' if view.model else ''}{_STATES.get(view.state, view.state).removeprefix('is ')}"
    )
    text = f"{what} since {_clock(view.since, now)} ({view.why})"
    if view.asking:
        return f"{text}; it is being asked again"
    if (at := _parse(view.next_try)) is not None:
        return f"{text}; next try at {at.astimezone():%H:%M:%S}"
    return f"{text}; all sessions go on when request {view.approval_id} is answered" if view.approval_id else text


_STATES = {DOWN: "is down", LIMITED: "limits us", PERSON: "needs you"}


def _clock(ts: str, now: datetime) -> str:
    at = _parse(ts)
    if at is None:
        return "an unknown time"
    local = at.astimezone()
    return local.strftime("%H:%M") if (now - at).total_seconds() < 20 * 3600 else local.strftime("%d %b %H:%M")


def _parse(ts: str) -> datetime | None:
    at = parse_ts(ts)
    return None if at is None else datetime.fromtimestamp(at, UTC)

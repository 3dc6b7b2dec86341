"""What is said of an endpoint's gate: to a person who is asked, to who looks, on the row of a session in line."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

from harness.domain import endpoints
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.attempt import AttemptKind
from harness.domain.decision import Decision
from harness.domain.endpoints import EndpointView
from harness.events import types as t
from harness.protocol.config.config import Config
from harness.supervisor.base import ids
from harness.supervisor.endpoints import endpoint_gate as g
from harness.supervisor.endpoints.endpoint_gate import Key

_MESSAGE = 300
_WHY = {
    AttemptKind.NETWORK: "it cannot be reached",
    AttemptKind.OVERLOADED: "it is overloaded",
    AttemptKind.SERVER: "it fails",
    AttemptKind.PAGE: "something else answers in its place",
    AttemptKind.CUT: "it cuts its replies off",
    AttemptKind.RATE_LIMIT: "its rate limit is reached",
    AttemptKind.AUTH: "it refuses the key",
    AttemptKind.SPEND_LIMIT: "the account cannot pay",
    AttemptKind.MODEL_UNKNOWN: "it does not know this model",
    AttemptKind.NO_KEY: "there is no key for it",
    AttemptKind.REDIRECT: "it sends us elsewhere",
    AttemptKind.DETOUR: "it sends us elsewhere for now",
}
_STATES = {g.DOWN: endpoints.DOWN, g.LIMITED: endpoints.LIMITED, g.PERSON: endpoints.PERSON}


def boottime() -> float:
    """Seconds that count while the machine sleeps, so that what is due is due when it wakes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def how_to_set(config: Config) -> str:
    """What a person sets so that there is a key, in words."""
    if config.model.api_key_file:
        return f"put the key into {config.model.api_key_file}: it is seen by itself, and all sessions go on"
    return (
        f"set {config.model.api_key_env} in a terminal and retry from there, or write the key into a file and name that"
        f" in {config.file} (api_key_file below [model]): a file is seen by itself. All sessions go on at once"
    )


_HERE = "nothing is sent there, because the key belongs to this address alone"
_ADDRESS = "set model.base_url to the right address and launch the session again"


def request(key: Key, gate: g.Gate, how: str) -> t.ApprovalRequested:
    """What a person is asked about a gate that needs one; ``how`` a key is set."""
    said = f": {gate.message[:_MESSAGE]}" if gate.message else ""
    title = {
        AttemptKind.NO_KEY: f"no key for {key.url}",
        AttemptKind.AUTH: f"{key.url} refuses the key{said}",
        AttemptKind.SPEND_LIMIT: f"the account at {key.url} cannot pay{said}",
        AttemptKind.MODEL_UNKNOWN: f"{key.url} does not know the model {key.model}{said}",
        AttemptKind.REDIRECT: f"{key.url} sends its requests elsewhere{said}",
        AttemptKind.DETOUR: f"{key.url} has sent its requests elsewhere for {g.DETOUR_S / 60:.0f} minutes{said}",
    }[gate.why]
    todo = {
        AttemptKind.NO_KEY: how,
        AttemptKind.AUTH: f"the key is wrong: {how}; or make this one valid, and retry",
        AttemptKind.SPEND_LIMIT: (
            f"pay or raise the limit; it is asked again every {g.SPEND_LOOK_S / 60:.0f} minutes, or when you retry"
        ),
        AttemptKind.MODEL_UNKNOWN: (
            "retry when the endpoint knows the model, or stop the session and launch it with another"
        ),
        AttemptKind.REDIRECT: f"{_HERE}: retry when it answers itself, or {_ADDRESS}",
        AttemptKind.DETOUR: (
            f"{_HERE}; it is asked again every {g.SPEND_LOOK_S / 60:.0f} minutes, or when you retry. If it never"
            f" answers itself, {_ADDRESS}"
        ),
    }[gate.why]
    detail: dict[str, object] = {
        "base_url": key.url,
        "endpoint": key.label,
        "why": gate.why,
        "message": gate.message[:_MESSAGE],
        "todo": todo,
    }
    kind = Request.AUTH if gate.why in (AttemptKind.AUTH, AttemptKind.NO_KEY) else Request.ENDPOINT
    return t.ApprovalRequested(
        approval_id=ids.approval_id(),
        kind=kind,
        title=title,
        options=[Decision.RETRY, Decision.STOP],
        risk="medium",
        detail=detail,
    )


def view(key: Key, gate: g.Gate, approval_id: str) -> EndpointView:
    """A closed gate as a client sees it. ``approval_id``: the open request that says so, or empty."""
    asking = gate.retried or (gate.probe != "" and gate.probe not in gate.line)
    later = "" if asking or gate.next_try == math.inf else wall(gate.next_try)
    return EndpointView(
        url=key.url,
        state=_STATES[gate.state],
        since=wall(gate.since),
        why=_why(gate),
        next_try=later,
        waiting=len(gate.line),
        model=key.model,
        asking=asking,
        approval_id=approval_id,
    )


def in_line(key: Key, gate: g.Gate, sid: str, approval_id: str, now: float) -> str:
    """What a session waits for at a gate; empty when it does not stand in its line, or need not wait long."""
    if sid not in gate.line:
        return ""
    if gate.state != g.OPEN:
        return endpoints.standing(view(key, gate, approval_id))
    if now < gate.ramp_end:  # it was closed until a moment ago
        return "its turn comes in a moment: the endpoint answers again"
    return ""


def _why(gate: g.Gate) -> str:
    said = _WHY.get(gate.why, gate.why)
    if gate.message and gate.why == AttemptKind.PAGE:
        said = gate.message[:_MESSAGE]  # it says what answers
    elif gate.message:
        said += f": {gate.message[:_MESSAGE]}"
    if gate.asked_wait_s > g.LONGEST_OBEYED_S:
        said += f"; it asks to wait until {_day(gate.asked_wait_s)}, and is asked again every hour"
    return said


def _day(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%d %b %Y %H:%M")
    except (OverflowError, ValueError, OSError):
        return "a time beyond every calendar"


def wall(at: float) -> str:
    """A time of our clock as UTC RFC 3339, to the second: it must not move because it was converted again."""
    return datetime.fromtimestamp(round(time.time() + at - boottime()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""Errors on demand: what can go wrong with a request, and the book of what shall go wrong next."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any

from harness.simulator.errors import KINDS, ApiError

STATUS = {
    "overloaded": 529,
    "rate_limit": 429,
    "auth": 401,
    "server": 500,
    "permission": 403,
    "timeout": 504,
    "spend_limit": 402,
    "page": 200,
}
REPLY_KINDS = ("flood", "usage", "empty")
"""Whose fault is the reply itself."""
STREAM_KINDS = ("stream_error", "cut", "stall", "trickle", "pings", *REPLY_KINDS)
_MESSAGES = {
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    401: "invalid x-api-key",
    402: (
        "Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade or purchase credits."
    ),
    403: "Your API key does not have permission to use the specified resource",
    429: "This request would exceed your organization's rate limit. Please try again later.",
    500: "Internal server error",
    504: "Request timed out",
    529: "Overloaded",
}


class FaultError(ValueError):
    """A fault's description cannot be used; the message names the member."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    ``kind``: a status by name (``overloaded``, ``rate_limit``, ``auth``, ``server``, ``permission``, ``timeout``,
    ``spend_limit``), any ``status``, ``page`` (``body``, which may be empty, with status 200, as a login page comes),
    or inside the reply: ``stream_error`` (an error event), ``cut`` (the connection ends), ``stall`` (silence for
    ``seconds``, then it goes on), ``trickle`` (``rate`` bytes a second), ``pings`` (nothing but one every ``every``
    seconds for ``seconds``). The latter happen after ``after_bytes`` bytes of the body. ``flood``: the reply is a text
    of ``size`` bytes, whatever ``max_tokens`` says. ``headers`` come with a status error; ``body`` of ``content_type``
    comes instead of the vendor's error, as a gateway in between would send it.
    """

    kind: str
    status: int = 0
    message: str = ""
    error: str = "overloaded_error"
    retry_after: float | None = None
    after_bytes: int = 0
    seconds: float = 3600.0
    every: float = 1.0
    rate: int = 200
    size: int = 20_000_000
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    content_type: str = "text/html"
    usage: tuple[tuple[str, object], ...] = ()

    @property
    def in_stream(self) -> bool:
        return self.kind in STREAM_KINDS

    def as_error(self) -> ApiError:
        """The answer for a fault that comes instead of a reply."""
        status = self.status or STATUS[self.kind]
        headers = {
            **({} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}),
            **dict(self.headers),
        }
        return ApiError(
            status,
            self.message or _MESSAGES.get(status, "Simulated failure"),
            headers=headers,
            page=self.body if self.body or self.kind == "page" else None,
            page_type=self.content_type,
        )


def parse_fault(raw: object) -> Fault:
    """From JSON or TOML. Raises FaultError."""
    if not isinstance(raw, dict):
        raise FaultError("a fault is an object with a member 'kind'")
    known = {f.name for f in fields(Fault)}
    if unknown := sorted(set(raw) - known):
        raise FaultError(f"{unknown[0]}: unknown member of a fault; known: {', '.join(sorted(known))}")
    kind = raw.get("kind")
    if kind == "status":
        status = raw.get("status")
        if not isinstance(status, int) or not 300 <= status <= 599:
            raise FaultError("status: must be a whole number from 300 to 599")
    elif kind not in STATUS and kind not in STREAM_KINDS:
        raise FaultError(f"kind: must be one of status, {', '.join((*STATUS, *STREAM_KINDS))}")
    if raw.get("error", "overloaded_error") not in KINDS.values():
        raise FaultError(f"error: must be one of {', '.join(KINDS.values())}")
    headers = raw.get("headers", {})
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        raise FaultError("headers: must be an object of texts")
    if not isinstance(usage := raw.get("usage", {}), dict):
        raise FaultError("usage: must be an object")
    for name in ("body", "content_type", "message"):
        if not isinstance(raw.get(name, ""), str):
            raise FaultError(f"{name}: must be a text")
    for name in ("after_bytes", "seconds", "every", "rate", "retry_after", "status", "size"):
        value = raw.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise FaultError(f"{name}: must be a number, 0 or more")
    for name in ("rate", "every"):
        if raw.get(name, 1) == 0:
            raise FaultError(f"{name}: must be above 0")
    return Fault(**{**raw, "headers": tuple(headers.items()), "usage": tuple(usage.items())})


@dataclass(slots=True)
class Rule:
    """``fault`` strikes ``times`` requests that match, after letting ``skip`` of them pass; those with more than
    ``over`` bytes and at least ``replies`` earlier replies.
    """

    fault: Fault
    times: int = 1
    skip: int = 0
    key: str | None = None
    goal: re.Pattern[str] | None = None
    over: int = 0
    replies: int = 0

    def matches(self, key: str, goal: str, size: int, replies: int) -> bool:
        """Whether it is about this request."""
        return (
            (self.key is None or self.key == key)
            and (self.goal is None or self.goal.search(goal) is not None)
            and (size > self.over or not self.over)
            and replies >= self.replies
        )


@dataclass(slots=True)
class FaultBook:
    """Rules set through the control endpoint, tried in order; and how often each turn's own faults have struck."""

    rules: list[Rule] = field(default_factory=list)
    attempts: dict[str, int] = field(default_factory=dict)

    def add(self, raw: dict[str, Any]) -> Rule:
        """``{kind, …, times?, skip?, key?, goal?, over?, replies?}``. Raises FaultError."""
        scope = {name: raw.pop(name) for name in ("times", "skip", "key", "goal", "over", "replies") if name in raw}
        for name in ("times", "skip", "over", "replies"):
            if name in scope and (isinstance(scope[name], bool) or not isinstance(scope[name], int) or scope[name] < 0):
                raise FaultError(f"{name}: must be a whole number, 0 or more")
        try:
            goal = re.compile(scope["goal"]) if "goal" in scope else None
        except (re.error, TypeError) as exc:
            raise FaultError(f"goal: not a regular expression: {exc}") from exc
        rule = Rule(
            parse_fault(raw),
            scope.get("times", 1),
            scope.get("skip", 0),
            scope.get("key"),
            goal,
            scope.get("over", 0),
            scope.get("replies", 0),
        )
        self.rules.append(rule)
        return rule

    def take(self, key: str, goal: str, size: int = 0, replies: int = 0) -> Fault | None:
        """The fault that strikes this request, used up."""
        for rule in self.rules:
            if not rule.matches(key, goal, size, replies):
                continue
            if rule.skip > 0:
                rule.skip -= 1
                continue
            rule.times -= 1
            if rule.times <= 0:
                self.rules.remove(rule)
            return rule.fault if rule.times >= 0 else None
        return None

    def of_turn(self, conversation: str, faults: tuple[Fault, ...]) -> Fault | None:
        """The n-th fault of a turn strikes the n-th attempt at it; then the turn succeeds."""
        if not faults:
            return None
        n = self.attempts.get(conversation, 0)
        self.attempts[conversation] = n + 1
        return faults[n] if n < len(faults) else None

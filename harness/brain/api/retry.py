"""What a failed attempt means: its class, who may mend it, how long the endpoint asks to wait, and whether it may have
cost money.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import anthropic
import httpx2

from harness.brain.api import refusals
from harness.brain.api.errors import Overdue, TooLarge
from harness.brain.api.refusals import Answer
from harness.domain.calls.attempt import AttemptKind
from harness.events.types import Usage

_MESSAGE_LIMIT = 2000

_MOVED = frozenset((301, 308))
_LIMITS = ("requests", "tokens", "input-tokens", "output-tokens")
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
_STREAM = "text/event-stream"
_API_PATH = "/v1/messages"
_WEB = ("text/html", "application/xhtml+xml")
LOG_IN = "it answers with a web page: log in to the network?"
_OURS = (Overdue, TooLarge, anthropic.APITimeoutError, httpx2.ReadTimeout)
"""We hung up: the reply may have been on its way."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt without a usable reply.

    ``usage`` = what it surely cost; None = nobody knows, so it counts as spent in full.
    """

    kind: AttemptKind
    message: str
    status: int = 0
    retry_after_s: float | None = None
    usage: Usage | None = None
    bytes: int = 0
    """Of a request that is refused for its length."""


def classify(exc: Exception, begun: bool = True) -> Failure:
    """The failure that an exception of the SDK, of its HTTP layer or of the decoding of a stream stands for.

    Nothing of a reply was paid for that had not ``begun`` when the other end gave up.
    """
    failure = _classified(exc)
    if begun or failure.usage is not None or isinstance(exc, _OURS):
        return failure
    return replace(failure, usage=Usage())


def _classified(exc: Exception) -> Failure:
    if isinstance(exc, anthropic.APIStatusError):
        return _status(exc)
    if isinstance(exc, (Overdue, TooLarge)):
        return Failure(AttemptKind.CUT if isinstance(exc, Overdue) else AttemptKind.TOO_LARGE, str(exc))
    if isinstance(exc, anthropic.APITimeoutError):
        return Failure(AttemptKind.NETWORK, "the endpoint did not answer in time", usage=_if_unsent(exc))
    if isinstance(
        exc.__cause__, (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL, UnicodeError)
    ):
        # never with the library's words: they quote the header, and with it the key
        return Failure(
            AttemptKind.INVALID,
            f"the base URL or the key cannot be used: {type(exc.__cause__).__name__}",
            usage=Usage(),
        )
    if isinstance(exc, anthropic.APIConnectionError):
        return Failure(
            AttemptKind.NETWORK, _say("cannot reach the endpoint", exc.__cause__ or exc), usage=_if_unsent(exc)
        )
    if isinstance(exc, httpx2.ReadTimeout):
        return Failure(AttemptKind.CUT, "the reply stood still: not a byte of it came for too long")
    if isinstance(exc, (httpx2.HTTPError, httpx2.StreamError, OSError)):
        return Failure(AttemptKind.NETWORK, _say("the connection broke during the reply", exc))
    return Failure(AttemptKind.CUT, _say("the reply could not be read", exc))


def _status(exc: anthropic.APIStatusError) -> Failure:
    if 300 <= exc.status_code < 400:
        return _elsewhere(exc)
    message = (exc.api_message or exc.message or "").strip()[:_MESSAGE_LIMIT] or f"HTTP status {exc.status_code}"
    answer = Answer(exc.status_code, str(exc.type or ""), exc.error_code or "", message, isinstance(exc.body, dict))
    kind = refusals.kind_of(answer)
    if kind == AttemptKind.MODEL_UNKNOWN and "model" not in message.lower():
        message = f"the endpoint does not know this address or model: {message}"
    elif kind == AttemptKind.PAGE:
        message = f"a proxy in between wants you to log in to the network (status {exc.status_code})"
    wait_s = _retry_after(exc.response)
    if wait_s is None and exc.status_code == 429:
        wait_s = used_up_s(exc.response.headers)
    in_stream = exc.status_code == 200  # after the stream began: tokens may have been billed
    return Failure(kind, message, exc.status_code, wait_s, None if in_stream else Usage())


def no_stream(response: httpx2.Response, body: bytes) -> Failure:
    """A success that is no stream of events: whatever answers, no reply was begun."""
    kind = content_type(response)
    if kind in _WEB or body[:64].lstrip()[:9].lower().startswith((b"<!doctype", b"<html")):
        title = _TITLE.search(body)
        named = f" (“{' '.join(title[1].decode('utf-8', 'replace').split())}”)" if title else ""
        return Failure(AttemptKind.PAGE, f"{LOG_IN}{named}", response.status_code, usage=Usage())
    if not body.strip():
        return Failure(AttemptKind.PAGE, "it answers with nothing", response.status_code, usage=Usage())
    try:
        told: object = json.loads(body)
    except ValueError:
        told = None
    if isinstance(told, dict) and isinstance(told.get("error"), dict):
        return replace(_status(_error(response, body.decode("utf-8", "replace"))), usage=Usage())
    if kind == _STREAM:
        return Failure(AttemptKind.CUT, "its stream ended before a reply began", response.status_code, usage=Usage())
    what = f"{kind or 'something of no type'} where a stream of events was asked for"
    return Failure(AttemptKind.PAGE, f"it answers with {what}", response.status_code, usage=Usage())


def content_type(response: httpx2.Response) -> str:
    """The type of its body, without parameters."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()[:80]


def _error(response: httpx2.Response, data: str) -> anthropic.APIStatusError:
    """The error that a body tells of."""
    try:
        body: object = json.loads(data)
    except ValueError:
        body = data
    return anthropic.APIStatusError(str(body) or f"Error code: {response.status_code}", response=response, body=body)


def _elsewhere(exc: anthropic.APIStatusError) -> Failure:
    """A redirect, which is not followed.

    It asks for a login to the network when it leads away from the API and is temporary, or brings a web page: captive
    portals also redirect permanently. Any other permanent one needs a person; any other temporary one may end by
    itself.
    """
    location = exc.response.headers.get("location", "").strip()[:200]
    where = repr(location) if location else "an address that it does not name"
    login = bool(location) and not _path(location).endswith(_API_PATH)
    if exc.status_code in _MOVED and not (login and content_type(exc.response) in _WEB):
        return Failure(AttemptKind.REDIRECT, f"it has moved to {where} for good", exc.status_code, usage=Usage())
    kind = AttemptKind.PAGE if login else AttemptKind.DETOUR
    why = f"it redirects to {where}" + (": log in to the network?" if login else " for now")
    return Failure(kind, why, exc.status_code, _retry_after(exc.response), usage=Usage())


def _path(location: str) -> str:
    try:
        return urlsplit(location).path.rstrip("/")
    except ValueError:
        return ""


def _if_unsent(exc: Exception) -> Usage | None:
    cause = exc.__cause__
    return Usage() if isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)) else None


def _say(what: str, exc: BaseException) -> str:
    detail = str(exc).strip() or type(exc).__name__
    return f"{what}: {detail}"[:_MESSAGE_LIMIT]


def _retry_after(response: httpx2.Response) -> float | None:
    """Seconds that the endpoint asks to wait: ``retry-after-ms``, or ``retry-after`` (a number or a date) when that is
    longer.
    """
    ms = response.headers.get("retry-after-ms", "").strip()
    waits = [float(ms) / 1000] if re.fullmatch(r"\d{1,12}(\.\d+)?", ms) else []
    value = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,12}(\.\d+)?", value):
        waits.append(float(value))
    elif value:
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            waits.append(_until(parsedate_to_datetime(value)))
    return max(waits, default=None)


def used_up_s(headers: Mapping[str, str]) -> float | None:
    """Seconds until every rate limit of which nothing is left is filled again (``anthropic-ratelimit-*``); None when
    something is left of each.
    """
    waits = []
    for name in _LIMITS:
        if headers.get(f"anthropic-ratelimit-{name}-remaining", "").strip() == "0":
            try:
                waits.append(
                    _until(datetime.fromisoformat(headers.get(f"anthropic-ratelimit-{name}-reset", "").strip()))
                )
            except (ValueError, OverflowError):
                continue
    return max(waits, default=None)


def _until(at: datetime) -> float:
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())

"""What a failed attempt means: its class, who may mend it, how long the endpoint asks to wait, and whether it may have
cost money.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import anthropic
import httpx2

from harness.brain.errors import Overdue, TooLarge
from harness.events.attempt import AttemptKind
from harness.events.types import Usage

_MESSAGE_LIMIT = 2000

_MOVED = frozenset((301, 308))
_LIMITS = ("requests", "tokens", "input-tokens", "output-tokens")
_SPEND_CODES = re.compile(r"spend_limit|ramp_limit|billing|credit|on_hold|contract", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"prompt is too long|context (window|length)|too many (input )?tokens"
    r"|exceeds? (the )?(model'?s )?(maximum )?context",
    re.IGNORECASE,
)
_BY_TYPE = {
    "authentication_error": AttemptKind.AUTH,
    "permission_error": AttemptKind.AUTH,
    "billing_error": AttemptKind.SPEND_LIMIT,
    "rate_limit_error": AttemptKind.RATE_LIMIT,
    "overloaded_error": AttemptKind.OVERLOADED,
    "api_error": AttemptKind.SERVER,
    "timeout_error": AttemptKind.SERVER,
    "gateway_timeout_error": AttemptKind.SERVER,
    "not_found_error": AttemptKind.MODEL_UNKNOWN,
    "invalid_request_error": AttemptKind.INVALID,
    "request_too_large": AttemptKind.INVALID,
}
_BY_STATUS = {
    401: AttemptKind.AUTH,
    402: AttemptKind.SPEND_LIMIT,
    403: AttemptKind.AUTH,
    404: AttemptKind.MODEL_UNKNOWN,
    408: AttemptKind.NETWORK,
    409: AttemptKind.SERVER,
    429: AttemptKind.RATE_LIMIT,
    499: AttemptKind.NETWORK,
    529: AttemptKind.OVERLOADED,
}


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


def too_long(kind: str, message: str) -> bool:
    """True for an ``invalid`` failure whose message says that the prompt does not fit the context window."""
    return kind == AttemptKind.INVALID and bool(_TOO_LONG.search(message))


def classify(exc: Exception) -> Failure:
    """The failure that an exception of the SDK, of its HTTP layer or of the decoding of a stream stands for."""
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
    code = exc.error_code or ""
    kind_of_error = str(exc.type or "")
    kind = _BY_TYPE.get(kind_of_error)
    if kind is None:
        fails = exc.status_code >= 500 or exc.status_code == 200
        fallback = AttemptKind.SERVER if fails else AttemptKind.INVALID
        kind = _BY_STATUS.get(exc.status_code, fallback)
        if (
            not kind_of_error
            and exc.status_code in (403, 404)
            and not (kind == AttemptKind.MODEL_UNKNOWN and "model" in message.lower())
        ):
            kind = (
                AttemptKind.SERVER
            )  # a proxy or a captive portal in between: the API says which kind of error it means
        if kind == AttemptKind.INVALID and exc.status_code != 413 and not isinstance(exc.body, dict):
            kind = AttemptKind.SERVER  # the API answers in JSON; a page says nothing of the request, but for its size
    if exc.status_code == 402 or (code and _SPEND_CODES.search(code)):
        kind = AttemptKind.SPEND_LIMIT
    if kind == AttemptKind.MODEL_UNKNOWN and "model" not in message.lower():
        message = f"the endpoint does not know this address or model: {message}"
    in_stream = exc.status_code == 200  # an error event after the stream began: tokens may have been billed
    # what says no error type of the API came from a gateway before it, instead of a reply: none was begun
    free = not in_stream and (exc.status_code < 500 or not kind_of_error or kind_of_error in _BY_TYPE)
    wait_s = _retry_after(exc.response)
    if wait_s is None and exc.status_code == 429:
        wait_s = used_up_s(exc.response.headers)
    return Failure(kind, message, exc.status_code, wait_s, Usage() if free else None)


def _elsewhere(exc: anthropic.APIStatusError) -> Failure:
    """A redirect, which is not followed: one that is meant for good needs a person, any other may end by itself."""
    location = exc.response.headers.get("location", "").strip()[:200]
    where = repr(location) if location else "an address that it does not name"
    if exc.status_code in _MOVED:
        return Failure(AttemptKind.REDIRECT, f"it has moved to {where} for good", exc.status_code, usage=Usage())
    return Failure(
        AttemptKind.DETOUR,
        f"it redirects to {where} for now",
        exc.status_code,
        _retry_after(exc.response),
        usage=Usage(),
    )


def _if_unsent(exc: Exception) -> Usage | None:
    cause = exc.__cause__
    return Usage() if isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)) else None


def _say(what: str, exc: BaseException) -> str:
    detail = str(exc).strip() or type(exc).__name__
    return f"{what}: {detail}"[:_MESSAGE_LIMIT]


def _retry_after(response: httpx2.Response) -> float | None:
    """Seconds that the endpoint asks to wait: ``retry-after-ms``, ``retry-after`` as a number or as a date."""
    ms = response.headers.get("retry-after-ms", "")
    if re.fullmatch(r"\d{1,12}(\.\d+)?", ms):
        return float(ms) / 1000
    value = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", value):
        return float(value)
    if value:
        try:
            return _until(parsedate_to_datetime(value))
        except ValueError:
            return None
    return None


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
            except ValueError:
                continue
    return max(waits, default=None)


def _until(at: datetime) -> float:
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())

"""What an answer means that is no reply: one table, read from the top; the first line that fits counts. Pure.

An endpoint says it by a status, by the API's error types, or in words only, in as many spellings as there are servers
that speak this API. Whatever answers in another form than the API's JSON stands in between.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.domain.calls.attempt import AttemptKind

_Kind = AttemptKind


@dataclass(frozen=True, slots=True)
class Answer:
    """``type`` and ``code`` as the body names them; ``api``: the body is the JSON object of an error."""

    status: int
    type: str = ""
    code: str = ""
    message: str = ""
    api: bool = True

    @property
    def words(self) -> str:
        """All that it says of the reason."""
        return f"{self.type} {self.code} {self.message}"


@dataclass(frozen=True, slots=True)
class _Line:
    """An answer fits when it fits everything that is given here."""

    kind: AttemptKind
    statuses: frozenset[int] = frozenset()
    types: frozenset[str] = frozenset()
    words: re.Pattern[str] | None = None
    code: re.Pattern[str] | None = None
    api: bool | None = None

    def fits(self, answer: Answer) -> bool:
        """Whether this line says what the answer means."""
        return (
            (not self.statuses or answer.status in self.statuses)
            and (not self.types or answer.type in self.types)
            and (self.api is None or answer.api == self.api)
            and (self.code is None or self.code.search(answer.code) is not None)
            and (self.words is None or self.words.search(answer.words) is not None)
        )


def _says(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


def _types(*names: str) -> frozenset[str]:
    return frozenset(names)


def _of(*statuses: int) -> frozenset[int]:
    return frozenset(statuses)


_SPENT = _says("spend_limit", "ramp_limit", "billing", "credit", "on_hold", "contract")
_BROKE = _says(r"credit balance is too low", r"\binsufficient_(quota|balance|funds)\b")
_LONG = _says(
    r"(prompt|input|request|conversation) is too long",
    r"context_length_exceeded",
    r"context[ _-]?(window|length|size|limit)",
    r"too many (input |prompt )?tokens",
    r"exceeds? (the )?(model'?s )?(maximum )?context",
    r"maximum (number of )?(input|prompt) tokens",
    r"(input|prompt) (token count|length)\b.*\bexceeds",
    r"reduce the length of (the|your) (messages|prompt|input)",
)
_BIG = _says(
    r"(request|payload|entity|body) (is )?too large",
    r"maximum (request|body|payload) size",
    r"maximum allowed number of bytes",
)
_NO_MODEL = _says(
    r"model[ _]not[ _]found",
    r"(unknown|no such|invalid) model\b",
    r"\bmodel\b.{0,80}\b(does not exist|not found|is not available)",
)
_MESSAGE = re.compile(r" messages\b", re.IGNORECASE)
"""The message begins with the part of the request that it is about."""
_HISTORY = _says(
    r"\bmessages\b\W{0,2}(\d|\[)",
    r"\b(thinking|redacted_thinking|signature|tool_use|tool_result|tool_call(s|_id)?)\b",
    r"cannot be (modified|changed)",
    r"\broles?\b.{0,40}\b(alternat|must be|order)",
    r"(first|last|final) (message|block|assistant)",
    r"assistant (message )?prefill",
    r"(image|document|pdf|base64|media)\b.{0,60}\b(invalid|exceed|could not|unsupported|process|large|dimension)",
    r"(invalid|unsupported|could not process)\b.{0,40}\b(image|document|pdf|base64|media|unicode|surrogate|utf-?8)",
    r"(empty|whitespace) (text|content)|(text|content)\b.{0,40}\b(must be non-?empty|must contain non-whitespace)",
    r"content filter|content management policy|blocked by",
)
_SETTING = _says(
    r"\bmax_tokens\b",
    r"\banthropic-(beta|version)\b|\bbeta (header|feature)",
    r"\b(system|tool_choice|temperature|top_[pk]|metadata|stream|output_config|output_format|betas?)\s*[:.]",
    r"\b(context_management|thinking\.(type|budget_tokens))\b",
    r"\btools\W{0,2}(\d|\[|:)",
    r"(unknown|unexpected|unsupported|extra|unrecognized) (field|parameter|input|argument|property|value)",
    r"extra inputs are not permitted",
    r"(does not|doesn'?t) support (tools?|tool use|streaming|thinking|system)",
)
_REFUSED = _of(400, 404, 409, 413, 422)
"""Statuses with which servers refuse a request for what stands in it."""

TABLE: tuple[_Line, ...] = (
    _Line(_Kind.SPEND_LIMIT, statuses=_of(402)),
    _Line(_Kind.SPEND_LIMIT, code=_SPENT),
    _Line(_Kind.SPEND_LIMIT, types=_types("billing_error")),
    _Line(_Kind.SPEND_LIMIT, statuses=_of(400, 403, 429), words=_BROKE),
    # a request that is too long is told in words only; some servers fail at it
    _Line(_Kind.TOO_LONG, statuses=_REFUSED | _of(200, 500), words=_LONG, api=True),
    _Line(_Kind.TOO_BIG, statuses=_of(413)),
    _Line(_Kind.TOO_BIG, types=_types("request_too_large")),
    _Line(_Kind.TOO_BIG, statuses=_REFUSED, words=_BIG, api=True),
    # what stands between us and the API wants somebody to log in
    _Line(_Kind.PAGE, statuses=_of(407, 511)),
    _Line(_Kind.AUTH, types=_types("authentication_error", "permission_error")),
    _Line(_Kind.RATE_LIMIT, types=_types("rate_limit_error")),
    _Line(_Kind.OVERLOADED, types=_types("overloaded_error")),
    _Line(_Kind.SERVER, types=_types("api_error", "timeout_error", "gateway_timeout_error")),
    _Line(_Kind.MODEL_UNKNOWN, types=_types("not_found_error")),
    _Line(_Kind.AUTH, statuses=_of(401)),
    _Line(_Kind.RATE_LIMIT, statuses=_of(429)),
    _Line(_Kind.OVERLOADED, statuses=_of(529)),
    _Line(_Kind.NETWORK, statuses=_of(408, 499)),
    _Line(_Kind.SERVER, statuses=_of(421, 423, 425)),
    # the API says in JSON which kind of error it means: a page comes from a proxy and says nothing of the request
    _Line(_Kind.SERVER, api=False),
    _Line(_Kind.MODEL_UNKNOWN, statuses=_REFUSED, words=_NO_MODEL),
    _Line(_Kind.AUTH, statuses=_of(451)),
    _Line(_Kind.AUTH, statuses=_of(403), types=_types("forbidden", "permission_denied", "access_denied")),
    _Line(_Kind.SERVER, statuses=_of(403)),
    _Line(_Kind.MODEL_UNKNOWN, statuses=_of(404), words=_says(r"\bmodel\b")),
    _Line(_Kind.SERVER, statuses=_of(404)),
    _Line(_Kind.MODEL_UNKNOWN, statuses=_of(405, 410, 415, 501, 505)),
    _Line(_Kind.HISTORY, statuses=_of(200, 400, 422), words=_MESSAGE),
    _Line(_Kind.SETTING, statuses=_of(400, 422), words=_SETTING),
    _Line(_Kind.HISTORY, statuses=_of(200, 400, 409, 422), types=_types("invalid_request_error"), words=_HISTORY),
    _Line(_Kind.HISTORY, statuses=_of(400, 422), words=_HISTORY),
    _Line(_Kind.SERVER, statuses=_of(409)),
    _Line(_Kind.INVALID, types=_types("invalid_request_error")),
)


def kind_of(answer: Answer) -> AttemptKind:
    """What the answer means: by the table, else a failure of the endpoint or a refusal of the request."""
    found = next((line.kind for line in TABLE if line.fits(answer)), None)
    if found is not None:
        return found
    return _Kind.SERVER if answer.status >= 500 or answer.status == 200 else _Kind.INVALID


_NUMBER = r"(\d[\d,_]*)"
_MOST_OUTPUT = re.compile(
    rf"max_tokens\W{{1,3}}\d[\d,_]*\s*>\s*{_NUMBER}"
    rf"|max_tokens\b.{{0,80}}?(?:at most|less than or equal to|maximum(?: value)? (?:is|of)|<=)\s*{_NUMBER}",
    re.IGNORECASE,
)


def most_output(message: str) -> int:
    """The longest reply that may be asked for, as a refusal of a longer one names it; 0 when it names none."""
    found = _MOST_OUTPUT.search(message)
    if found is None:
        return 0
    digits = re.sub(r"\D", "", next(filter(None, found.groups()), ""))
    return int(digits) if 0 < len(digits) <= 9 else 0

"""What an attempt to ask a model came to, as brain, gate and records spell it, and who may mend it. Standard library
only.
"""

from __future__ import annotations

from enum import StrEnum


class AttemptKind(StrEnum):
    """What an attempt came to."""

    OK = "ok"
    """A reply that can be used."""
    ANSWERED = "answered"
    """The endpoint works, whatever it said of this request."""
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    """It fails, or something before it does."""
    NETWORK = "network"
    """It cannot be reached, or the connection broke."""
    PAGE = "page"
    """Something else answers in its place: a page to log in to the network, a proxy."""
    CUT = "cut"
    """The reply ended before it was complete."""
    DETOUR = "detour"
    """It sends us elsewhere for now: ends by itself, or is an address that a person has to mend."""
    REDIRECT = "redirect"
    """It has moved for good."""
    AUTH = "auth"
    """It refuses the key."""
    NO_KEY = "no_key"
    """There is no key for it."""
    SPEND_LIMIT = "spend_limit"
    """The account cannot pay."""
    MODEL_UNKNOWN = "model_unknown"
    INVALID = "invalid"
    """The request itself is refused."""
    SETTING = "setting"
    """A setting of the request is refused, which stands in every other one too."""
    HISTORY = "history"
    """What was said so far is refused: a request without it would be taken."""
    TOO_LONG = "too_long"
    """The request has more tokens than the model takes in."""
    TOO_BIG = "too_big"
    """The request has more bytes than the endpoint takes."""
    MAX_TOKENS = "max_tokens"
    """The model was cut off within a call of a tool."""
    TOO_LARGE = "too_large"
    """The reply is larger than is taken."""
    UNUSABLE = "unusable"
    """The reply is whole, and no reply."""


LIMITS = frozenset((AttemptKind.RATE_LIMIT,))
WAITS = LIMITS | {
    AttemptKind.OVERLOADED,
    AttemptKind.SERVER,
    AttemptKind.NETWORK,
    AttemptKind.PAGE,
    AttemptKind.CUT,
    AttemptKind.DETOUR,
}
"""What ends by itself."""
NEEDS_PERSON = frozenset(
    (
        AttemptKind.AUTH,
        AttemptKind.SPEND_LIMIT,
        AttemptKind.MODEL_UNKNOWN,
        AttemptKind.NO_KEY,
        AttemptKind.REDIRECT,
    )
)
LOOKED_AT = frozenset((AttemptKind.SPEND_LIMIT, AttemptKind.DETOUR))
"""What needs a person and may yet end without one."""
AT_THE_GATE = WAITS | NEEDS_PERSON - {AttemptKind.NO_KEY}
"""Trouble of the endpoint, not of the conversation: the supervisor's gate says when to ask again, for as long as it
takes.
"""
NO_REPLY = frozenset((AttemptKind.MAX_TOKENS, AttemptKind.TOO_LARGE, AttemptKind.UNUSABLE))
"""The endpoint did its part, and what the model wrote is no reply: it is told why, and the request goes out again."""
OVERFLOWS = frozenset((AttemptKind.TOO_LONG, AttemptKind.TOO_BIG))
"""A shorter request would be taken."""
REFUSED = frozenset((AttemptKind.INVALID, AttemptKind.HISTORY))
"""A request without what was said so far may be taken."""

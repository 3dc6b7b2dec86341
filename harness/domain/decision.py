"""What the policy says of an action and what a person says to a request, as logs and sockets spell it. Pure, standard
library only.

A record may hold a word that is none of these: it is shown, and equals none.
"""

from __future__ import annotations

from enum import StrEnum


class Ruling(StrEnum):
    """What the policy says of an action, from the mildest on."""

    ALLOW = "allow"
    ASK = "ask"
    """A person."""
    DENY = "deny"


class Decision(StrEnum):
    """What a person says to a request; each request offers some of them."""

    ALLOW = "allow"
    ALLOW_EDITED = "allow_edited"
    """Not what was asked for, but this."""
    DENY = "deny"
    ANSWER = "answer"
    """In words, which the agent reads."""
    RAISE = "raise"
    """The cap."""
    FINISH = "finish"
    """With what is left of it."""
    RETRY = "retry"
    FRESH = "fresh"
    """With a context that begins anew."""
    BELIEVE = "believe"
    """What an endpoint reports, as far as it can be."""
    STOP = "stop"
    """The session."""
    DONE = "done"
    """The work, or a call of which nobody saw the end."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """How a call ended, also to the person."""


PERMITS = frozenset((Decision.ALLOW, Decision.ALLOW_EDITED))
"""Those after which a call may run."""

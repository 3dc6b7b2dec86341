"""Where a call stands and how it ended, as logs and sockets spell it. Pure, standard library only.

A record may hold a word that is none of these: it is shown, and equals none.
"""

from __future__ import annotations

from enum import StrEnum


class CallStage(StrEnum):
    """Where a call stands that is not over."""

    PROPOSED = "proposed"
    JUDGED = "judged"
    ASKED = "asked"
    """A person is asked about it."""
    DECIDED = "decided"
    STARTED = "started"
    """It may have had its effect."""
    IN_DOUBT = "in_doubt"
    """It was started, and nobody saw its end."""


class CallEnd(StrEnum):
    """How a call ended: the status of its end."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    DENIED = "denied"
    """By the policy, or by a person."""
    REFUSED = "refused"
    """It could not be started, or the harness would not."""
    CANCELLED = "cancelled"


NOT_RUN = frozenset((CallEnd.DENIED, CallEnd.REFUSED, CallEnd.CANCELLED))
"""How a call ends whose output says nothing of the work."""

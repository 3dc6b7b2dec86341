"""What a session is at, what is wanted of it, and why its agent left, as logs, rows and sockets spell it. Pure,
standard library only.

A record or a row may hold a word that is none of these: it is shown, and equals none.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """What a session is at; the state of its row, and for `OVER` the outcome of its end."""

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    """For a person's answer."""
    PARKED = "parked"
    LIMITED = "limited"
    """Something holds it up that ends by itself."""
    LOST = "lost"
    """Its log's process is gone."""
    DONE = "done"
    FAILED = "failed"
    """It ended without its goal, or was set aside because a part of it failed too often."""
    STOPPED = "stopped"
    UNKNOWN = "unknown"
    """Nobody looked, or its log does not say."""


OVER = frozenset((State.DONE, State.FAILED, State.STOPPED))
"""Those in which it does not go on before a person says so."""


class Desired(StrEnum):
    """What a person wants of a session."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


class ParkedFor(StrEnum):
    """Why an agent left: there was nothing to think about before something else happens."""

    APPROVAL = "approval"
    PAUSED = "paused"
    CAP = "cap"
    LIMITED = "limited"
    """Its endpoint is not to be asked now."""
    AUTH = "auth"
    """Its endpoint refuses its key."""
    ENDPOINT = "endpoint"
    """Its endpoint refuses for another reason that only a person can mend."""
    BREAKER = "breaker"
    """It went in circles."""
    ERROR = "error"
    HISTORY = "history"
    """Its endpoint refuses what was said so far."""
    BILL = "bill"
    """Its endpoint reports again and again a usage that cannot be."""
    QUESTION = "question"
    """Its reply ends by asking."""
    REFUSAL = "refusal"
    """The model refused."""
    JUDGE = "judge"
    """Its judge is not satisfied, or gives no verdict."""
    JOB = "job"
    """A job of it is at work."""

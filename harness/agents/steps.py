"""What an agent wants next, as data. The host carries it out; each is safe to be wanted twice.

Nothing here has an effect outside the session's log: what a call does is judged by the supervisor and run by the
keeper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.domain.states import ParkedFor
from harness.events import types as t
from harness.events.message_parts import Call


@dataclass(frozen=True, slots=True)
class Propose:
    """Calls that are not in the log yet, with the ids that they get there."""

    calls: tuple[tuple[str, Call], ...]


@dataclass(frozen=True, slots=True)
class Check:
    """Done criteria to run as calls like any other; the harness proposes them itself."""

    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judge:
    """Everything else says that the work is done, or this task of its plan: the judge is to look at it."""

    cycle: int
    task: str = ""


@dataclass(frozen=True, slots=True)
class Say:
    """A message of the harness to the agent; ``jobs`` and ``evidence`` as in `UserMessage`."""

    text: str
    jobs: tuple[str, ...] = ()
    evidence: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Something runs, or the supervisor has to act: the next record decides."""

    why: str


@dataclass(frozen=True, slots=True)
class Park:
    """Leave no process behind; ``why`` as in `SessionParked` (and ``breaker``, with the breaker that opened).

    ``since``: since when the endpoint that it waits for is not to be asked. ``verdict``, ``verified`` and ``still``:
    with what the work would be done if nothing were asked.
    """

    why: ParkedFor
    detail: str = ""
    breaker: t.BreakerOpened | None = None
    since: str = ""
    verdict: str = ""
    verified: bool = False
    still: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """The session is over; ``verified``, ``still`` and ``judged`` as in `SessionEnded`."""

    outcome: str
    reason: str
    verified: bool = False
    still: bool = False
    judged: bool = False
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Turned:
    """The task at hand is over, by what the harness saw; ``what`` was tried and ``why`` it failed, when it did."""

    outcome: str
    reason: str
    what: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Leave:
    """Exit without a record: somebody else has said all there is to say."""

    why: str


@dataclass(frozen=True, slots=True)
class Again:
    """The agent thought, and what came of it is on record: ask it again."""


Step: TypeAlias = Propose | Check | Judge | Say | Wait | Park | Turned | End | Leave | Again

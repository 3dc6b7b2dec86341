"""The interface of an agent: what the host asks of it, method by method.

One object thinks for one session, in a process of its own that may be killed at any moment. Whatever it knows it has
from the session's log, so that another object, fed with the same log, goes on where this one was. It starts no tool and
changes no file: it proposes, and is told what became of it.

The order of calls: ``recall`` perhaps, once; ``feed`` for each record there is (behind what was recalled); ``start`` or
``resume``, once; then ``propose`` again and again, and in between, for each new record in its order, ``say``,
``decide`` or ``feed``; at the end ``park`` or ``stop``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from harness.agents.steps import Step
from harness.events import types as t


@dataclass(frozen=True, slots=True)
class Doing:
    """What an agent is at: ``what`` in a few words for a person, ``evidence`` for believing it, ``since`` in seconds of
    the monotonic clock.
    """

    what: str
    evidence: str
    since: float


class Agent(ABC):
    """What thinks for a session."""

    @abstractmethod
    def feed(self, record: t.Record) -> None:
        """Take in one record: of the history, or a new one that is neither words for the agent nor the end of a call.

        Must not wait and must not think. Raises CannotGoOn when what it says cannot be read.
        """

    def memory(self) -> str:
        """The form of what it asks the agent context to ``remember``, by a name that changes with its code; empty = it
        never does, and is fed the whole history.
        """
        return ""

    def recall(self, known: bytes) -> bool:
        """Take up what an earlier object remembered, instead of the history up to where the agent context's session
        stands now; False, and nothing has changed, when that cannot be understood.
        """
        return False

    @abstractmethod
    def say(self, record: t.Record) -> None:
        """Words for the agent came (`UserMessage`), of a person or of the harness; to be heeded in the next thought."""

    @abstractmethod
    def decide(self, record: t.Record) -> None:
        """A call that it proposed has come to its end (`ToolEnded`), or somebody decided what became of it
        (`ToolResolved`).
        """

    @abstractmethod
    def start(self) -> None:
        """Get ready to think about a session in which nobody thought before.

        Raises CannotGoOn when that is impossible with these settings.
        """

    @abstractmethod
    def resume(self) -> None:
        """Get ready to go on where an earlier object was; what that one left half done is closed first.

        Raises CannotGoOn as ``start`` does, and Interruption.
        """

    @abstractmethod
    def propose(self) -> Step:
        """What is wanted next. This is where thinking happens, so it may take long; what it costs is reserved before
        and settled after, and replies are put on record as they come, through the agent_context.

        Whoever waits in here must call the agent context's ``look`` at every arrival, so that a stop is heard. Raises
        Interruption, and Conflict when the log moved meanwhile: then it is asked again.
        """

    @abstractmethod
    def park(self) -> None:
        """The session waits, on record, and the process is about to go: let go of what is held outside."""

    @abstractmethod
    def stop(self) -> None:
        """A person stopped the session: give up the thought at hand, from within the agent context's ``look``.

        Raises Stopped when there is one; what it cost is settled by ``propose`` on its way out.
        """

    @abstractmethod
    def state(self) -> Doing | None:
        """What it is at, with the evidence; None when it does nothing that could be seen."""

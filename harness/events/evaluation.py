"""Where judging stands in a session, by its log. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.events.evaluation_events import (
    SATISFIED,
    EvaluationEnded,
    EvaluationRequested,
    EvaluationStarted,
    JudgeWanted,
)


class Stage(StrEnum):
    """``REQUESTED``: the supervisor lays out the case; ``STARTED``: the judge thinks; ``ENDED``: it spoke."""

    NONE = ""
    REQUESTED = "requested"
    STARTED = "started"
    ENDED = "ended"


@dataclass(slots=True)
class Judging:
    """Built only by the fold. ``cycle`` counts since the newest instruction; ``seq`` is the newest record."""

    wanted: JudgeWanted | None = None
    stage: Stage = Stage.NONE
    cycle: int = 0
    seq: int = -1
    started: EvaluationStarted | None = None
    ended: EvaluationEnded | None = None
    fresh: bool = False
    """Nobody worked since it ended: what it says is said of the work as it is."""

    @property
    def satisfied(self) -> bool:
        return self.fresh and self.ended is not None and self.ended.verdict == SATISFIED

    def holds(self) -> dict[str, bool]:
        """By criterion, the judge's word on the work as it is."""
        return {one.criterion: one.holds for one in self.ended.findings} if self.fresh and self.ended else {}

    def requested(self, seq: int, b: EvaluationRequested) -> None:
        """The work is to be judged."""
        self._at(seq, Stage.REQUESTED)
        self.cycle = b.cycle
        self.started = None

    def begun(self, seq: int, b: EvaluationStarted) -> None:
        """The case is laid out."""
        self._at(seq, Stage.STARTED)
        self.started = b

    def over(self, seq: int, b: EvaluationEnded) -> None:
        """The judge spoke."""
        self._at(seq, Stage.ENDED)
        self.ended = b
        self.fresh = True

    def worked(self) -> None:
        """The work goes on: what was said of it was said of another state."""
        self.fresh = False

    def instructed(self) -> None:
        """A person said what is to be done now: cycles count anew, and an evaluation under way is of no use."""
        self.cycle = 0
        self.fresh = False
        self.stage = Stage.NONE

    def _at(self, seq: int, stage: Stage) -> None:
        self.seq = seq
        self.stage = stage
        self.fresh = False

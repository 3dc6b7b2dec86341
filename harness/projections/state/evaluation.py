"""Where judging stands in a session, by its log. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness.events.plan.evaluation_events import (
    AT_TASK,
    NEEDS_REVISION,
    PLAN_CRITERION,
    SATISFIED,
    EvaluationEnded,
    EvaluationRequested,
    EvaluationStarted,
    JudgeWanted,
)


class JudgeStage(StrEnum):
    """``REQUESTED``: the supervisor lays out the case; ``STARTED``: the judge thinks; ``ENDED``: it spoke."""

    NONE = ""
    REQUESTED = "requested"
    STARTED = "started"
    ENDED = "ended"


@dataclass(slots=True)
class JudgeState:
    """Built only by the fold. ``cycle`` counts how often the whole was looked at since the newest instruction,
    ``task_cycle`` the attempt at hand; ``seq`` is the newest record.
    """

    wanted: JudgeWanted | None = None
    stage: JudgeStage = JudgeStage.NONE
    cycle: int = 0
    task_cycle: int = 0
    seq: int = -1
    started: EvaluationStarted | None = None
    ended: EvaluationEnded | None = None
    fresh: bool = False
    """Nobody worked since it ended: what it says is said of the work as it is."""
    entry: str = ""
    """The task of the plan that was last asked about; empty: the whole work."""
    sent_back: EvaluationEnded | None = None
    """The word by which the whole was sent back, until it is looked at again or a person says more."""
    accepted: dict[str, int] = field(default_factory=dict)
    """Tasks that it was satisfied with and that no later word of it, and no undo, took back, by where it first was."""

    @property
    def each_task(self) -> bool:
        """A task passes only when the judge is satisfied with it, too."""
        return self.wanted is not None and self.wanted.at == AT_TASK

    @property
    def satisfied(self) -> bool:
        """With the whole work as it is."""
        return self.fresh and not self.entry and self.ended is not None and self.ended.verdict == SATISFIED

    def holds(self) -> dict[str, bool]:
        """By criterion, the judge's word on the work as it is; a task that is sent back does not hold."""
        if not self.fresh or self.ended is None:
            return {}
        good = not self.entry or self.ended.verdict == SATISFIED
        return {one.criterion: one.holds and good for one in self.ended.findings}

    def words(self) -> dict[str, bool]:
        """By entry of the plan, what it says of it now, or its acceptance of before: a check that fails for a while
        takes that from none.
        """
        said = {
            name.removeprefix(PLAN_CRITERION): holds
            for name, holds in self.holds().items()
            if name.startswith(PLAN_CRITERION)
        }
        return dict.fromkeys(self.accepted, True) | said

    def requested(self, seq: int, b: EvaluationRequested) -> None:
        """The work is to be judged."""
        self._at(seq, JudgeStage.REQUESTED)
        self.entry = b.entry
        if b.entry:
            self.task_cycle = b.cycle
        else:
            self.cycle = b.cycle
            self.sent_back = None
        self.started = None

    def begun(self, seq: int, b: EvaluationStarted) -> None:
        """The case is laid out; of no use when a person spoke meanwhile."""
        if self.stage is not JudgeStage.REQUESTED:
            return
        self._at(seq, JudgeStage.STARTED)
        self.started = b

    def over(self, seq: int, b: EvaluationEnded) -> None:
        """The judge spoke; nothing, when the case was not laid out for what is asked now."""
        if self.stage is not JudgeStage.STARTED:
            return
        self._at(seq, JudgeStage.ENDED)
        self.ended = b
        self.fresh = True
        if not self.entry and b.verdict == NEEDS_REVISION:
            self.sent_back = b
        if self.entry and b.verdict == SATISFIED:
            self.accepted.setdefault(self.entry, seq)
        else:
            for entry in (self.entry, *(entry for entry, holds in self.words().items() if not holds)):
                self.accepted.pop(entry, None)

    def worked(self) -> None:
        """The work goes on: what was said of it was said of another state."""
        self.fresh = False

    def undone(self, to: int) -> None:
        """The work is what it was at ``to``: of what was accepted later nobody knows what is still there."""
        self.worked()
        self.accepted = {entry: seq for entry, seq in self.accepted.items() if seq < to}

    def instructed(self) -> None:
        """A person said what is to be done now: cycles count anew, and an evaluation under way is of no use."""
        self.cycle = 0
        self.sent_back = None
        self._anew()

    def turned(self) -> None:
        """An attempt at a task begins or is over: its cycles are its own."""
        if self.each_task:
            self._anew()

    def looked(self, entry: str) -> int:
        """How often it looked at this task in the attempt at hand, or at the whole."""
        return self.task_cycle if entry else self.cycle

    def _anew(self) -> None:
        self.task_cycle = 0
        self.fresh = False
        self.stage = JudgeStage.NONE
        self.entry = ""

    def _at(self, seq: int, stage: JudgeStage) -> None:
        self.seq = seq
        self.stage = stage
        self.fresh = False

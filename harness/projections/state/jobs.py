"""The jobs of a session as its log says them: which run, which ends the agent has not been told, what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.domain.calls import job_words
from harness.events.calls.job_events import JobEnded, JobStarted, JobWaiting

_MOST_TOLD = 8


def _end(b: JobEnded) -> job_words.JobEnd:
    return job_words.JobEnd(b.job, b.status, b.exit_code, b.ms, b.last, b.printed, b.note, b.told)


@dataclass(slots=True)
class RunningJob:
    """A job that runs: the call that started it, its command on one line, since when (by the clock of the wall, and by
    the machine's own), its limit and its grace in seconds.
    """

    call_id: str
    what: str
    ts: str
    limit_s: int
    grace_s: float
    clock: float


@dataclass(slots=True)
class JobState:
    """``heard``: something came since the session was last parked that whoever waits for a job should think about."""

    running: dict[str, RunningJob] = field(default_factory=dict)
    untold: dict[str, JobEnded] = field(default_factory=dict)
    """Ends that no result told the agent, by job."""
    waits: dict[str, JobWaiting] = field(default_factory=dict)
    """What open calls wait for, by call."""
    heard: bool = False

    def started(self, ts: str, b: JobStarted) -> None:
        self.running[b.job] = RunningJob(b.call_id, b.what, ts, b.limit_s, b.grace_s, b.clock)

    def waiting(self, b: JobWaiting) -> None:
        self.waits[b.call_id] = b

    def ended(self, b: JobEnded) -> None:
        self.running.pop(b.job, None)
        self.heard = True
        if not b.told:
            self.untold[b.job] = b

    def call_over(self, call_id: str) -> None:
        """A call ended, or nobody knows how it does."""
        if self.waits.pop(call_id, None) is not None:
            self.heard = True

    def told(self, names: list[str]) -> None:
        """A message to the agent came, which tells of the ends of these."""
        self.heard = True
        for name in names:
            self.untold.pop(name, None)

    @property
    def grace_s(self) -> float:
        """Seconds that those which run have to end when asked to."""
        return max((job.grace_s for job in self.running.values()), default=0.0)

    def news(self) -> tuple[str, list[str]]:
        """The ends that are to be told now, in words, and the jobs they are about; empty when there is nothing."""
        names = list(self.untold)[:_MOST_TOLD]
        return "\n\n".join(job_words.ended(_end(self.untold[name])) for name in names), names

    def words(self) -> str:
        """What the session waits for, or which jobs run; empty when there is none."""
        if self.waits:
            return next(reversed(self.waits.values())).words
        parts = [f"job {name}: {job.what}" for name, job in self.running.items()]
        return f"{len(parts)} jobs: {', '.join(self.running)}" if len(parts) > 1 else "".join(parts)

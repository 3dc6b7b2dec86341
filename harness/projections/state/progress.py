"""Whether a session gets anywhere, as its log shows it: when something was last heard of it, when it last came closer
to its goal and what it had spent by then, and which checks fail again and again in the same way. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from harness.events import types as t

_HEARD = frozenset(
    (
        t.SessionCreated,
        t.SessionContinued,
        t.LeaseGranted,
        t.TimePassed,
        t.ModelMessage,
        t.ModelSummary,
        t.ToolProposed,
        t.ToolStarted,
        t.ToolEnded,
        t.JobEnded,
        t.UserMessage,
        t.ApprovalDecided,
    )
)
_EVIDENCE = 5


@dataclass(frozen=True, slots=True)
class FailingCheck:
    """A check that failed ``times`` in a row, and always in this way; ``seqs`` are the newest of these verdicts."""

    times: int = 0
    how: str = ""
    seqs: tuple[int, ...] = ()

    def again(self, seq: int, how: str) -> FailingCheck:
        """After one more failed verdict."""
        if how != self.how:
            return FailingCheck(1, how, (seq,))
        return FailingCheck(self.times + 1, how, (*self.seqs, seq)[-_EVIDENCE:])


@dataclass(frozen=True, slots=True)
class Pace:
    """``heard_*``: the newest record that came of its work. ``progress_*``: the newest one that brought it closer, or
    with which a person gave it something new; ``progress_nano`` is what it had spent by then.
    """

    heard_seq: int = -1
    heard_ts: str = ""
    progress_seq: int = -1
    progress_ts: str = ""
    progress_nano: int = 0
    failing: Mapping[str, FailingCheck] = field(default_factory=dict)

    def after(self, r: t.Record, spent_nano: int, *, criteria: bool) -> Pace:
        """After this record; ``criteria``: a plan or checks say what progress is, else changed files are."""
        body = r.body
        now = self
        if type(body) in _HEARD:
            now = replace(now, heard_seq=r.seq, heard_ts=r.ts)
        if isinstance(body, t.CheckVerdict):
            now = now._judged(r.seq, body)
        if _progress(body, self.failing, criteria):
            now = replace(now, progress_seq=r.seq, progress_ts=r.ts, progress_nano=spent_nano)
        return now

    def _judged(self, seq: int, b: t.CheckVerdict) -> Pace:
        failing = {command: one for command, one in self.failing.items() if command != b.command}
        if not b.passed:
            failing[b.command] = self.failing.get(b.command, FailingCheck()).again(seq, f"{b.why} {b.ran} {b.excused}")
        return replace(self, failing=failing)


def _progress(body: t.Body, failing: Mapping[str, FailingCheck], criteria: bool) -> bool:
    match body:
        case t.SessionCreated() | t.SessionContinued() | t.PhaseBegun():
            return True
        case t.UserMessage():
            return body.origin == "human"
        case t.PlanFlipped():
            return body.passes
        case t.IterationEnded():
            return body.outcome == "passed"
        case t.CheckVerdict():
            return body.passed and body.command in failing
        case t.ToolEnded():
            return bool(body.files_changed) and not criteria
    return False

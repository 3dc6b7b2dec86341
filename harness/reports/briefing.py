"""What happened in a session since a person last looked: from its log alone, no model is asked. Pure.

`Briefing` takes one record after the other and keeps the lines that deserve a look, so a log that grows is read on;
`brief` picks what lies in a stretch of time. Each line names its record. Texts are raw: whoever shows them passes
`untrusted.to_display`.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.domain import problems
from harness.domain.outcomes import WORDS
from harness.domain.states import State
from harness.domain.text import formatting
from harness.events import types as t
from harness.events.conversation.memory_events import NOW, ShownMemory
from harness.events.plan.evaluation_events import SATISFIED
from harness.events.work.merge_events import MERGED
from harness.events.work.pull_events import PUSHED
from harness.reports.describe import describe
from harness.reports.describing import memory_words
from harness.reports.describing.line import Tone

NEEDS = "needs"
ANOMALY = "anomaly"
PASSED = "passed"
COMMIT = "commit"
DECIDED = "decided"
RESTART = "restart"
COURSE = "course"
KINDS = (NEEDS, ANOMALY, PASSED, COMMIT, DECIDED, RESTART, COURSE)
"""Of lines, in the order in which they deserve to be read."""
KEPT = 1000
"""So many lines of a session are kept, the newest; `Brief.forgotten` says when there were more in its time."""
_OWN = "session"
"""Whose memory is its own."""
_ASKED = "asked"
"""Kept to be counted: while it is open it is among what the session needs, and then its decision tells of it."""


class Line(msgspec.Struct, frozen=True):
    """One thing that happened, at record ``seq``."""

    seq: int
    ts: str
    kind: str
    text: str
    tone: Tone = "info"


class Figures(msgspec.Struct, frozen=True):
    """How much happened; money in nano-USD, as replies reported it."""

    records: bool = False
    """Anything at all was recorded."""
    replies: int = 0
    spent_nano: int = 0
    passed: int = 0
    commits: int = 0
    asked: int = 0
    decided: int = 0
    restarts: int = 0
    anomalies: int = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.records or other.records,
            self.replies + other.replies,
            self.spent_nano + other.spent_nano,
            self.passed + other.passed,
            self.commits + other.commits,
            self.asked + other.asked,
            self.decided + other.decided,
            self.restarts + other.restarts,
            self.anomalies + other.anomalies,
        )


class Brief(msgspec.Struct, frozen=True):
    """What happened in one session: lines in the order of the log, and its open requests, however old."""

    figures: Figures
    lines: tuple[Line, ...]
    needs: tuple[Line, ...]
    seq: int
    """The newest record that was looked at."""
    forgotten: bool = False
    """There was more in this time than is kept; the log has it."""


class Briefed(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of ``brief``; ``upcoming`` is the next entry of the session's plan, in words."""

    sid: str
    name: str
    upcoming: str
    brief: Brief


@dataclass(slots=True)
class Briefing:
    """What was gathered so far; `take` goes on with the next record."""

    seq: int = -1
    last_ts: str = ""
    lines: deque[Line] = field(default_factory=lambda: deque(maxlen=KEPT))
    unnamed: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=KEPT))
    """Commits that no line names: when, and how many."""
    forgotten_ts: str = ""
    """The latest time of a line that is not kept any more."""
    replied_at: array[float] = field(default_factory=lambda: array("d"))
    """Of each reply: seconds since the epoch."""
    paid_at: array[float] = field(default_factory=lambda: array("d"))
    """The same of each sum that was paid, or found to be less than it was taken for."""
    paid: array[int] = field(default_factory=lambda: array("q"))
    """Each of these sums."""
    requests: dict[str, Line] = field(default_factory=dict)
    """Open requests to a person."""
    checks: dict[str, bool] = field(default_factory=dict)
    """The newest verdict on each command."""
    planned: set[str] = field(default_factory=set)
    """Commands that decide entries of a plan, whose own records tell when they pass."""
    memories: dict[tuple[str, str, str], ShownMemory] = field(default_factory=dict)
    """Memories of others that its requests show, by place, key and hash."""
    kept: bool = False
    """A keeper was there and had no reason to leave: the next one follows one that fell."""
    over: bool = False
    """It has ended: a keeper comes for a single act of a person's, and leaves."""
    answered: int = -2
    """The record of the newest decision, or of what it led to in the same breath; -2 when there was none."""

    def take(self, r: t.Record) -> None:
        """Go on with the next record."""
        handler = _HANDLERS.get(type(r.body))
        if handler is not None:
            handler(self, r, r.body)
        elif (told := _TOLD.get(type(r.body))) is not None:
            kind = told(r.body)
            if kind:
                self.tell(r, kind)
        self.seq = r.seq
        self.last_ts = max(self.last_ts, r.ts)

    def tell(self, r: t.Record, kind: str, text: str = "", tone: Tone | None = None) -> None:
        """Keep a line; without a text of its own it is what the log says of this record."""
        said = describe(r)
        own = said.summary if said.summary.startswith(said.kind) else f"{said.kind}: {said.summary}"
        line = Line(r.seq, r.ts, kind, formatting.line(text or own), tone or said.tone)
        if len(self.lines) == KEPT:
            self.forgotten_ts = max(self.forgotten_ts, self.lines[0].ts)
        self.lines.append(line)


def follow(records: Iterable[t.Record], start: Briefing | None = None) -> Briefing:
    """The course after all records; ``start`` is gone on with, in place."""
    made = start or Briefing()
    for record in records:
        made.take(record)
    return made


def brief(c: Briefing, since: str) -> Brief:
    """What happened at ``since`` (a time as records carry it, empty for all) or later."""
    found = [line for line in c.lines if line.ts >= since]
    of = Counter(line.kind for line in found)
    then = formatting.parse_ts(since) if since else None
    paid = [nano for at, nano in zip(c.paid_at, c.paid, strict=True) if then is None or at >= then]
    figures = Figures(
        records=c.seq >= 0 and c.last_ts >= since,
        replies=sum(then is None or at >= then for at in c.replied_at),
        spent_nano=sum(paid),
        passed=of[PASSED],
        commits=of[COMMIT] + sum(more for ts, more in c.unnamed if ts >= since),
        asked=of[_ASKED],
        decided=of[DECIDED],
        restarts=of[RESTART],
        anomalies=of[ANOMALY],
    )
    shown = tuple(line for line in found if line.kind != _ASKED)
    return Brief(figures, shown, tuple(c.requests.values()), c.seq, bool(c.forgotten_ts) and c.forgotten_ts >= since)


# -- one record after the other ------------------------------------------------------------------------


def _paid(c: Briefing, r: t.Record, nano: int) -> None:
    c.paid_at.append(formatting.parse_ts(r.ts) or 0.0)
    c.paid.append(nano)


def _replied(c: Briefing, r: t.Record, b: t.ModelMessage | t.ModelSummary) -> None:
    c.replied_at.append(formatting.parse_ts(r.ts) or 0.0)
    _paid(c, r, b.cost_nano)


def _failed(c: Briefing, r: t.Record, b: t.ModelFailed) -> None:
    _paid(c, r, b.cost_nano)


def _settled(c: Briefing, r: t.Record, b: t.ModelSettled) -> None:
    _paid(c, r, b.more_nano)


def _launched(c: Briefing, r: t.Record, b: t.SessionIntent) -> None:
    c.tell(r, COURSE, f"launched: {b.goal}")


def _loaded(c: Briefing, r: t.Record, b: t.PlanLoaded) -> None:
    c.planned = {command for entry in b.entries for command in entry.checks}


def _verdict(c: Briefing, r: t.Record, b: t.CheckVerdict) -> None:
    before = c.checks.get(b.command)
    c.checks[b.command] = b.passed
    if b.command in c.planned or b.passed == bool(before):
        return
    if b.passed and b.masked:
        c.tell(r, COURSE, f"exits with 0, which decides nothing: {b.command}", "warn")
    elif b.passed:
        c.tell(r, PASSED, f"{WORDS[b.outcome]}: {b.command}", "good")
    else:
        c.tell(r, ANOMALY, f"passes no more: {b.command}", "bad")


def _remembers(c: Briefing, r: t.Record, b: t.MemoryShown) -> None:
    """Which memories of others change what it does from here on; its own are no news."""
    held = {(one.scope, one.key, one.sha): one for one in b.memories if one.scope != _OWN}
    new = [one for name, one in held.items() if name not in c.memories]
    gone = [one for name, one in c.memories.items() if name not in held]
    c.memories = held
    when = "" if b.at == NOW else ", from its next context on"
    if new:
        c.tell(r, COURSE, f"works with memory of others{when}: {memory_words.named(new)}", "warn")
    if gone:
        c.tell(r, COURSE, f"works without memory that it had{when}: {memory_words.named(gone)}")


def _committed(c: Briefing, r: t.Record, b: t.WorkCommitted) -> None:
    if not b.commits:
        c.tell(r, COURSE, f"its branch stands at {b.head[:12]}, before at {b.before[:12]}", "warn")
    for one in b.commits:
        c.tell(r, COMMIT, f"{one.id} {one.subject}", "good")
    if b.more:
        c.tell(r, COURSE, f"and {formatting.counted(b.more, 'commit')} before these", "good")
        c.unnamed.append((r.ts, b.more))


def _asked(c: Briefing, r: t.Record, b: t.ApprovalRequested) -> None:
    text = f"{b.approval_id} {problems.request(b.kind)}: {b.title} · risk {b.risk}"
    c.tell(r, _ASKED, text, "warn")
    c.requests[b.approval_id] = msgspec.structs.replace(c.lines[-1], kind=NEEDS)


def _decided(c: Briefing, r: t.Record, b: t.ApprovalDecided) -> None:
    said = describe(r)
    c.tell(r, DECIDED, f"{said.summary}{_about(c, b.approval_id)}", said.tone)
    c.answered = r.seq


def _closed(c: Briefing, r: t.Record, b: t.ApprovalStale | t.ApprovalWithdrawn) -> None:
    said = describe(r)
    c.tell(r, COURSE, f"{said.kind}: {said.summary}{_about(c, b.approval_id)}", said.tone)


def _about(c: Briefing, approval_id: str) -> str:
    """What a request that is over was about, and its record."""
    asked = c.requests.pop(approval_id, None)
    if asked is None:
        return ""
    return f" · {asked.text.removeprefix(approval_id).strip()} (#{asked.seq})"


def _by_hand(c: Briefing, r: t.Record, b: t.Body) -> None:
    """What a person wanted: one line with the decision that it follows from."""
    if isinstance(b, t.UserMessage) and b.origin != "human":
        return
    if c.answered == r.seq - 1:
        c.answered = r.seq
    else:
        c.tell(r, DECIDED)


def _keeper(c: Briefing, r: t.Record, b: t.KeeperStarted) -> None:
    if c.kept and not c.over:
        c.tell(r, RESTART)
    c.kept = True


def _over(c: Briefing, r: t.Record, b: t.SessionEnded) -> None:
    c.over = True
    c.tell(r, ANOMALY if b.outcome == State.FAILED else COURSE)


def _taken_up(c: Briefing, r: t.Record, b: t.SessionContinued) -> None:
    c.over = False
    _by_hand(c, r, b)


_HANDLERS: Mapping[type[t.Body], Callable[[Briefing, t.Record, Any], None]] = {
    t.ModelMessage: _replied,
    t.ModelSummary: _replied,
    t.ModelFailed: _failed,
    t.ModelSettled: _settled,
    t.SessionIntent: _launched,
    t.PlanLoaded: _loaded,
    t.CheckVerdict: _verdict,
    t.MemoryShown: _remembers,
    t.WorkCommitted: _committed,
    t.ApprovalRequested: _asked,
    t.ApprovalDecided: _decided,
    t.ApprovalStale: _closed,
    t.ApprovalWithdrawn: _closed,
    t.UserMessage: _by_hand,
    t.SessionDesired: _by_hand,
    t.SessionContinued: _taken_up,
    t.RatchetAnswered: _by_hand,
    t.GateOpened: _by_hand,
    t.AlarmSnoozed: _by_hand,
    t.CapsRaised: _by_hand,
    t.BillsBelieved: _by_hand,
    t.FinishUp: _by_hand,
    t.KeeperStarted: _keeper,
    t.SessionEnded: _over,
}


def _always(kind: str) -> Callable[[object], str]:
    return lambda _: kind


def _undone(b: t.UndoEnded) -> str:
    if b.error:
        return ANOMALY
    return "" if b.of_checks else COURSE


def _judged(b: t.EvaluationEnded) -> str:
    return PASSED if b.verdict == SATISFIED and not b.drift else ANOMALY


_TOLD: Mapping[type[t.Body], Callable[[Any], str]] = {
    t.AlarmRaised: _always(ANOMALY),
    t.AlarmCleared: _always(COURSE),
    t.RatchetViolation: _always(ANOMALY),
    t.PlanRestored: _always(ANOMALY),
    t.BreakerOpened: _always(ANOMALY),
    t.ToolInDoubt: _always(ANOMALY),
    t.EvaluationEnded: _judged,
    t.ContractAgreed: lambda b: ANOMALY if b.objections else COURSE,
    t.PlanFlipped: lambda b: PASSED if b.passes else ANOMALY,
    t.PlanUpdated: lambda b: ANOMALY if b.state == "blocked" else "",
    t.ProgressKept: lambda b: ANOMALY if b.did else "",
    t.HarnessNote: lambda b: ANOMALY if b.level == "error" else "",
    t.WorkHeldBack: _always(ANOMALY),
    t.Quarantined: _always(RESTART),
    t.LogRecovered: _always(RESTART),
    t.LeaseEnded: lambda b: RESTART if b.exit_code else "",
    t.SessionForked: _always(COURSE),
    t.PhaseBegun: _always(COURSE),
    t.MergeEnded: lambda b: COURSE if b.outcome == MERGED else ANOMALY,
    t.PullEnded: lambda b: COURSE if b.outcome == PUSHED else ANOMALY,
    t.PullOpened: _always(COURSE),
    t.UndoEnded: _undone,
    t.CheckpointRestored: _always(COURSE),
    t.MemoryChanged: _always(COURSE),
}
"""Records whose own words are the line, and of which kind it is; empty = none this time."""

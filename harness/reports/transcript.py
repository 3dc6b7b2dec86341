"""Records → the rows of a transcript that a person reads: one row a call, prose whole, edits as lines. Pure.

A log is cut into pages of `PAGE` records, and the rows of a page depend on its own records and on those that later
finish what began in it, so a log of any size opens anywhere without reading the rest. A row is named by the record
that began it. All text in it is raw: whoever shows it passes `untrusted.to_display`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from harness.domain import problems
from harness.domain.calls.call_states import CallEnd
from harness.domain.decision import Decision
from harness.domain.states import ParkedFor
from harness.domain.text import formatting
from harness.events import message_parts
from harness.events import types as t
from harness.events.plan.iteration_events import PASSED
from harness.reports import call_words
from harness.reports.call_words import Bit
from harness.reports.describe import describe
from harness.reports.describing.approvals import chosen
from harness.reports.describing.conversation import sender
from harness.reports.transcript_row import FINE, Kind, Row, Stage, checked
from harness.tools import call_subject, registry, summary
from harness.tools.tool import ANSWERED, READ

PAGE = 256
LOOK_AHEAD = 2048
"""Records after a page that may still finish a row of it; a row that takes longer stays as it was."""
PROSE = 20_000
"""Characters of one text that a row holds; the rest is in the whole of it."""
_TOLD_LINES = 6
_ALLOWED: dict[str, str] = {Decision.ALLOW: "you allowed it", Decision.ALLOW_EDITED: "you allowed it, edited"}
_TOLD_PARKS = frozenset(
    (
        ParkedFor.LIMITED,
        ParkedFor.AUTH,
        ParkedFor.ERROR,
        ParkedFor.HISTORY,
        ParkedFor.BILL,
        ParkedFor.BREAKER,
        ParkedFor.REFUSAL,
    )
)


@dataclass(slots=True)
class _Reads:
    """Consecutive calls that only read: their row, and (tool, object, stage, result) of each."""

    row: int
    members: list[tuple[str, str, Stage, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Checks:
    """Consecutive checks: their row, and the row that each would have alone."""

    row: int
    members: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class _Call:
    """A call that is not over: its row, and what the row is made from; its place among calls that share one."""

    row: int
    tool: str
    input: dict[str, object] | None
    reads: _Reads | None = None
    checks: _Checks | None = None
    place: int = 0
    note: str = ""


class Page:
    """The rows of records ``first`` … ``stop - 1``. `take` every record in order from ``first`` on."""

    __slots__ = ("_asked", "_calls", "_checks", "_failures", "_reads", "_unjudged", "first", "next", "rows", "stop")

    def __init__(self, number: int) -> None:
        self.first = number * PAGE
        self.stop = self.first + PAGE
        self.next = self.first
        """The record to take next."""
        self.rows: list[Row] = []
        self._calls: dict[str, _Call] = {}
        self._asked: dict[str, int] = {}
        self._reads: _Reads | None = None
        self._checks: _Checks | None = None
        self._unjudged: dict[str, _Call] = {}
        self._failures = 0

    def wants(self, head: int) -> bool:
        """True when the records before ``head`` hold something for this page that it has not taken."""
        unfinished = bool(self._calls or self._asked or self._unjudged) and self.next < self.stop + LOOK_AHEAD
        return self.next < head and (self.next < self.stop or unfinished)

    def skip(self) -> None:
        """Pass over a record after the page that goes on with none of its rows."""
        self.next += 1

    def damaged(self) -> None:
        """The next record cannot be read."""
        seq = self.next
        self.next += 1
        if seq < self.stop:
            text = f"record {seq} cannot be read; watchfloor verify says where"
            self._add(Row(seq, "", Kind.EVENT, text, label="damaged", tone="bad", records=(seq,)))

    def take(self, record: t.Record, prose: str | None = None) -> None:
        """Take the next record; ``prose`` is that of a reply whose parts are in a blob, when they could be read."""
        self.next += 1
        body = record.body
        if (goes_on := _GOES_ON.get(type(body))) is not None:
            goes_on(self, record, body)
        elif record.seq >= self.stop or type(body) in _SILENT:
            return
        elif isinstance(body, t.ModelMessage):
            if not body.purpose:  # what a judge says stands in the row of its verdict
                self._say(record, message_parts.text_of(body.parts or ()) if prose is None else prose, body)
        elif isinstance(body, t.ToolProposed):
            self._propose(record, body)
        elif isinstance(body, t.UserMessage):
            self._tell(record, body)
        elif isinstance(body, t.ModelFailed):
            self._fail(record)
        elif isinstance(body, t.SessionIntent):
            self._launch(record, body)
        elif worth_a_row(body):
            self._event(record)

    # -- what begins a row -------------------------------------------------------------------------

    def _add(self, row: Row) -> int:
        self._reads = None
        self._checks = None
        self._failures = 0
        self.rows.append(row)
        return len(self.rows) - 1

    def _event(self, record: t.Record) -> int:
        line = describe(record)
        text = call_subject.line(line.summary)
        return self._add(
            Row(record.seq, record.ts, Kind.EVENT, text, label=line.kind, tone=line.tone, records=(record.seq,))
        )

    def _launch(self, record: t.Record, body: t.SessionIntent) -> None:
        parts = [body.name, body.model, formatting.cap_text(body.caps.usd_nano)]
        parts += [formatting.counted(len(body.checks), "check")] if body.checks else []
        text = call_subject.line(" · ".join(part for part in parts if part))
        self._add(Row(record.seq, record.ts, Kind.EVENT, text, label="launch", tone="dim", records=(record.seq,)))

    def _say(self, record: t.Record, text: str, body: t.ModelMessage) -> None:
        text = text.strip("\n\r\t ")
        stop = "" if body.stop in (message_parts.DONE, message_parts.CALLS) else f"({body.stop})"
        if not text and body.parts_blob is not None and body.parts is None:
            text = f"(a reply of {body.parts_blob.bytes:,} bytes whose text cannot be read here)"
        if text or stop:
            cut = f"\n(+{len(text) - PROSE:,} characters)" if len(text) > PROSE else ""
            self._add(Row(record.seq, record.ts, Kind.PROSE, text[:PROSE] + cut, result=stop, records=(record.seq,)))

    def _tell(self, record: t.Record, body: t.UserMessage) -> None:
        label = sender(body.origin)
        lines = body.text.strip("\n\r\t ").split("\n")
        if body.origin == "harness" and len(lines) > _TOLD_LINES:
            # What the harness says repeats the output of checks, which have rows of their own.
            lines = [*lines[:_TOLD_LINES], f"(+{len(lines) - _TOLD_LINES} lines)"]
        text = "\n".join(lines)[:PROSE]
        self._add(Row(record.seq, record.ts, Kind.TOLD, text, label=label, records=(record.seq,)))

    def _fail(self, record: t.Record) -> None:
        failures = self._failures + 1
        if failures == 1:
            self._event(record)
        else:
            line = describe(record)
            last = self.rows[-1]
            self.rows[-1] = replace(
                last,
                what=call_subject.line(line.summary),
                tone=line.tone,
                result=f"{failures} times",
                records=(*last.records, record.seq),
            )
        self._failures = failures

    def _propose(self, record: t.Record, body: t.ToolProposed) -> None:
        if body.before_work:
            return  # the row of its result says it
        tool = registry.ALL.get(body.tool)
        if tool is not None and tool.effect == READ and tool.kind != ANSWERED:
            self._read(record, body)
            return
        changed = call_words.change(body.tool, body.input)
        row = Row(
            record.seq,
            record.ts,
            Kind.CALL,
            summary.what(body.tool, body.input),
            label="check" if body.by_harness or body.by_merge else "",
            stage=Stage.PROPOSED,
            added=changed.added,
            removed=changed.removed,
            result=changed.plan,
            more=changed.lines,
            records=(record.seq,),
        )
        if body.tool == registry.CHECK and row.label:
            self._check(row, body)
        else:
            self._calls[body.call_id] = _Call(self._add(row), body.tool, body.input, note=changed.plan)

    def _check(self, row: Row, body: t.ToolProposed) -> None:
        checks = self._checks
        if checks is None:
            checks = _Checks(self._add(row))
            self._checks = checks
        self._calls[body.call_id] = _Call(checks.row, body.tool, body.input, checks=checks, place=len(checks.members))
        checks.members.append(row)
        self.rows[checks.row] = checked(checks.members)

    def _read(self, record: t.Record, body: t.ToolProposed) -> None:
        reads = self._reads
        if reads is None:
            reads = _Reads(self._add(Row(record.seq, record.ts, Kind.CALL, "")))
            self._reads = reads
        self._calls[body.call_id] = _Call(reads.row, body.tool, body.input, reads, place=len(reads.members))
        reads.members.append((body.tool, summary.about(body.tool, body.input), Stage.PROPOSED, ""))
        self._sum_up(reads, record)

    # -- what goes on in a row ---------------------------------------------------------------------

    def _judged(self, record: t.Record, body: t.ToolJudged) -> None:
        call = self._calls.get(body.call_id)
        if call is None or call.input is not None or body.action is None:
            return
        # The input was too large for its record: the action says at least what it is about.
        call.input = {key: body.action[key] for key in ("path", "argv", "script", "command") if key in body.action}
        if call.checks is not None:
            member = call.checks.members[call.place]
            self._put(call, replace(member, what=summary.what(call.tool, call.input)))
        elif call.reads is None:
            self.rows[call.row] = replace(self.rows[call.row], what=summary.what(call.tool, call.input))

    def _started(self, record: t.Record, body: t.ToolStarted) -> None:
        if call := self._calls.get(body.call_id):
            spool = f"{body.call_id}-{body.attempt}"
            self._settle(call, record, Stage.RUNNING, "", since=record.ts, spool=spool)

    def _ended(self, record: t.Record, body: t.ToolEnded) -> None:
        call = self._calls.pop(body.call_id, None)
        if call is None:
            return
        bad = Stage.STOPPED if body.status in (CallEnd.DENIED, CallEnd.CANCELLED) else Stage.FAILED
        good = body.status == CallEnd.OK and not body.exit_code
        end = call_words.outcome(call.tool, call.input, body)
        result = " · ".join(part for part in (end.result, call.note) if part)
        more = end.lines or None
        changed = call_words.rewritten(call.tool, call.input, body)
        if changed is not None:
            self.rows[call.row] = replace(self.rows[call.row], added=changed.added, removed=changed.removed)
            more = changed.lines
        self._settle(call, record, Stage.OK if good else bad, result, ms=body.ms, more=more)
        if call.checks is not None:
            self._unjudged[body.call_id] = call

    def _counts(self, record: t.Record, body: t.CheckVerdict) -> None:
        """Whether a check's result counts: said in the row of the check, when it is here."""
        call = self._unjudged.pop(body.call_id, None)
        if call is None or call.checks is None:
            if record.seq < self.stop and worth_a_row(body):
                self._event(record)
            return
        row = call.checks.members[call.place]
        row = replace(row, records=(*row.records, record.seq))
        if body.facts:
            row = replace(row, more=(*row.more, *(Bit("quiet", call_subject.line(fact)) for fact in body.facts)))
        if not body.passed and row.stage is Stage.OK:
            row = replace(row, stage=Stage.FAILED, result=call_subject.line(body.why) or "does not pass")
        self._put(call, row)

    def _doubted(self, record: t.Record, body: t.ToolInDoubt) -> None:
        if call := self._calls.get(body.call_id):
            why = call_subject.line(body.why)
            self._settle(call, record, Stage.DOUBT, f"may or may not have happened: {why}")

    def _resolved(self, record: t.Record, body: t.ToolResolved) -> None:
        call = self._calls.get(body.call_id)
        if call is None:
            return
        stage = Stage.OK if body.resolution == "confirmed_done" else Stage.FAILED
        if body.resolution == "confirmed_not_done":
            stage = Stage.PROPOSED
        else:
            del self._calls[body.call_id]
        self._settle(call, record, stage, body.resolution.replace("_", " "))

    def _asks(self, record: t.Record, body: t.ApprovalRequested) -> None:
        if call := self._calls.get(body.call_id):
            title = call_subject.line(body.title)
            told = title.removeprefix(f"{call.tool} ") in self.rows[call.row].what
            self._settle(call, record, Stage.ASKED, "asks you" if told else f"asks you: {title}")
        elif record.seq < self.stop:
            at = self._event(record)
            self._asked[body.approval_id] = at
            what = call_subject.line(body.title)
            self.rows[at] = replace(self.rows[at], stage=Stage.ASKED, what=what, label=problems.request(body.kind))

    def _decided(self, record: t.Record, body: t.ApprovalDecided) -> None:
        how = chosen(body) + (f": {call_subject.line(body.message)}" if body.message else "")
        if call := self._calls.get(body.call_id):
            call.note = _ALLOWED.get(body.decision, "")
            self._settle(call, record, Stage.PROPOSED, f"you decided: {how}")
        else:
            self._answered(record, body.approval_id, f"you decided: {how}")

    def _withdrawn(self, record: t.Record, body: t.ApprovalWithdrawn) -> None:
        self._answered(record, body.approval_id, f"withdrawn: {call_subject.line(body.why)}")

    def _answered(self, record: t.Record, approval_id: str, how: str) -> None:
        at = self._asked.pop(approval_id, None)
        if at is not None:
            row = self.rows[at]
            records = (*row.records, record.seq)
            self.rows[at] = replace(row, stage=Stage.NONE, tone="info", result=how, records=records)

    def _stale(self, record: t.Record, body: t.ApprovalStale) -> None:
        if call := self._calls.get(body.call_id):
            changed = call_subject.line("; ".join(body.difference))
            self._settle(call, record, Stage.PROPOSED, f"what you allowed has changed: {changed}")

    def _settle(
        self,
        call: _Call,
        record: t.Record,
        stage: Stage,
        result: str,
        *,
        since: str = "",
        spool: str = "",
        ms: int = -1,
        more: tuple[Bit, ...] | None = None,
    ) -> None:
        """Say where a call stands now, in its own row or in the one it shares."""
        if call.reads is not None:
            tool, name, _, _ = call.reads.members[call.place]
            call.reads.members[call.place] = (tool, name, stage, result)
            self._sum_up(call.reads, record)
            return
        row = self.rows[call.row] if call.checks is None else call.checks.members[call.place]
        row = replace(
            row,
            stage=stage,
            result=result,
            since=since,
            spool=spool,
            ms=ms,
            more=row.more if more is None else more,
            records=(*row.records, record.seq),
        )
        self._put(call, row)

    def _put(self, call: _Call, row: Row) -> None:
        """Show a call that has a row, or shares one with other checks, as ``row``."""
        if call.checks is not None:
            call.checks.members[call.place] = row
            row = checked(call.checks.members)
        self.rows[call.row] = row

    def _sum_up(self, reads: _Reads, record: t.Record) -> None:
        """Make the row of calls that only read anew."""
        found = {stage for _, _, stage, _ in reads.members}
        stage = next(stage for stage in Stage if stage in found)
        if len(reads.members) == 1:
            tool, name, _, result = reads.members[0]
            what = call_words.read(tool, name)
        elif len(reads.members) == 2 and found <= FINE:
            (tool, first, _, _), (other, second, _, _) = reads.members
            what = call_words.read(tool, first) + ", "
            what += second if other == tool else call_words.read(other, second)
            result = ""
        else:
            what = call_words.counted(Counter(tool for tool, _, _, _ in reads.members))
            result = ", ".join(name if at in FINE else f"{name} ({why})" for _, name, at, why in reads.members)
        row = self.rows[reads.row]
        records = (*row.records, record.seq)
        self.rows[reads.row] = replace(
            row, what=what, result=result[: call_subject.LONGEST], stage=stage, records=records
        )


def worth_a_row(body: t.Body) -> bool:
    """False for what a reader of the conversation does not need, or reads in another row: all of it is in the log."""
    if isinstance(body, t.SessionParked):
        return body.why in _TOLD_PARKS
    if isinstance(body, t.ModelSummary):
        return bool(body.why)  # one that is used stands in the row of the compaction
    if isinstance(body, t.CheckVerdict):
        return not body.passed  # that a check passed is said in its own row
    if isinstance(body, t.LeaseEnded):
        return bool(body.exit_code)
    if isinstance(body, t.IterationEnded):
        return body.outcome != PASSED  # that its entry passes is a row of the plan
    if isinstance(body, t.ProgressKept):
        return bool(body.did) or not body.by_harness  # what the harness notes of a task is what was said of it
    if isinstance(body, t.WorkCommitted):
        return not body.commits  # what was committed is said by the call that did it
    return not isinstance(body, t.KeeperStarted) or body.recovered


_GoesOn = Callable[[Page, t.Record, Any], None]
_GOES_ON: dict[type[t.Body], _GoesOn] = {
    t.ToolJudged: Page._judged,
    t.ToolStarted: Page._started,
    t.ToolEnded: Page._ended,
    t.ToolInDoubt: Page._doubted,
    t.ToolResolved: Page._resolved,
    t.CheckVerdict: Page._counts,
    t.ApprovalRequested: Page._asks,
    t.ApprovalDecided: Page._decided,
    t.ApprovalWithdrawn: Page._withdrawn,
    t.ApprovalStale: Page._stale,
}
_SILENT = frozenset(
    (
        t.SessionCreated,
        t.EvaluationRequested,
        t.EvaluationStarted,
        t.ContractOpened,
        t.ModelRequest,
        t.ModelSettled,
        t.LeaseGranted,
        t.ApprovalDeferred,
        t.UndoStarted,
        t.BudgetReached,
    )
)

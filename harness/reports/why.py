"""Why a file is as it is: the calls, undos and merges of a session that changed it, each with its reason, who let it
run and what it became part of. From the log alone; every fact names its record.

Texts are raw: whoever shows them passes `untrusted.to_display`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.domain.calls.call_id import proposed_on
from harness.domain.text.formatting import by_whom, decided
from harness.eventlog.index import OffsetIndex
from harness.events import types as t
from harness.events.message_parts import text_of
from harness.events.work.merge_events import MERGED
from harness.reports import touched
from harness.reports.describe import describe
from harness.tools import summary

CALL = "call"
COMMIT = "commit"
_NEAR = 2_000
"""Records around a change that are looked at for what belongs to it."""
_PIECE = 256
_LONG_CALL = 1_000


class Fact(msgspec.Struct, frozen=True):
    """One thing that record ``seq`` says. ``claim``: it is what the agent says."""

    what: str
    seq: int
    text: str
    claim: bool = False


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the file, on record ``seq``; ``kind``: call, or commit, of which no call is known to have
    changed the file.
    """

    kind: str
    seq: int
    ts: str
    did: str
    call_id: str = ""
    commit: str = ""
    facts: tuple[Fact, ...] = ()
    wrote: str = ""
    """What it wrote, where the log has it: a line is looked for in there."""


@dataclass(slots=True)
class History:
    """The changes of one file in one session, read from its folder."""

    log: OffsetIndex
    folder: Path
    index: Path
    path: str
    _told: set[str] = field(default_factory=set)
    """Calls that were told of already."""
    _undos: list[t.Record] = field(default_factory=list)
    """Undos that came after what is looked at, the newest first."""

    def changes(self) -> Iterator[Change]:
        """The newest first; a commit stands for itself only where no call is known that made what it holds. Raises
        LogError, OSError.
        """
        held: Change | None = None
        for change in self._all():
            if held is not None and (change.kind == COMMIT or change.commit != held.commit):
                yield held
            held = change if change.kind == COMMIT else None
            if held is None:
                yield change
        if held is not None:
            yield held

    def _all(self) -> Iterator[Change]:
        for seq, takes_back in touched.find(self.log, self.folder, self.index, self.path):
            record = self._record(seq)
            if record is None:
                continue
            if takes_back:
                self._undos.insert(0, record)
            elif self.path in touched.names(record.body) and (change := self._of(record)) is not None:
                yield change

    def _record(self, seq: int) -> t.Record | None:
        try:
            return t.decode(self.log.line(seq))
        except (msgspec.DecodeError, IndexError):
            return None

    def _of(self, r: t.Record) -> Change | None:
        match r.body:
            case t.ToolEnded() | t.ToolProposed():
                return self._call(r.body.call_id, r)
            case t.ToolStarted() | t.EditsLooked():
                before = self._before(r.seq, b'"type":"tool.started"')
                while before is not None:
                    assert isinstance(before.body, t.ToolStarted)
                    if before.body.snapshot:
                        return self._call(before.body.call_id, r)
                    before = self._before(before.seq, b'"type":"tool.started"')
                return None
            case t.WorkCommitted():
                return self._commit(r, r.body)
        return None

    def _commit(self, r: t.Record, b: t.WorkCommitted) -> Change | None:
        newest = b.commits[-1] if b.commits else None
        did = f"commit {newest.id} {newest.subject}" if newest is not None else f"its branch went to {b.head[:12]}"
        return Change(kind=COMMIT, seq=r.seq, ts=r.ts, did=did, commit=b.head, facts=tuple(self._undone(r.seq)))

    # -- one call ----------------------------------------------------------------------------------

    def _call(self, call_id: str, evidence: t.Record) -> Change | None:
        """The call, told once; one that was refused, or is only proposed, changed nothing."""
        if call_id in self._told:
            return None
        self._told.add(call_id)
        first = _begun(call_id, evidence.seq)
        ends = first + _LONG_CALL if isinstance(evidence.body, t.ToolProposed) else evidence.seq + 1
        records = self._about(call_id, first, min(ends, len(self.log)))
        proposed = next((r.body for r in records if isinstance(r.body, t.ToolProposed)), None)
        ended = next((r for r in reversed(records) if isinstance(r.body, t.ToolEnded)), None)
        if proposed is None or not any(isinstance(r.body, t.ToolStarted) for r in records):
            return None
        at = ended or evidence
        if isinstance(evidence.body, t.ToolProposed) and (ended is None or _status(ended) != "ok"):
            return None
        facts = [*_agent(records, proposed), *_allowed(records), *self._task(first), *_end(records)]
        if at is not evidence and not isinstance(evidence.body, t.ToolProposed) and self.path not in _files(at):
            facts.append(Fact("seen", evidence.seq, f"it is another file since {call_id} ran"))
        commit, taken = self._committed(at.seq)
        facts += [*taken, *self._undone(first)]
        facts += [Fact("note", r.seq, r.body.text) for r in records if isinstance(r.body, t.HarnessNote)]
        return Change(
            kind=CALL,
            seq=at.seq,
            ts=at.ts,
            did=summary.what(proposed.tool, proposed.input),
            call_id=call_id,
            commit=commit,
            facts=tuple(facts),
            wrote=_written(proposed),
        )

    def _about(self, call_id: str, first: int, stop: int) -> list[t.Record]:
        """The reply that proposed the call, and what follows it up to ``stop`` and tells of it."""
        cut = (first, min(stop, first + _LONG_CALL)), (max(first + _LONG_CALL, stop - _LONG_CALL), stop)
        wanted = (b'"' + call_id.encode() + b'"', b'"type":"harness.note"')
        found = []
        for begin, end in cut:
            for seq, line in enumerate(self.log.lines(begin, end), begin) if begin < end else ():
                if (seq == first or any(one in line for one in wanted)) and (r := self._record(seq)) is not None:
                    found.append(r)
        return found

    def _task(self, seq: int) -> Iterator[Fact]:
        begun = self._before(seq + 1, b'"type":"iteration.started"')
        if begun is not None and isinstance(begun.body, t.IterationStarted):
            yield Fact("task", begun.seq, f"{begun.body.entry}, attempt {begun.body.attempt}")

    def _committed(self, seq: int) -> tuple[str, list[Fact]]:
        """The commit that the change became part of, and the merge that took it."""
        for line in self._lines_after(seq, b'"type":"work.committed"'):
            record = t.decode(line)
            b = record.body
            if isinstance(b, t.WorkCommitted) and (not b.files or self.path in b.files):
                return b.head, [Fact("commit", record.seq, describe(record).summary), *self._merged(record.seq)]
        return "", []

    def _merged(self, seq: int) -> Iterator[Fact]:
        for line in self._lines_after(seq, b'"type":"merge.ended"'):
            record = t.decode(line)
            if isinstance(record.body, t.MergeEnded) and record.body.outcome == MERGED:
                yield Fact("merged", record.seq, describe(record).summary)
                return

    def _undone(self, seq: int) -> Iterator[Fact]:
        for record in self._undos:
            b = record.body
            if isinstance(b, t.UndoStarted) and _reaches(b.call_id, seq):
                yield Fact("undone", record.seq, describe(record).summary)
                return

    # -- around a record ---------------------------------------------------------------------------

    def _before(self, seq: int, kind: bytes) -> t.Record | None:
        stop = seq
        least = max(0, seq - _NEAR)
        while stop > least:
            first = max(least, stop - _PIECE)
            lines = self.log.lines(first, stop)
            for at in range(len(lines) - 1, -1, -1):
                if kind in lines[at][:200]:
                    return self._record(first + at)
            stop = first
        return None

    def _lines_after(self, seq: int, kind: bytes) -> Iterator[bytes]:
        stop = min(len(self.log), seq + 1 + _NEAR)
        for first in range(seq + 1, stop, _PIECE):
            yield from (line for line in self.log.lines(first, min(first + _PIECE, stop)) if kind in line[:200])


def _begun(call_id: str, seq: int) -> int:
    """Where the records of a call begin that record ``seq`` tells of; near it when its name does not say."""
    with contextlib.suppress(ValueError):
        if 0 <= proposed_on(call_id) <= seq:
            return proposed_on(call_id)
    return max(0, seq - _PIECE)


def _reaches(call_id: str, seq: int) -> bool:
    """True when an undo to just before ``call_id`` takes back what was proposed at ``seq``."""
    try:
        return proposed_on(call_id) <= seq
    except ValueError:  # a checkpoint, or another undo
        return False


def _files(r: t.Record) -> list[str]:
    return r.body.files_changed if isinstance(r.body, t.ToolEnded) else []


def _status(r: t.Record) -> str:
    return r.body.status if isinstance(r.body, t.ToolEnded) else ""


def _agent(records: list[t.Record], proposed: t.ToolProposed) -> Iterator[Fact]:
    """What the agent says: why it made the call, and what it said before."""
    for r in records:
        match r.body:
            case t.ToolProposed() if r.body.claim:
                yield Fact("why", r.seq, r.body.claim, claim=True)
            case t.ModelMessage() if r.body.parts is not None and (said := text_of(r.body.parts)):
                yield Fact("said", r.seq, said, claim=True)
    if proposed.own:
        yield Fact("by", records[0].seq, "the harness itself")


def _allowed(records: list[t.Record]) -> Iterator[Fact]:
    """Who let it run: a rule of the policy, a rule that a person made, a person."""
    for r in records:
        match r.body:
            case t.ToolJudged():
                yield Fact("policy", r.seq, f"{r.body.verdict} by rule {r.body.rule}")
            case t.GrantUsed():
                yield Fact("grant", r.seq, describe(r).summary)
            case t.ApprovalDecided():
                b = r.body
                said = f": {b.message}" if b.message else ""
                yield Fact("decided", r.seq, f"{b.approval_id} {decided(b.decision)}{by_whom(b.by.client)}{said}")


def _end(records: list[t.Record]) -> Iterator[Fact]:
    for r in records:
        if isinstance(r.body, t.ToolEnded | t.ToolInDoubt):
            yield Fact("ended", r.seq, describe(r).summary)


def _written(proposed: t.ToolProposed) -> str:
    given = proposed.input or {}
    return "\n".join(str(given[name]) for name in ("content", "new", "script", "argv") if name in given)

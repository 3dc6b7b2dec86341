"""What of a session's past must outlive its context, folded record by record into a bounded form. Pure.

Every fact is a line of one record, named by its seq; nothing is summed up from a summary.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.domain.calls.call_id import name_call
from harness.domain.calls.call_states import CallEnd
from harness.domain.decision import Decision
from harness.domain.text import formatting
from harness.events import message_parts
from harness.events import types as t
from harness.events.plan.course_events import ASSUMPTION
from harness.projections.state.plan_state import BLOCKED, IN_PROGRESS
from harness.tools import registry

COMMIT = "a commit was made"
CHECK = "a done criterion passed"
_LINE = 300
_MANY = 12
_FILES = 200
_ABOUT = ("action", "path", "pattern", "call", "entry", "key", "text")
"""What of an input says what its call is about."""
_DECIDED = frozenset((Decision.DENY, Decision.ANSWER, Decision.ALLOW_EDITED))
"""Decisions of a person that say more than that the call may run."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line, and the record it comes from, of another session's log when ``of`` names one."""

    seq: int
    text: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call whose end is still to come."""

    tool: str
    text: str


@dataclass(slots=True)
class Facts:
    """Built only by `advance`; every list is bounded, the oldest go first."""

    replies: int = 0
    begun: int = 0
    """The record that gave the done criteria."""
    words: list[Fact] = field(default_factory=list)
    """What a person said after the goal."""
    decisions: list[Fact] = field(default_factory=list)
    reasons: list[Fact] = field(default_factory=list)
    """How the agent explained what it did."""
    failed: dict[str, Fact] = field(default_factory=dict)
    worked: dict[str, Fact] = field(default_factory=dict)
    files: dict[str, Fact] = field(default_factory=dict)
    kept_seq: int = -1
    """The newest record that said what the commands before it changed."""
    commits: list[Fact] = field(default_factory=list)
    plan_seq: int = -1
    """The newest record that changed what passes of the plan."""
    at_hand: Fact | None = None
    """The entry that the harness gave out last, or that the agent began."""
    blocked: dict[str, Fact] = field(default_factory=dict)
    """By entry of the plan, why it cannot be worked on."""
    notes: list[Fact] = field(default_factory=list)
    """What the agent noted of entries."""
    in_vain: list[Fact] = field(default_factory=list)
    """Approaches that failed, and assumptions that proved wrong."""
    finished: list[Fact] = field(default_factory=list)
    """Tasks of the plan that came to an end, and how."""
    between: bool = False
    """The harness is between two tasks: what is committed or checked then ends none."""
    last: Fact | None = None
    """The newest reply: what it said and asked for."""
    asked: dict[str, Asked] = field(default_factory=dict)
    boundary: str = ""
    """What ended a task since the context was last built anew; empty when nothing did."""
    midway: bool = False
    """The context was last built anew in the midst of a task."""

    def replied(self, seq: int, parts: list[message_parts.Part]) -> None:
        """A reply of the agent."""
        self.replies += 1
        prose = message_parts.text_of(parts)
        calls = [_call(call.tool, call.input) for call in message_parts.calls_of(parts)]
        self.asked = {
            name_call(seq, i): Asked(call.tool, calls[i]) for i, call in enumerate(message_parts.calls_of(parts))
        }
        if prose and calls:
            _add(self.reasons, Fact(seq, line(prose)))
        self.last = Fact(seq, line("; ".join([*([prose] if prose else []), *calls])))

    def advance(self, r: t.Record) -> None:
        """Any record but a reply."""
        match body := r.body:
            case t.SessionIntent():
                self.begun = r.seq
                if body.forked is not None:
                    self._handed(body.forked)
            case t.SessionContinued() if body.checks is not None:
                self.begun = r.seq
            case t.UserMessage() if body.origin == "human":
                _add(self.words, Fact(r.seq, line(body.text, 3 * _LINE)))
            case t.CheckVerdict() if body.passed and not self.between:
                self.boundary = CHECK
            case t.ToolEnded():
                self._ended(r.seq, body)
            case t.ToolResolved() if body.resolution != "confirmed_not_done":
                self._resolved(r.seq, body)
            case t.ApprovalDecided() if body.decision in _DECIDED or body.message:
                asked = self.asked.get(body.call_id)
                of = f" ({asked.text})" if asked is not None else ""
                _add(self.decisions, Fact(r.seq, line(f"the person chose {body.decision}{of}: {body.message}")))
            case t.UndoEnded() if not (body.error or body.of_checks):
                text = f"the person undid {body.call_id} and what came after: look at the files anew"
                _add(self.decisions, Fact(r.seq, text))
            case t.ToolStarted() if body.snapshot:
                self._changed(r.seq, body.worked_names)
            case t.WorkCommitted():
                self._committed(r.seq, body)
            case t.PlanLoaded() | t.PlanFlipped():
                self.plan_seq = r.seq
            case t.PlanUpdated():
                self._updated(r.seq, body)
            case t.ApproachFailed():
                text = f"{line(body.entry, 60)}: “{line(body.what)}”: {body.why}"
                _add(self.in_vain, Fact(r.seq, line(text, 2 * _LINE)))
            case t.IterationStarted():
                self.midway = False
                self.between = False
                self.blocked.pop(body.entry, None)
                self.at_hand = Fact(r.seq, f"{line(body.entry, 60)}, attempt {body.attempt}")
            case t.IterationEnded():
                self.between = True
                self.at_hand = None
                reason = f": {body.reason}" if body.reason else ""
                _add(self.finished, Fact(r.seq, line(f"{line(body.entry, 60)} {body.outcome}{reason}")))
            case t.ContextReset() | t.ContextCompacted():
                self.midway = not self.boundary
                self.boundary = ""
            case _:
                pass

    def _handed(self, forked: t.Forked) -> None:
        for one in forked.decided:
            _add(self.decisions, Fact(one.seq, line(one.text), one.sid))
        for one in forked.failed:
            _put(self.failed, line(one.text), Fact(one.seq, line(one.why), one.sid), _MANY)

    def _ended(self, seq: int, body: t.ToolEnded) -> None:
        asked = self.asked.pop(body.call_id, None)
        if asked is None:
            return
        good = body.status == CallEnd.OK and not body.exit_code
        for path in body.files_changed:
            _put(self.files, line(path), Fact(seq, asked.tool), _FILES)
        if registry.runs(asked.tool) and good:
            self.failed.pop(asked.text, None)
            _put(self.worked, asked.text, Fact(seq, ""), _MANY)
        elif not good:
            self.worked.pop(asked.text, None)
            ends = [text for text in body.preview.split("\n") if text.strip()]
            _put(self.failed, asked.text, Fact(seq, line(f"{_how(body)}: {ends[-1] if ends else 'no output'}")), _MANY)

    def _changed(self, seq: int, names: list[str]) -> None:
        """What changed shows in the states before two calls, so the second one says it of the first."""
        for path in map(line, names):
            known = self.files.get(path)
            if known is None or known.seq <= self.kept_seq:
                _put(self.files, path, Fact(seq, "seen changed"), _FILES)
        self.kept_seq = seq

    def _committed(self, seq: int, body: t.WorkCommitted) -> None:
        for one in body.commits:
            _add(self.commits, Fact(seq, line(f"{one.id} {one.subject}")))
        if body.commits and not self.between:
            self.boundary = COMMIT

    def _updated(self, seq: int, body: t.PlanUpdated) -> None:
        entry = line(body.entry, 60)
        if body.trigger == ASSUMPTION:
            _add(self.in_vain, Fact(seq, f"assumed, and proved wrong: “{line(body.reason)}”"))
        if body.note:
            _add(self.notes, Fact(seq, f"{entry}: “{line(body.note)}”"))
        if body.state == BLOCKED:
            _put(self.blocked, body.entry, Fact(seq, f"{entry} is blocked: “{line(body.reason)}”"), _MANY)
        elif body.state == IN_PROGRESS:
            self.blocked.pop(body.entry, None)
            self.at_hand = Fact(seq, entry)

    def _resolved(self, seq: int, body: t.ToolResolved) -> None:
        asked = self.asked.pop(body.call_id, None)
        if asked is not None:
            _put(self.failed, asked.text, Fact(seq, line(f"interrupted, {body.resolution}: {body.evidence}")), _MANY)


def line(text: str, most: int = _LINE) -> str:
    """Any text as one line of the length that a fact has here."""
    return formatting.line(text, most)


def _call(tool: str, given: Mapping[str, object]) -> str:
    """A call as one line: the command itself, or the tool and what it is about."""
    argv = given.get("argv")
    if isinstance(argv, list):
        return line(shlex.join(str(part) for part in argv))
    script = given.get("script")
    if isinstance(script, str):
        return line(script)
    about = " ".join(str(given[name]) for name in _ABOUT if given.get(name))
    return line(f"{tool} {about}")


def _how(body: t.ToolEnded) -> str:
    return body.status if not body.exit_code else f"exit {body.exit_code}"


def _add(facts: list[Fact], fact: Fact) -> None:
    facts.append(fact)
    del facts[:-_MANY]


def _put(facts: dict[str, Fact], name: str, fact: Fact, most: int) -> None:
    """The newest of a name stands last."""
    facts.pop(name, None)
    facts[name] = fact
    while len(facts) > most:
        del facts[next(iter(facts))]

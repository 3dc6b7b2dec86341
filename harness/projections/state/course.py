"""The course of a session's work: the steps of the current phase, and what asks for thinking them over. Pure.

Nothing is looked for before there is a plan, or steps.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from harness.domain.calls.call_states import CallEnd
from harness.domain.text.formatting import line
from harness.events import types as t
from harness.events.body import Body
from harness.events.plan import course_events as e
from harness.tools.summary import what

FAILS = 3
"""The same call failing so often in a row, nothing changed in between, is a tool that fails."""
FAILS_AFTER_CHANGES = 6
"""So often in all since it last went well, whatever was changed in between."""
OVERSIZE = 1 << 20
"""Bytes of one call's output that are more than anybody can work with."""
_MANY = 100
_LINE = 200


@dataclass(frozen=True, slots=True)
class Owed:
    """A replan that is due: what asked for it, and the record that it was seen in."""

    trigger: str
    reason: str
    about: int


@dataclass(slots=True)
class Failing:
    """How often a call failed since it went well: nothing changed in between, and in all."""

    in_a_row: int = 0
    times: int = 0
    told: bool = False
    """Once until it goes well."""


@dataclass(slots=True)
class Asked:
    """A call of the agent that is not over: what makes it the same as another, and itself in words."""

    same: str
    words: str


@dataclass(slots=True)
class Course:
    """Built only by `take`."""

    steps: list[str] = field(default_factory=list)
    seq: int = -1
    """Where they were set."""
    call_id: str = ""
    """The newest call of the agent that changed the course."""
    replans: dict[str, int] = field(default_factory=dict)
    """By trigger."""
    owed: list[Owed] = field(default_factory=list)
    open: dict[str, Asked] = field(default_factory=dict)
    failing: dict[str, Failing] = field(default_factory=dict)
    oversize: list[str] = field(default_factory=list)
    """Calls whose output was too large; once is enough to say so."""
    replied: bool = False
    """The agent has said something: words of a person after that correct it."""

    def take(self, seq: int, body: Body, planned: bool) -> None:
        """Apply one record; ``planned``: there is a plan to keep to."""
        match body:
            case t.PlanUpdated():
                self._updated(seq, body)
            case t.PhaseBegun():
                self.steps = []  # a phase has steps of its own
            case t.ModelMessage() if not body.purpose:
                self.replied = True
            case t.UserMessage() if body.origin == "human" and self.replied and (planned or self.steps):
                words = line(body.text, _LINE)
                self.owed.append(Owed(e.CORRECTION, f"a person says: {words}", seq))
            case t.ToolProposed() if not (body.by_harness or body.not_of_agent) and (planned or self.steps):
                self.open[body.call_id] = Asked(_same(body), line(what(body.tool, body.input), _LINE))
            case t.ToolEnded() if (asked := self.open.pop(body.call_id, None)) is not None:
                self._ended(seq, asked, body)
            case t.ToolResolved():
                self.open.pop(body.call_id, None)
            case _:
                pass

    def _updated(self, seq: int, b: t.PlanUpdated) -> None:
        self.call_id = b.call_id or self.call_id
        if b.trigger:
            self.replans[b.trigger] = self.replans.get(b.trigger, 0) + 1
        self.owed = [one for one in self.owed if (one.trigger, one.about) != (b.trigger, b.about)]
        if b.steps is not None:
            self.steps = list(b.steps)
            self.seq = seq

    def _ended(self, seq: int, asked: Asked, b: t.ToolEnded) -> None:
        if b.output is not None and (b.truncated or b.output.bytes >= OVERSIZE) and asked.same not in self.oversize:
            self.oversize = [*self.oversize, asked.same][-_MANY:]
            size = f"{b.output.bytes:,} bytes{' and more' if b.truncated else ''}"
            self.owed.append(Owed(e.OVERSIZE_OUTPUT, f"`{asked.words}` gave {size} of output", seq))
        if b.status in (CallEnd.ERROR, CallEnd.TIMEOUT) or (b.status == CallEnd.OK and b.exit_code):
            self._failed(seq, asked)
        elif b.status == CallEnd.OK:
            self.failing.pop(asked.same, None)
            if b.files_changed:
                for other in self.failing.values():
                    other.in_a_row = 0

    def _failed(self, seq: int, asked: Asked) -> None:
        one = self.failing.pop(asked.same, None) or Failing()
        self.failing[asked.same] = one
        while len(self.failing) > _MANY:
            del self.failing[next(iter(self.failing))]
        one.in_a_row += 1
        one.times += 1
        if not one.told and (one.in_a_row >= FAILS or one.times >= FAILS_AFTER_CHANGES):
            one.told = True
            self.owed.append(Owed(e.TOOL_FAILURE, f"`{asked.words}` failed {one.times} times", seq))


def _same(body: t.ToolProposed) -> str:
    """Equal for the same tool with the same input, whatever is claimed about it."""
    if body.input_blob is not None:
        return f"{body.tool}:{body.input_blob.sha}"
    asked = {key: value for key, value in (body.input or {}).items() if key != "why"}
    return f"{body.tool}:{hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()}"


def news(body: t.PlanUpdated) -> str:
    """What the agent reads of a replan that the harness saw; empty for one that it made itself."""
    if not body.trigger or body.call_id:
        return ""
    why = body.trigger.replace("_", " ")
    return (
        f"Replan ({why}): {body.reason}. Think the steps of this phase over, and set them with"
        ' plan {"action": "steps"} before you go on.'
    )

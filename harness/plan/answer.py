"""What the tool ``plan`` answers, and what it changes: never whether an entry passes, nor which entries there are.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.domain.text import fields
from harness.domain.text.formatting import counted
from harness.events import types as t
from harness.events.plan import course_events
from harness.plan import order
from harness.projections.state import plan_state
from harness.projections.state.protected_files import PlanProgress
from harness.projections.state.session_state import SessionState
from harness.tools.plan_tool import BLOCKED, NOTE, REPLAN, SHOW, START, STEPS

_SHOWN = 40
"""Entries of a phase that `show` lists; what is open comes first."""
_MARKS = {plan_state.PASSED: "x", plan_state.IN_PROGRESS: ">", plan_state.FAILED: "!", plan_state.BLOCKED: "#"}
_NO_PLAN = "this session has no plan: only steps and replan can be used"


@dataclass(frozen=True, slots=True)
class Answer:
    """The words of the result, and the record to be written with it, if any. ``good``: it was done."""

    text: str
    record: t.PlanUpdated | None = None
    good: bool = True


def answer(s: SessionState, call_id: str, given: Mapping[str, object]) -> Answer:
    """What follows from an input that makes sense in itself."""
    action = fields.text(given, "action")
    text = str(given.get("text", ""))
    steps = list(fields.texts(given, "steps")) if "steps" in given else None
    if action == SHOW:
        return Answer(show(s))
    if action == STEPS:
        return Answer(_counted(steps), t.PlanUpdated(call_id=call_id, steps=steps))
    if action == REPLAN:
        record = t.PlanUpdated(call_id=call_id, trigger=course_events.ASSUMPTION, reason=text, steps=steps)
        return Answer(_counted(steps), record)
    if s.plan is None:
        return Answer(_NO_PLAN, good=False)
    entry = s.plan.entries.get(str(given["entry"]))
    if entry is None:
        return Answer(f"there is no entry {str(given['entry'])[:80]!r}; see plan show", good=False)
    return _on_entry(s.plan, entry, action, text, call_id)


def _on_entry(plan: PlanProgress, entry: t.PlanEntry, action: str, text: str, call_id: str) -> Answer:
    match action:
        case str() if action == NOTE:
            return Answer("noted", t.PlanUpdated(call_id=call_id, entry=entry.id, note=text))
        case str() if action == BLOCKED:
            record = t.PlanUpdated(call_id=call_id, entry=entry.id, state=plan_state.BLOCKED, reason=text)
            after = order.next_entry(_without(plan, entry.id))
            then = f"next is {after.id}: {after.title}" if after is not None else "nothing else can be worked on now"
            return Answer(f"{entry.id} is blocked; {then}", record)
        case str() if action == START and (why := cannot_start(plan, entry)):
            return Answer(why, good=False)
    record = t.PlanUpdated(call_id=call_id, entry=entry.id, state=plan_state.IN_PROGRESS)
    criteria = "\n".join(f"- {command}" for command in entry.checks)
    return Answer(f"{entry.id} is in progress: {entry.title}\n{criteria}".rstrip(), record)


def cannot_start(plan: PlanProgress, entry: t.PlanEntry) -> str:
    """Why an entry cannot be begun now; empty when it can."""
    if plan.passes[entry.id]:
        return f"{entry.id} passes already"
    now = order.phase(plan)
    if now is not None and entry.phase != now.name:
        left = [one.id for one in order.of_phase(plan, now.name) if not plan.passes[one.id]]
        return f"{entry.id} belongs to a later phase; first come {', '.join(left[:10])}"
    waiting = order.waits_for(plan, entry)
    return f"{entry.id} waits for {', '.join(waiting[:10])}" if waiting else ""


def _without(plan: PlanProgress, name: str) -> PlanProgress:
    """The plan with one entry that counts as done."""
    return PlanProgress(plan.path, plan.entries, plan.passes | {name: True}, work=plan.work)


def _counted(steps: list[str] | None) -> str:
    count = len(steps or ())
    return f"{counted(count, 'step')} for this phase"


def show(s: SessionState) -> str:
    """The plan and the steps as the agent reads them: the current phase in full, the others counted."""
    lines = _entries(s.plan) if s.plan is not None else ["no plan"]
    if s.course.steps:
        lines += ["steps of this phase:", *(f"{n}. {step}" for n, step in enumerate(s.course.steps, 1))]
    return "\n".join(lines)


def _entries(plan: PlanProgress) -> list[str]:
    lines = [f"{plan.path}: {plan.passed} of {len(plan.entries)} pass"]
    now = order.phase(plan)
    upcoming = order.next_entry(plan)
    for phase in plan.work.phases:
        entries = list(order.of_phase(plan, phase.name))
        passed = sum(plan.passes[entry.id] for entry in entries)
        gate = f", gate: {phase.gate}" if phase.gate else ""
        lines.append(f"phase {phase.name or '(without a name)'}: {passed} of {len(entries)} pass{gate}")
        if now is None or phase.name != now.name:
            continue
        entries.sort(key=lambda entry: plan.passes[entry.id])
        lines += [_line(plan, entry, entry is upcoming) for entry in entries[:_SHOWN]]
        if len(entries) > _SHOWN:
            lines.append(f"({len(entries) - _SHOWN} more)")
    return lines


def _line(plan: PlanProgress, entry: t.PlanEntry, upcoming: bool) -> str:
    one = plan.work.standing[entry.id]
    state = plan.work.state(entry.id, plan.passes[entry.id])
    told = [state.replace("_", " ")]
    told += [f"{one.attempts} attempts"] if one.attempts else []
    told += [f"waits for {', '.join(waiting)}"] if (waiting := order.waits_for(plan, entry)) else []
    told += [one.blocked] if one.blocked else []
    told += ["next"] if upcoming else []
    notes = "".join(f"\n    note: {note}" for note in one.notes)
    return f"[{_MARKS.get(state, ' ')}] {entry.id} {entry.title} ({'; '.join(told)}){notes}"

"""The verb that shows a session's plan: each entry with its state, what it waits for, and what was seen of it."""

from __future__ import annotations

import argparse

from app.cli import context, exits
from app.cli.context import Context
from app.cli.output import emit, safe, say
from harness.events import types as t
from harness.events.fold import SessionState
from harness.events.ratchet import Plan
from harness.plan import order

_TITLE = 200
_MARKS = {"passed": "✔", "in_progress": "▶", "failed": "✘", "blocked": "■"}
_OPEN = "·"


def show(ctx: Context, args: argparse.Namespace) -> int:
    """Exit code 0 when every entry passes, else 1; 4 without a plan."""
    with ctx.look() as client:
        reply = client.call("session", sid=args.id)
    plan = context.convert(reply["state"], SessionState).plan
    if plan is None:
        say("it has no plan; launch a session with --plan FILE")
        return exits.NOT_FOUND
    done = exits.OK if plan.passed == len(plan.entries) else exits.NO
    if args.json:
        emit({"path": plan.path, "phase": _current(plan), "entries": [_wire(plan, e) for e in plan.entries.values()]})
        return done
    say(f"{safe(plan.path)}: {plan.passed} of {len(plan.entries)} pass")
    upcoming = order.next_entry(plan)
    for phase in plan.work.phases:
        if phase.name or phase.gate:
            say(_heading(plan, phase))
        for entry in order.of_phase(plan, phase.name):
            for line in _lines(plan, entry, entry is upcoming):
                say(line)
    return done


def _current(plan: Plan) -> str | None:
    now = order.phase(plan)
    return now.name if now is not None else None


def _wire(plan: Plan, entry: t.PlanEntry) -> dict[str, object]:
    one = plan.work.standing[entry.id]
    return {
        "id": entry.id,
        "title": entry.title,
        "state": _state(plan, entry),
        "phase": entry.phase,
        "depends_on": entry.depends_on,
        "waits_for": order.waits_for(plan, entry),
        "attempts": one.attempts,
        "evidence": one.evidence,
        "blocked": one.blocked,
        "undecided": entry.undecided,
    }


def _state(plan: Plan, entry: t.PlanEntry) -> str:
    return plan.work.state(entry.id, plan.passes[entry.id])


def _heading(plan: Plan, phase: t.PlanPhase) -> str:
    entries = list(order.of_phase(plan, phase.name))
    passed = sum(plan.passes[entry.id] for entry in entries)
    gate = f"; gate: {safe(phase.gate, _TITLE)}" if phase.gate else ""
    return f"{safe(phase.name, _TITLE) or '(no phase)'}: {passed} of {len(entries)}{gate}"


def _lines(plan: Plan, entry: t.PlanEntry, upcoming: bool) -> list[str]:
    one = plan.work.standing[entry.id]
    state = _state(plan, entry)
    told = [state.replace("_", " ")]
    if one.attempts:
        told.append(f"{one.attempts} attempt{'s' if one.attempts != 1 else ''}")
    if one.evidence:
        told.append("seen at " + ", ".join(f"#{seq}" for seq in one.evidence[-3:]))
    if waiting := order.waits_for(plan, entry):
        told.append(f"after {safe(', '.join(waiting), _TITLE)}")
    if entry.undecided:
        told.append(f"{entry.undecided} of its criteria no check decides")
    mark = _MARKS.get(state, _OPEN)
    lines = [f"  {mark} {safe(entry.id, 40)}  {safe(entry.title, _TITLE)}" + ("  ← next" if upcoming else "")]
    lines.append(f"      {'; '.join(told)}")
    if one.blocked:
        lines.append(f"      blocked: {safe(one.blocked, _TITLE)}")
    return lines

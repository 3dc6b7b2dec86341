"""The verb that shows a session's plan: each entry with its state, what it waits for, and what was seen of it."""

from __future__ import annotations

import argparse

import msgspec

from app.cli.base import exits
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say, warn
from app.cli.verbs import archive
from harness.domain import outcomes
from harness.domain.text.formatting import counted
from harness.plan.board import board
from harness.views.plan_views import EntryView, PhaseView

_TITLE = 200
_MARKS = {"passed": "✔", "in_progress": "▶", "failed": "✘", "blocked": "■"}
_OPEN = "·"


def show(ctx: Context, args: argparse.Namespace) -> int:
    """Exit code 0 when every entry passes, else 1; 4 without a plan."""
    with ctx.look() as client:
        state, _ = archive.state(client, args.id)
    plan = board(state)
    if plan is None:
        warn("watchfloor: it has no plan; launch a session with --plan FILE")
        return exits.NOT_FOUND
    done = exits.OK if plan.passed == len(plan.entries) else exits.NO
    if args.json:
        emit(msgspec.to_builtins(plan))
        return done
    say(f"{safe(plan.path)}: {plan.passed} of {len(plan.entries)} pass")
    for phase in plan.phases:
        if phase.name or phase.gate or phase.asks:
            say(_heading(phase))
        for entry in (one for one in plan.entries if one.phase == phase.name):
            for line in _lines(entry, entry.id == (plan.at or plan.next)):
                say(line)
    return done


def _heading(phase: PhaseView) -> str:
    gate = f"; gate: {safe(phase.gate, _TITLE)}" if phase.gate else ""
    gate += " (opened)" if phase.opened else ""
    gate += f"; asks on each {safe(', '.join(phase.asks), _TITLE)}" if phase.asks else ""
    return f"{safe(phase.name, _TITLE) or '(no phase)'}: {phase.passed} of {phase.total}{gate}"


def _lines(entry: EntryView, upcoming: bool) -> list[str]:
    told = [outcomes.WORDS.get(entry.outcome, entry.state.replace("_", " "))]
    if entry.held_before and not entry.outcome:
        told.append("all that decides it passed before the work")
    if entry.attempts:
        told.append(counted(entry.attempts, "attempt"))
    if entry.evidence:
        told.append("seen at " + ", ".join(f"#{seq}" for seq in entry.evidence[-3:]))
    if entry.waits_for:
        told.append(f"after {safe(', '.join(entry.waits_for), _TITLE)}")
    if entry.claimed:
        told.append("its agent says that it is done")
    if entry.undecided:
        told.append(f"{entry.undecided} of its criteria no check decides")
    mark = _MARKS.get(entry.state, _OPEN)
    lines = [f"  {mark} {safe(entry.id, 40)}  {safe(entry.title, _TITLE)}" + ("  ← next" if upcoming else "")]
    lines.append(f"      {'; '.join(told)}")
    if entry.blocked:
        lines.append(f"      blocked: {safe(entry.blocked, _TITLE)}")
    return lines

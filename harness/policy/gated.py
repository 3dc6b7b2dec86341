"""What the gate of a plan's phase makes of a verdict: a call with one of its kinds of effect asks, whatever allowed it.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.events import gate_kinds, tools
from harness.events.action import Action
from harness.events.effect import NO_UNDO, PUSH_FORCE, UNFENCED, Effect
from harness.events.gate_kinds import GateKind
from harness.policy.judge import Verdict
from harness.policy.rules import RISKS


def kinds(action: Action) -> frozenset[GateKind]:
    """What the action would do, as far as gates speak of it; nothing for what stays inside the fence."""
    return frozenset(kind for effect in action.effects for kind in _of(effect, tools.writes_file(action.tool)))


def _of(effect: Effect, writes: bool) -> tuple[GateKind, ...]:
    if effect == UNFENCED:
        return tuple(GateKind)
    if effect == PUSH_FORCE:
        return GateKind.PRODUCTION_WRITE, GateKind.DELETE
    if effect.publishes:
        return (GateKind.PRODUCTION_WRITE,)
    if effect == NO_UNDO:
        return (GateKind.DELETE,)
    if effect.is_outside:
        return (GateKind.PRODUCTION_WRITE, GateKind.DELETE) if writes else ()
    return (GateKind.EXTERNAL_MESSAGE,)


def tightened(verdict: Verdict, action: Action, phase: str, asks: Iterable[str]) -> Verdict:
    """The verdict inside a phase whose gate asks about these kinds. Never milder; a denial stays what it is."""
    met = sorted(kinds(action).intersection(asks))
    if not met or verdict.verdict == "deny":
        return verdict
    why = f"the plan wants your word on each {' and '.join(met)} in {phase or 'it'}"
    reason = f"{why}; {verdict.reason}" if verdict.verdict == "ask" else why
    return Verdict("ask", gate_kinds.rule(phase), reason, max(verdict.risk, "medium", key=RISKS.index))

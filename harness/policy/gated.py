"""What the gate of a plan's phase makes of a verdict: a call with one of its kinds of effect asks, whatever allowed it.
Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from harness.domain import unsnapshotted
from harness.domain.actions.action import Action, FileAction
from harness.domain.actions.effect import NO_UNDO, PUSH_FORCE, UNSANDBOXED, Effect
from harness.domain.calls import gate_kinds
from harness.domain.calls.gate_kinds import GateKind
from harness.domain.decision import Ruling
from harness.policy.decide import Verdict
from harness.policy.policy_file import RISKS
from harness.tools import registry


def kinds(action: Action, unkept: Collection[str] = ()) -> frozenset[GateKind]:
    """What the action would do, as far as gates speak of it; nothing for what an undo brings back inside the sandbox.

    ``unkept``: what the kept state of the worktree does not hold, as `left_out` says it.
    """
    found = {kind for effect in action.effects for kind in _of(effect, registry.writes_file(action.tool))}
    return frozenset(found | {GateKind.DELETE}) if _may_lose(action, unkept) else frozenset(found)


def _may_lose(action: Action, unkept: Collection[str]) -> bool:
    """True when it may change a file that was not kept: a program any of them, a file tool the one that it names."""
    if not unkept or not registry.may_change_files(action.tool, action.access):
        return False
    if isinstance(action, FileAction):
        return unsnapshotted.may_be(action.path, unkept)
    return registry.runs(action.tool)


def _of(effect: Effect, writes: bool) -> tuple[GateKind, ...]:
    if effect == UNSANDBOXED:
        return tuple(GateKind)
    if effect == PUSH_FORCE:
        return GateKind.PRODUCTION_WRITE, GateKind.DELETE
    if effect.publishes:
        return (GateKind.PRODUCTION_WRITE,)
    if effect == NO_UNDO:
        return (GateKind.DELETE,)
    if effect.is_outside:
        return (GateKind.PRODUCTION_WRITE, GateKind.DELETE) if writes else ()
    # the network: whether a call only reads there, tells somebody or changes something is seen by nobody outside it
    return GateKind.EXTERNAL_MESSAGE, GateKind.PRODUCTION_WRITE


def tightened(
    verdict: Verdict, action: Action, phase: str, asks: Iterable[str], unkept: Collection[str] = ()
) -> Verdict:
    """The verdict inside a phase whose gate asks about these kinds. Never milder; a denial stays what it is."""
    met = sorted(kinds(action, unkept).intersection(asks))
    if not met or verdict.verdict == Ruling.DENY:
        return verdict
    why = f"the plan wants your word on each {' and '.join(met)} in {phase or 'it'}"
    reason = f"{why}; {verdict.reason}" if verdict.verdict == Ruling.ASK else why
    return Verdict(Ruling.ASK, gate_kinds.rule(phase), reason, max(verdict.risk, "medium", key=RISKS.index))

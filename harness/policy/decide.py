"""The verdict on one action. Pure: deny beats ask beats allow; what leaves the sandbox and is not listed asks."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.domain.actions.action import Action, ExecAction, FileAction, PushAction, RecordAction
from harness.domain.actions.effect import NETWORK, NO_UNDO, PUSH_FORCE, UNSANDBOXED, Effect
from harness.domain.decision import Ruling
from harness.policy import hosts
from harness.policy.policy_file import RISKS, Policy, Rule
from harness.tools import registry

INSIDE = "inside-the-sandbox"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``rule`` names what decided; ``risk`` is low, medium, high or critical."""

    verdict: Ruling
    rule: str
    reason: str
    risk: str


def text_of(action: Action) -> str:
    """The canonical text that ``match`` is held against: the quoted command, the script, or tool and path."""
    if isinstance(action, ExecAction | PushAction):
        return shlex.join(action.argv)
    if isinstance(action, FileAction):
        return f"{action.tool} {action.path}"
    if isinstance(action, RecordAction):
        return " ".join([action.tool, *(f"{name}={value}" for name, value in sorted((action.input or {}).items()))])
    return action.script


def decide(action: Action, policy: Policy) -> Verdict:
    """The verdict of ``policy`` on ``action`` (as `build_action` makes it).

    Order: refused by construction → deny; any deny rule → deny; any ask rule → ask; every effect covered by an allow
    rule → allow; no effects → allow; else ask.
    """
    if action.refused:
        return Verdict(Ruling.DENY, "refused", action.refused, "low")
    effects = action.effects
    risk = max((risk_of(action, e) for e in effects), key=RISKS.index, default="low")
    hit = [r for r in policy.rules if _matches(r, action, effects)]
    for verdict in (Ruling.DENY, Ruling.ASK):
        for rule in hit:
            if rule.verdict == verdict:
                return Verdict(verdict, rule.name, rule.reason or _why(effects), rule.risk or risk)
    if not effects:
        return Verdict(Ruling.ALLOW, INSIDE, "everything it can touch is inside the sandbox", "low")
    allowing = [r for r in hit if r.verdict == Ruling.ALLOW]
    deciding: list[Rule] = []
    for effect in effects:
        cover = next((r for r in allowing if _covers(r, effect)), None)
        if cover is None:
            return Verdict(Ruling.ASK, "default", _why(effects), risk)
        deciding.append(cover)
    names = ", ".join(dict.fromkeys(r.name for r in deciding))
    return Verdict(Ruling.ALLOW, names, deciding[0].reason or f"allowed by {names}", deciding[0].risk or risk)


def tighten(verdict: Verdict, action: Action, rules: Sequence[Rule], whose: str) -> Verdict:
    """The verdict with further rules that ask or deny; they never make it milder. ``whose`` they are."""
    order = tuple(Ruling)
    hit = [r for r in rules if r.verdict != Ruling.ALLOW and _matches(r, action, action.effects)]
    worst = max(hit, key=lambda rule: order.index(rule.verdict), default=None)
    if worst is None or order.index(worst.verdict) <= order.index(verdict.verdict):
        return verdict
    reason = worst.reason or f"{whose} asks for your decision"
    risk = max(worst.risk or verdict.risk, verdict.risk, key=RISKS.index)
    return Verdict(worst.verdict, f"{whose}: {worst.name}", reason, risk)


def explain(action: Action, policy: Policy) -> list[str]:
    """Why `judge` says what it says, one line for each rule that is about the action and each effect that it has."""
    if action.refused:
        return [f"refused whatever the policy says: {action.refused}"]
    hit = [rule for rule in policy.rules if _matches(rule, action, action.effects)]
    lines = [f"{rule.verdict} by {rule.name}, line {rule.line} of {policy.source}" for rule in hit]
    for effect in action.effects:
        cover = next((rule for rule in hit if rule.verdict == Ruling.ALLOW and _covers(rule, effect)), None)
        how = "no allow rule covers it" if cover is None else f"covered by {cover.name}, line {cover.line}"
        lines.append(f"effect {effect} ({_words(effect)}): {how}")
    if not action.effects:
        lines.append("it has no effect outside the sandbox")
    return lines


def risk_of(action: Action, effect: Effect) -> str:
    """How much one effect can cost when it was a mistake."""
    if effect == UNSANDBOXED:
        return "critical"
    if effect == PUSH_FORCE or (effect.is_outside and registry.writes_file(action.tool)):
        return "high"
    return "medium"


def _covers(rule: Rule, effect: Effect) -> bool:
    """True when an allow rule's pattern reaches this effect.

    Patterns over hosts are read host by host, not letter by letter.
    """
    if rule.effect is None:
        return False
    pattern = Effect.parse(rule.effect).host
    if effect.host is not None and pattern is not None:
        return hosts.covers(pattern, effect.host)
    return fnmatch.fnmatchcase(str(effect), rule.effect)


def _speaks_of(rule: Rule, effect: Effect) -> bool:
    """True when the rule is about this effect.

    To ask or deny, any host is part of ``network`` and the other way round.
    """
    if rule.effect is None or rule.verdict == Ruling.ALLOW:
        return rule.effect is None or _covers(rule, effect)
    wanted = Effect.parse(rule.effect)
    if wanted.host is not None:
        return effect == NETWORK or (effect.host is not None and hosts.touches(wanted.host, effect.host))
    return fnmatch.fnmatchcase(str(effect), rule.effect) or (wanted == NETWORK and effect.host is not None)


def _matches(rule: Rule, action: Action, effects: Sequence[Effect]) -> bool:
    """To ask or deny, a rule also speaks of the program that it names where an action names it by a path."""
    if rule.verdict != Ruling.ALLOW and isinstance(action, ExecAction | PushAction) and "/" in "".join(action.argv[:1]):
        named = replace(action, argv=(action.argv[0].rpartition("/")[2], *action.argv[1:]))
        return _fits(rule, action, effects) or _fits(rule, named, effects)
    return _fits(rule, action, effects)


def _fits(rule: Rule, action: Action, effects: Sequence[Effect]) -> bool:
    if rule.tool is not None and not fnmatch.fnmatchcase(action.tool, rule.tool):
        return False
    argv = action.argv if isinstance(action, ExecAction | PushAction) else None
    if rule.args is not None and (argv is None or not _args(rule.args, argv)):
        return False
    if rule.match is not None:
        text = text_of(action)
        exact = rule.verdict == Ruling.ALLOW and argv is None
        if not (text == rule.match if exact else fnmatch.fnmatchcase(text, rule.match)):
            return False
    if rule.path is not None and not (isinstance(action, FileAction) and fnmatch.fnmatchcase(action.path, rule.path)):
        return False
    return rule.effect is None or any(_speaks_of(rule, e) for e in effects)


def _args(pattern: Sequence[str], argv: Sequence[str]) -> bool:
    if pattern[-1] == "**":
        pattern = pattern[:-1]
        if len(argv) < len(pattern):
            return False
        argv = argv[: len(pattern)]
    return len(argv) == len(pattern) and all(fnmatch.fnmatchcase(a, p) for a, p in zip(argv, pattern, strict=True))


def _why(effects: Sequence[Effect]) -> str:
    return "; ".join(_words(effect) for effect in effects) or "a rule asks for your decision"


def _words(effect: Effect) -> str:
    if effect == NETWORK:
        return "uses the network: any host, including services on this machine's loopback"
    if effect.host is not None:
        return f"reaches {effect.host} over the network"
    if effect == UNSANDBOXED:
        return "runs without the sandbox"
    if effect.is_outside:
        return f"reaches {effect.what}, outside the worktree"
    if effect == PUSH_FORCE:
        return "may overwrite or delete what is there"
    if effect.publishes:
        return f"pushes to {effect.what or ''}"
    if effect == NO_UNDO:
        return "cannot be undone: the state before it cannot be kept"
    return str(effect)

"""A plan that the session writes from its goal: what is looked at, and what is wrong with it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.events.request import Request
from harness.events.session_state import SessionState
from harness.plan import spec
from harness.plan.criteria import ANY_FORM, Problem
from harness.plan.formats import BadPlan, Plan, read
from harness.plan.phases import phased

_NAMED = 20


@dataclass(frozen=True, slots=True)
class Found:
    """What stands in the file: the plan, None when it is none, and what is wrong, one sentence each."""

    plan: Plan | None
    problems: tuple[str, ...] = ()


def task(words: str, path: str) -> str:
    """What the agent is asked to do first: the initializer's ``first`` with the file and the forms of steps in it."""
    return words.replace("{path}", path).replace("{forms}", ANY_FORM)


def writing(s: SessionState) -> bool:
    """True before the plan of such a session counts."""
    return s.intent is not None and bool(s.intent.draft) and s.plan is None


def due(s: SessionState) -> bool:
    """True when somebody has to look at what was written."""
    asked = any(a.kind == Request.PLAN for a in s.approvals.values())
    return writing(s) and s.draft.claim >= 0 and not s.calls.open and not asked


def found(data: bytes | None, gates: Sequence[str] = ()) -> Found:
    """What is in the file (None: there is none). Criteria that no machine decides are problems of a plan that is one
    all the same.
    """
    if data is None:
        return Found(None, ("there is no such file",))
    try:
        plan = read(data)
        phased(plan, gates)
        lines = spec.check(data)
    except BadPlan as exc:
        return Found(None, (str(exc),))
    if not plan.entries:
        return Found(None, ("it has no entry",))
    passing = [f"{entry.id} says that it passes, before anything was done" for entry in plan.entries if entry.passes]
    vague = [
        f"{line.where}: {line.found.text}: {line.found.why}; better: {line.found.instead}"
        for line in lines
        if isinstance(line.found, Problem)
    ]
    return Found(None if passing else plan, (*passing, *vague))


def told(path: str, problems: Sequence[str]) -> str:
    """What the agent reads of a plan that is sent back."""
    more = len(problems) - _NAMED
    lines = [f"- {problem}" for problem in problems[:_NAMED]] + ([f"- and {more} more"] if more > 0 else [])
    return "\n".join([f"`{path}` is not accepted yet. Repair it, then stop again:", *lines])

"""A plan that the session writes from its goal: what is looked at, and what is wrong with it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.domain.calls.approval_kind import Request
from harness.plan import progress
from harness.plan.files import phrases
from harness.plan.files.criteria import ANY_FORM, Problem
from harness.plan.files.criteria_lines import of_plan
from harness.plan.files.formats import BadPlan, Plan, read
from harness.plan.files.spellings import FEATURES, LISTS, STORIES, TASKS
from harness.plan.phases import phased
from harness.projections.state.session_state import SessionState

_NAMED = 20
_OF_NAME = {"prd.json": (STORIES, TASKS), "feature_list.json": (FEATURES,)}
"""The forms of plans by the names that others give them; a file of another name has any."""
_WORDS = {
    FEATURES: (
        "a JSON list of objects with category, description, steps (a list), and passes false; optionally id, phase and"
        " depends_on (ids)"
    ),
    STORIES: (
        "a JSON object with project, branchName, description and userStories: a list of objects with id (US-001),"
        " title, description, acceptanceCriteria (a list), priority (1 comes first), passes false, and notes;"
        " optionally phase and depends_on (ids)"
    ),
}


@dataclass(frozen=True, slots=True)
class Found:
    """What stands in the file: the plan, None when it is none, and what is wrong, one sentence each."""

    plan: Plan | None
    problems: tuple[str, ...] = ()


def task(words: str, path: str) -> str:
    """What the agent is asked to do first: the initializer's ``first`` with the file, its form and the forms of steps
    in it.
    """
    form = _WORDS[_forms(path)[0]]
    return words.replace("{form}", form).replace("{forms}", ANY_FORM).replace("{path}", path)


def writing(s: SessionState) -> bool:
    """True before the plan of such a session counts."""
    return s.intent is not None and bool(s.intent.draft) and s.plan is None


def due(s: SessionState) -> bool:
    """True when somebody has to look at what was written."""
    asked = any(a.kind == Request.PLAN for a in s.approvals.values())
    tried = not s.before.runs and not s.before.lacking(s.draft.commands)
    return writing(s) and s.draft.claim >= 0 and not s.calls.open and not asked and tried


def _forms(path: str) -> tuple[str, ...]:
    """The forms that a plan of this name may have; the first is asked for."""
    return _OF_NAME.get(path.rpartition("/")[2], tuple(LISTS))


def found(data: bytes | None, path: str, gates: Sequence[str] = (), bindings: Mapping[str, str] | None = None) -> Found:
    """What is in the file at ``path`` (None: there is none). Another form than its name says, and criteria that no
    machine decides, are problems of a plan that is one all the same.
    """
    if data is None:
        return Found(None, ("there is no such file",))
    try:
        plan = phrases.bound(read(data), bindings or {})
        phased(plan, gates)
        progress.checks(map(progress.wanted, plan.entries))
        lines = of_plan(plan)
    except BadPlan as exc:
        return Found(None, (str(exc),))
    passing = [f"{entry.id} says that it passes, before anything was done" for entry in plan.entries if entry.passes]
    vague = [
        f"{line.where}: {line.found.text}: {line.found.why}; better: {line.found.instead}"
        for line in lines
        if isinstance(line.found, Problem)
    ]
    wanted = _forms(path)
    vague += plan.unread
    other = [] if plan.form in wanted else [f"other programs expect under this name {_WORDS[wanted[0]]}"]
    return Found(None if passing else plan, (*passing, *other, *vague))


def told(path: str, problems: Sequence[str]) -> str:
    """What the agent reads of a plan that is sent back."""
    more = len(problems) - _NAMED
    lines = [f"- {problem}" for problem in problems[:_NAMED]] + ([f"- and {more} more"] if more > 0 else [])
    return "\n".join([f"`{path}` is not accepted yet. Repair it, then stop again:", *lines])

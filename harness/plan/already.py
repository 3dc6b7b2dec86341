"""Entries of a plan whose criteria all hold before the work: nothing of them can show that something was done, so they
pass only by a person's word. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness.domain.calls.approval_kind import Request
from harness.domain.outcomes import PASSED
from harness.plan.files import criteria
from harness.plan.files.criteria import Criterion
from harness.plan.files.formats import Entry
from harness.projections.state.session_state import SessionState

HOLDS = "already holds"
_NOBODY = "no command decides it"


def entries(s: SessionState) -> list[str]:
    """Those of a session's plan that do not pass, never passed, and that nobody let pass; none before it is known."""
    plan = s.plan
    if plan is None:
        return []
    left = [e for e in plan.entries.values() if not plan.passes[e.id] and e.id not in plan.proved and not e.undecided]
    return [e.id for e in left if e.checks and all(s.before.word(command) == PASSED for command in e.checks)]


def held(s: SessionState, entry: str) -> bool:
    """Whether an entry held before the work, and no person lets it pass."""
    return s.plan is not None and entry in entries(s) and entry not in s.plan.by_word


def due(s: SessionState) -> list[str]:
    """The entries about which a person is to be asked, once all that the checks said before the work is known."""
    plan = s.plan
    if plan is None or plan.asked or s.terminal or s.before.runs or s.before.lacking(s.criteria):
        return []
    asked = any(a.kind == Request.PLAN for a in s.approvals.values())
    return [] if asked else entries(s)


def of_draft(found: Iterable[Entry], before: Callable[[str], str]) -> list[str]:
    """The same of a plan that nobody accepted yet; ``before`` says what a command said."""
    return [
        entry.id
        for entry in found
        if (known := [criteria.parse(text) for text in entry.criteria])
        and all(isinstance(one, Criterion) and before(one.command) == PASSED for one in known)
    ]


def listed(entry: Entry, before: Callable[[str], str]) -> str:
    """An entry with each of its criteria, as a card shows it, and what they say now."""
    lines = [f"{entry.id} {entry.title}"]
    for text in entry.criteria:
        known = criteria.parse(text)
        if isinstance(known, Criterion):
            mark = HOLDS if before(known.command) == PASSED else ""
            command = "" if known.command in text else f"  ({known.command})"
        else:
            mark = _NOBODY
            command = ""
        flat = " ".join(text.split())
        lines.append(f"  - {flat}{command}" + (f"  [{mark}]" if mark else ""))
    return "\n".join(lines if entry.criteria else [*lines, "  - no criterion is given"])


def asks(names: Sequence[str]) -> str:
    """What allowing means for these entries."""
    some = f"{', '.join(names)}: every criterion holds already, so nothing would show that something was done"
    return f"{some}; allow lets them pass by your word"

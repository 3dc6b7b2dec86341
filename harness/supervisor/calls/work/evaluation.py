"""The case for the judge, laid out by the supervisor from what the harness saw: whoever did the work has no say in what
the judge is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace
from pathlib import Path

import msgspec

from harness.checks import steering
from harness.domain.calls.call_id import proposed_on
from harness.eventlog import reader
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.events.plan.evaluation_events import PLAN_CRITERION
from harness.judge import case
from harness.judge.case import Case, Checked, Criterion
from harness.plan.files import own_words
from harness.plan.iterations import looks
from harness.projections.state.evaluation import JudgeStage
from harness.projections.state.iterations import Began
from harness.projections.state.protected_files import PlanProgress
from harness.projections.state.session_state import SessionState
from harness.roles import pinned
from harness.roles.role import JUDGE
from harness.supervisor.calls.on_record import put_blob
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.calls.work import contract, plans, ratchet
from harness.supervisor.fleet.session import Session
from harness.tools import registry
from harness.workspace.git.run import Git
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.diff import FileChange, diff
from harness.workspace.tree.worktrees import open_worktree

GOAL = "goal"
"""The criterion that every case has."""
_CASE_S = 120.0
_MOST_PATCH = 2 * case.MOST_PATCH


async def step(session: Session) -> None:
    """Lay out the case when the work is to be judged. Raises OpError, LinkLost, Later."""
    s = session.state
    judging = s.judging
    if judging.wanted is not None and _wanted(s) and not s.calls.open:
        await ratchet.on_ground(_lay_out(session, judging.wanted))


def _wanted(s: SessionState) -> bool:
    return s.judging.stage is JudgeStage.REQUESTED and s.finish_up is None


async def _lay_out(session: Session, wanted: t.JudgeWanted) -> None:
    s = session.state
    role = pinned.of(s.intent, JUDGE)
    request = s.judging.seq
    task = s.judging.entry
    cycle = s.judging.looked(task)
    cycles = max(cycle, looks(s))  # a person may want one more look
    runs = (role.limits.runs or 0) if role.may_use(registry.CHECK) else 0
    entry = s.plan.entries.get(task) if s.plan is not None else None
    commands = tuple(s.checks if entry is None else entry.checks)
    began = s.iterations.began.get(task)
    beside = s.iterations.beside(task)
    verdicts = {command: s.verdicts[command] for command in commands if command in s.verdicts}
    plan = s.plan
    asked = _asked(s, entry)
    goal = s.intent.goal if s.intent is not None else ""
    log = session.folder.log
    agreed = await contract.text(session)
    known = {plan.path, plan.progress} if plan is not None else set()

    def lay_out() -> Case:
        tree = open_worktree(private_of(session))
        made = diff(tree if entry is None else _since(tree, began), _MOST_PATCH)
        criteria = (*(_whole(commands) if entry is None else ()), *_entries(session, tree, plan, asked))
        words = "\n".join((goal, agreed, *(one.text for one in criteria)))
        notes = own_words.records(((f.path, f.status) for f in made.files), known, words)
        return Case(
            goal=goal,
            criteria=criteria,
            task=entry is not None,
            beside=beside,
            contract=agreed,
            checks=tuple(_checks(verdicts, log)),
            files=tuple(_file(f) for f in made.files if f.path not in notes),
            patch=own_words.without(made.patch, notes),
            left_out=tuple(notes),
            places=tuple(one.told for one in steering.places(made.patch, commands, notes)),
            cut=made.truncated,
            cycle=cycle,
            cycles=cycles,
            runs=runs,
        )

    made = await session.do("laying out the case for the judge", _CASE_S, lay_out)
    blob = await put_blob(session, case.text(made).encode("utf-8", "replace"), "text/plain")
    now = session.state
    if not _wanted(now) or now.judging.seq != request:
        return  # a person spoke meanwhile: this case is of no use
    await session.append(
        t.EvaluationStarted(
            cycle=cycle,
            cycles=cycles,
            model=wanted.model,
            role=role.name,
            rubric=role.version,
            case=blob,
            criteria=[one.id for one in made.criteria],
            runs=runs,
        )
    )


def _since(tree: Worktree, began: Began | None) -> Worktree:
    """The worktree as it is compared with the commit that a task began on, where that is still there."""
    known = began and began.head and Git(tree.common).commit(began.head)
    return replace(tree, base=known) if known else tree


def _asked(s: SessionState, entry: t.PlanEntry | None) -> frozenset[str]:
    """The entries of the plan that the judge is asked about: the task, or all that no command decides."""
    if entry is not None:
        return frozenset({entry.id})
    return frozenset(e.id for e in s.plan.entries.values() if e.undecided) if s.plan is not None else frozenset()


def _whole(commands: Iterable[str]) -> Iterable[Criterion]:
    yield Criterion(GOAL, "the goal, in the words of the person who gave it, is reached")
    for index, command in enumerate(commands, 1):
        yield Criterion(f"C{index}", f"`{command}` exits with 0, and for the right reason")


def _entries(session: Session, tree: Worktree, plan: PlanProgress | None, asked: Set[str]) -> Iterable[Criterion]:
    for entry in plans.entries_of(session, tree, plan) if plan is not None else ():
        if entry.id in asked:
            criteria = "; ".join(entry.criteria) or "no criterion is given"
            yield Criterion(f"{PLAN_CRITERION}{entry.id}", f"{entry.title}: {criteria}")


def _checks(verdicts: dict[str, t.CheckVerdict], log: Path) -> Iterable[Checked]:
    ended = _ends({verdict.call_id for verdict in verdicts.values()}, log)
    for command, verdict in verdicts.items():
        end = ended.get(verdict.call_id)
        outcome = verdict.why or (f"exit {end.exit_code}" if end is not None else "its output is not known")
        yield Checked(command, verdict.passed, outcome, end.preview if end is not None else "")


def _ends(calls: set[str], log: Path) -> dict[str, t.ToolEnded]:
    """How these calls ended, by the log; a call's name begins with the record after which it was proposed."""
    if not calls:
        return {}
    found: dict[str, t.ToolEnded] = {}
    after = min(proposed_on(call_id) for call_id in calls)
    try:
        for line in reader.read(log, after):
            body = t.decode(line).body
            if isinstance(body, t.ToolEnded) and body.call_id in calls:
                found[body.call_id] = body
    except (LogError, OSError, msgspec.DecodeError):
        return found
    return found


def _file(change: FileChange) -> str:
    lines = "" if change.added is None else f" +{change.added} -{change.removed or 0}"
    return f"{change.status} {change.path}{lines}"

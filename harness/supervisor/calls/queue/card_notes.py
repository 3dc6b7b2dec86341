"""What a request says beside its action: looked up once, when it is asked, and kept in its record."""

from __future__ import annotations

import os
from collections.abc import Iterable

from harness.domain.actions.action import Action, PushAction
from harness.domain.calls.approval_shapes import Shape
from harness.domain.calls.card_facts import CardNotes, Outgoing
from harness.policy.shape import compared, facts_of, kind_of, ordinary
from harness.projections.state.session_state import SessionState
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.session import Session
from harness.workspace.facts.deletion_effects import Gone, going
from harness.workspace.facts.executed_files import Runs, runs
from harness.workspace.facts.outgoing import outgoing
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.tree.worktrees import open_worktree

_LOOK_S = 30.0
_TEXT = 300


async def notes(session: Session, action: Action, past: Iterable[Shape]) -> CardNotes:
    """The notes of a request for this action. ``past`` is what was approved in the whole fleet. Raises OpError."""
    of = kind_of(action)
    known = list(past)
    found = await _runs(session, action)
    read = frozenset(os.path.join(action.sandbox.worktree, one.path) for one in found.files if one.whole)
    facts = facts_of(action, read)
    before, unusual = compared(of, facts, known, ordinary(action, read))
    entry, title = _step(session.state)
    gone = await _going(session, action)
    return CardNotes(
        of=of,
        facts=facts,
        unusual=unusual,
        before=before,
        first=all(shape.of != of for shape in known),
        outgoing=await _outgoing(session, action),
        going=gone.going,
        going_more=gone.more,
        going_unknown=gone.unknown,
        going_unknown_more=gone.unknown_more,
        runs=found.files,
        runs_only=found.only,
        goal=_goal(session.state),
        step=f"{entry}: {title}" if title else entry,
        checks=len(session.state.checks),
        passed=session.state.checks_passed,
    )


async def _outgoing(session: Session, action: Action) -> list[Outgoing]:
    if not isinstance(action, PushAction):
        return []
    push = action
    try:
        return await session.do(
            "reading what it would publish",
            _LOOK_S,
            lambda: outgoing(open_worktree(private_of(session)), push),
        )
    except WorkspaceError as exc:
        why = f"what it brings cannot be read: {exc}"[:_TEXT]
        return [Outgoing(spec.ref, spec.old == "absent", problem=why) for spec in push.to.refspecs]


async def _going(session: Session, action: Action) -> Gone:
    try:
        return await session.do("looking at what it would delete", _LOOK_S, lambda: going(action))
    except WorkspaceError:
        return Gone([], 0, [], 0)  # the command itself stands on the card


async def _runs(session: Session, action: Action) -> Runs:
    try:
        return await session.do("reading what it would run", _LOOK_S, lambda: runs(action))
    except WorkspaceError:
        return Runs([])  # the command itself stands on the card


def _goal(s: SessionState) -> str:
    """The first line of what the session is to reach."""
    lines = s.intent.goal.strip().split("\n") if s.intent is not None else [""]
    return lines[0][:_TEXT]


def _step(s: SessionState) -> tuple[str, str]:
    """The entry of the plan that is worked on, and its title."""
    entry = s.iterations.entry
    known = s.plan.entries.get(entry) if s.plan is not None else None
    return entry, known.title[:_TEXT] if known is not None else ""

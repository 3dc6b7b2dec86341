"""One task of the plan after the other: what is due before the next is done here, then it is put on record.

Everything follows from the fold, so a supervisor that dies anywhere goes on from the log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import assert_never

from harness.domain.calls.call_id import name_call
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.keeper.loop.requests import TakeState
from harness.plan import hooks
from harness.plan.digest import Around, digest
from harness.plan.files import progress_log
from harness.plan.files.formats import BadPlan
from harness.plan.iterations import Begin, Note, Prepare, Recheck, due
from harness.projections.state.hooks import HOOK
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.session_folder import held, private_of
from harness.supervisor.calls.work import plans, progress
from harness.supervisor.fleet.session import Session
from harness.tools import registry
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.protected import restore
from harness.workspace.tree import scan
from harness.workspace.tree.worktrees import open_worktree

_COMMITS = 12
_LOOK_S = 60.0
_SETUP_BYTES = 1 << 20
_PER_TOKEN = 4
_NAMED = 20
"""Files that a record of a look names."""


async def step(session: Session) -> None:
    """Do what is due, once. Raises OpError, LinkLost, Later."""
    after = hooks.due(session.state)
    match after:
        case None:
            await _between(session)
        case hooks.Run():
            given = [{"chore": HOOK, "command": c, "timeout_s": after.seconds} for c in after.commands]
            await session.append(*(_proposed(session, i, registry.CHORE, one) for i, one in enumerate(given)))
        case hooks.Look():
            await session.append(await _looked(session, after.since))
        case hooks.Tell():
            await session.append(t.HooksEnded(text=after.text, failed=after.failed))
        case _:
            assert_never(after)


async def _looked(session: Session, since: str) -> t.EditsLooked:
    """Where nobody can say whether something was changed, it counts as changed: hooks that run once too often harm
    nobody.
    """
    try:
        kept = await session.keeper().ask(TakeState("after commands", worked=since), None)
    except OpError:
        return t.EditsLooked(changed=True)
    files = list(kept.worked_names or ())
    return t.EditsLooked(changed=bool(files), names=files[:_NAMED])


async def _between(session: Session) -> None:
    found = due(session.state)
    match found:
        case None:
            return
        case Note():
            await _followed(session, found)
        case Prepare():
            given = {"chore": found.kind, "command": found.command, "timeout_s": found.seconds}
            await session.append(_proposed(session, 0, registry.CHORE, given))
        case Recheck():
            commands = enumerate(found.commands)
            await session.append(*(_proposed(session, i, registry.CHECK, {"command": c}) for i, c in commands))
        case Begin():
            await _begin(session, found)
        case _:
            assert_never(found)


def _proposed(session: Session, index: int, tool: str, given: Mapping[str, object]) -> t.ToolProposed:
    return t.ToolProposed(call_id=name_call(session.state.seq, index), tool=tool, ref="", input=dict(given))


async def _followed(session: Session, found: Note) -> None:
    try:
        await progress.note(session, found.ended)
    except WorkspaceError as exc:
        raise held(exc) from exc


async def _begin(session: Session, begin: Begin) -> None:
    try:
        around, setup = await session.do(
            "looking at its newest commits", _LOOK_S, lambda: _around(session, begin.entry)
        )
    except WorkspaceError as exc:
        raise held(exc) from exc
    if setup:
        await session.append(t.SetupFound(path=setup))
        return
    s = session.state
    page = digest(s, begin, around)
    fixed = s.context.layers.get("instructions and tools", 0)
    goal = len(s.intent.goal.encode("utf-8", "replace")) if s.intent is not None else 0
    after = fixed + goal // _PER_TOKEN
    anew = t.ContextReset(
        keep=s.seq + 1,
        handoff="",
        tokens=max(s.context.tokens, after),
        after=after,
        trigger=f"iteration {begin.n}: {begin.entry}",
    )
    begun = t.IterationStarted(n=begin.n, entry=begin.entry, attempt=begin.attempt, digest=page, head=around.head)
    await session.append(anew, begun)


def _around(session: Session, name: str) -> tuple[Around, str]:
    """What the page of an entry says of the repository, and the script that makes it ready where one is new."""
    tree = open_worktree(private_of(session))
    plan = session.state.plan
    noted = progress.read(tree, plan.progress) if plan is not None and plan.progress else None
    commits = tuple(scan.newest_commits(tree, _COMMITS))
    entry = None
    if plan is not None:
        with contextlib.suppress(BadPlan, LogError):  # the log has its title and its commands
            entry = next((one for one in plans.entries_of(session, tree, plan) if one.id == name), None)
    new = plan is not None and not plan.setup and restore.content(tree, plans.SETUP, _SETUP_BYTES) is not None
    return Around(commits, progress_log.digest(noted or ""), scan.tip(tree), entry), plans.SETUP if new else ""

"""The contract that is agreed before work: what its authors are shown, laid out by the supervisor, and what it says
once it stands.
"""

from __future__ import annotations

from harness.domain.states import Desired
from harness.eventlog import blobs
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.plan import contract
from harness.roles import pinned
from harness.roles.role import PLANNER
from harness.supervisor.base.errors import Later
from harness.supervisor.base.threads import at_home
from harness.supervisor.calls.on_record import put_blob
from harness.supervisor.calls.session_folder import HELD_S, held, held_for, private_of
from harness.supervisor.fleet.session import Session
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.tree.scan import paths
from harness.workspace.tree.worktrees import open_worktree

_LIST_S = 60.0
"""Seconds that listing a repository may take."""
_NO_CRITERION = "none was given: the evaluator alone decides, by this contract"


async def step(session: Session) -> None:
    """Lay out what planner and evaluator are shown, once. Raises OpError, LinkLost, Later."""
    s = session.state
    wanted = s.contract.wanted
    if wanted is None or s.contract.opened is not None or s.intent is None or s.created is None:
        return
    if s.terminal or s.desired != Desired.RUNNING:
        return
    try:
        files = await session.do("listing its files", _LIST_S, lambda: paths(open_worktree(private_of(session))))
    except WorkspaceError as exc:
        raise held(exc) from exc
    criteria = [f"`{command}` exits with 0" for command in s.checks] or [_NO_CRITERION]
    brief = await put_blob(
        session, contract.materials(s.intent.goal, criteria, files).encode("utf-8", "replace"), "text/plain"
    )
    role = pinned.of(s.intent, PLANNER)
    await session.append(
        t.ContractOpened(
            brief=brief,
            role=role.name,
            version=role.version,
            model=wanted.model,
            evaluator=s.intent.judge.model if s.intent.judge is not None else wanted.model,
            revisions=wanted.revisions,
        )
    )


async def text(session: Session) -> str:
    """The contract that stands, with what was objected to it; empty when the session works without one. Raises
    Later.
    """
    agreed = session.state.contract.agreed
    if agreed is None:
        return ""
    try:
        data = await at_home(blobs.get, session.folder.blobs, agreed.text.sha)
    except (LogError, OSError) as exc:
        raise Later(HELD_S, held_for(f"its contract cannot be read: {exc}")) from exc
    return contract.shown(data.decode("utf-8", "replace"), agreed.objections)

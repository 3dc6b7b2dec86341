"""The checks of a session, looked at before anybody works: what hides its exit code decides nothing."""

from __future__ import annotations

from harness.domain.states import Desired
from harness.events import types as t
from harness.supervisor.calls.session_folder import held, private_of
from harness.supervisor.fleet.session import Session
from harness.workspace.facts import masked_checks
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.tree.worktrees import open_worktree

_LOOK_S = 60.0


async def step(session: Session) -> None:
    """Look at the checks that nobody looked at yet. Raises OpError, LinkLost, Later."""
    s = session.state
    if s.created is None or s.terminal or s.desired != Desired.RUNNING:
        return
    commands = s.masking.lacking(s.criteria)
    if not commands:
        return
    base = s.created.base
    try:
        found = await session.do(
            "looking at its checks",
            _LOOK_S,
            lambda: masked_checks.look(open_worktree(private_of(session)).common, base, commands),
        )
    except (WorkspaceError, OSError) as exc:
        raise held(exc) from exc
    await session.append(t.ChecksLooked(commands=commands, masked=found))

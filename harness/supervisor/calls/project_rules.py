"""A project's files of rules, read out of a worktree that is hostile: regular files only, no link followed, within a
limit. What they say becomes a record and, by that, context; nothing here heeds it.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from harness.events import project_rules
from harness.events import types as t
from harness.supervisor.calls.ground import held, private_of
from harness.supervisor.fleet.session import Session
from harness.workspace.errors import WorkspaceError
from harness.workspace.ground import Ground
from harness.workspace.look import paths_named
from harness.workspace.private import Worktree
from harness.workspace.worktrees import open_worktree

MOST_SHOWN = 8 * 1024
"""Bytes of one file that are shown."""
_MOST_READ = 1 << 20
"""Bytes of one file that are read to name it by its hash; a larger one is none."""
_LOOK_S = 30.0


def known(tree: Worktree) -> list[str]:
    """Where the base of a worktree has such files. Blocking; raises GitFailed."""
    return paths_named(tree, project_rules.NAMES)[: project_rules.MOST_KNOWN]


def at_start(tree: Worktree) -> list[t.Body]:
    """The records of a new session: what is there, and the root's own. Blocking; raises GitFailed."""
    paths = known(tree)
    if not paths:
        return []
    return [t.RulesKnown(paths=paths), *(read(tree.root, path) for path in project_rules.nearest(paths, ""))]


async def step(session: Session) -> None:
    """Read what is due. Raises OpError, LinkLost, Later."""
    due = session.state.rules.due
    if not due:
        return
    try:
        found = await session.do("reading its project's rules", _LOOK_S, lambda: _read(session, due))
    except WorkspaceError as exc:
        raise held(exc) from exc
    await session.append(*found)


def _read(session: Session, paths: tuple[str, ...]) -> list[t.RulesRead]:
    tree = open_worktree(private_of(session))
    return [read(tree.root, path) for path in paths]


def read(root: Path, path: str) -> t.RulesRead:
    """One file as it is now. Blocking; what is no regular file within the limit is as if it were not there."""
    with contextlib.suppress(OSError), Ground(root) as ground:
        data = ground.read(path, _MOST_READ)
        text = data[:MOST_SHOWN].decode("utf-8", "ignore" if len(data) > MOST_SHOWN else "replace")
        return t.RulesRead(path=path, sha=hashlib.sha256(data).hexdigest(), bytes=len(data), text=text)
    return t.RulesRead(path=path)

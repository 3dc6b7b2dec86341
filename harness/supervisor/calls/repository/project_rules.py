"""A project's files of rules, read out of a worktree that is hostile: regular files beneath it, within limits
(`rules_files`). What they say becomes a record and, by that, context; nothing here heeds it.
"""

from __future__ import annotations

from pathlib import Path

from harness.events import types as t
from harness.projections.state import project_rules
from harness.supervisor.calls.session_folder import held, private_of
from harness.supervisor.fleet.session import Session
from harness.workspace.git.commit_root import CommitRoot
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.git.run import Git
from harness.workspace.git.untrusted_dir import Ground
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree import project_rules_files
from harness.workspace.tree.scan import paths_named
from harness.workspace.tree.worktrees import open_worktree

_LOOK_S = 30.0


def known(tree: Worktree) -> list[str]:
    """Where the base of a worktree has such files. Blocking; raises GitFailed."""
    return paths_named(tree, project_rules.NAMES, links=True)[: project_rules.MOST_KNOWN]


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
    """One file as it is now, with what it brings in. Blocking."""
    try:
        with Ground(root) as ground:
            return project_rules_files.read(ground, path)
    except OSError:  # there is no worktree
        return t.RulesRead(path=path)


def left_out(git: Git, commit: str) -> list[str]:
    """What a session that begins from this commit is not shown of the root's rules, a line each. Blocking; raises
    GitFailed.
    """
    root = CommitRoot(git, commit)
    found = [project_rules_files.read(root, path) for path in project_rules.NAMES]
    return [f"{one.path} leaves out {'; '.join(one.left_out)}" for one in found if one.left_out]

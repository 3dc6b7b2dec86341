"""The record of progress in a worktree that is hostile: followed when a task ends, put back when it was cut, kept with
the plan before a new one begins. Blocking work runs in the session's own thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path

from harness.events import types as t
from harness.plan.files import progress_log
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.session import Session
from harness.workspace.git.errors import GitFailed, WorkspaceError
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected import restore
from harness.workspace.tree.worktrees import open_worktree

_MOST = 1 << 20
"""Bytes that a record of progress may have."""
_LOOK_S = 60.0
_COMMITS = 200
_KEPT = "progress"
"""The folder of a session, out of its agent's reach, with the record as it stood after each task."""
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")


async def note(session: Session, ended: t.IterationEnded) -> None:
    """Follow what the agent wrote during a task, and note the task when it wrote nothing. Raises WorkspaceError."""
    when = datetime.now(UTC)
    what = "following its record of progress"
    await session.append(await session.do(what, _LOOK_S, lambda: _follow(session, ended, when), lasting=True))


def _follow(session: Session, ended: t.IterationEnded, when: datetime) -> t.ProgressKept:
    plan = session.state.plan
    assert plan is not None
    tree = open_worktree(private_of(session))
    kept = session.folder.root / _KEPT
    found = read(tree, plan.progress)
    followed = progress_log.follow(_known(tree, kept, plan.progress, ended.n), found)
    text = followed.text
    if not followed.added:
        title = plan.entries[ended.entry].title
        made = progress_log.entry(f"{when:%Y-%m-%d %H:%M}", ended.entry, title, ended.outcome, ended.reason)
        text = progress_log.appended(text or progress_log.header(f"{when:%Y-%m-%d}"), made)
    data = text.encode("utf-8", "replace")
    if text != found:
        _put(tree, plan.progress, data, session.folder.root / "aside" / "progress")
    _keep(kept, ended.n, data)
    return t.ProgressKept(
        path=plan.progress,
        n=ended.n,
        sha=hashlib.sha256(data).hexdigest(),
        did=list(followed.did),
        by_harness=not followed.added,
    )


def read(tree: Worktree, path: str) -> str | None:
    """The text of a record of progress; None when there is no such regular file. Blocking; raises OSError."""
    data = restore.content(tree, path, _MOST)
    return None if data is None else data.decode("utf-8", "replace")


def _keep(folder: Path, n: int, data: bytes) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    made = folder / f".{n}"
    made.write_bytes(data)
    made.replace(folder / str(n))
    for old in (int(one.name) for one in folder.iterdir() if one.name.isdigit()):
        if old < n - 1:
            (folder / str(old)).unlink()


def _known(tree: Worktree, folder: Path, path: str, n: int) -> str:
    """The record as it stood before task ``n``: what a supervisor that died left of that task does not count."""
    with contextlib.suppress(FileNotFoundError):
        before = [int(one.name) for one in folder.iterdir() if one.name.isdigit() and int(one.name) < n]
        if before:
            return (folder / str(max(before))).read_text("utf-8", "replace")
    return (_at_base(tree, tree.base, path) or b"").decode("utf-8", "replace")


def _at_base(tree: Worktree, commit: str, path: str) -> bytes | None:
    with contextlib.suppress(GitFailed):
        return tree.git.run("cat-file", "blob", f"{commit}:{path}")
    return None


def _put(tree: Worktree, path: str, data: bytes, aside: Path) -> None:
    with contextlib.suppress(IsADirectoryError):
        restore.write(tree, path, data, aside)
        return
    restore.write(tree, path, data, aside)  # the folder in its place is gone now


def begin(session: Session, tree: Worktree, plan: t.PlanLoaded) -> list[t.Body]:
    """The records with which a plan begins; what cannot be archived is said. Blocking."""
    try:
        kept = archive(session.folder.root, tree, plan)
    except (WorkspaceError, OSError) as exc:
        text = f"the plan before this one could not be kept in archive/: {exc}"
        return [plan, t.HarnessNote(level="warning", text=text, component="workspace")]
    return [plan] if kept is None else [plan, kept]


def archive(root: Path, tree: Worktree, plan: t.PlanLoaded) -> t.PlanArchived | None:
    """Before a plan of another branch begins: the plan before it, as the repository's history has it, and the record of
    progress go into ``archive/``, and a new record begins. None when there is nothing to keep. Blocking; raises
    GitFailed, OSError.
    """
    branch = _branch(_at_base(tree, tree.base, plan.path))
    found = _before(tree, plan.path, branch) if branch else None
    if found is None:
        return None
    older, data = found
    slug = _NO_NAME.sub("-", older.removeprefix("ralph/")).strip("-.")[:80] or "plan"
    there = tree.git.names("ls-tree", "-z", "--name-only", tree.base, "--", "archive/")
    if any(re.fullmatch(rf"archive/\d{{4}}-\d\d-\d\d-{re.escape(slug)}", one) for one in there):
        return None
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    folder = f"archive/{today}-{slug}"
    aside = root / "aside" / "archive"
    files = {f"{folder}/{plan.path.rpartition('/')[2]}": data}
    progress = _at_base(tree, tree.base, plan.progress)
    if progress is not None:
        files[f"{folder}/{plan.progress}"] = progress
    for path, content in files.items():
        _put(tree, path, content, aside)
    fresh = progress_log.header(today).encode()
    _put(tree, plan.progress, fresh, aside)
    _keep(root / _KEPT, 0, fresh)
    return t.PlanArchived(folder=folder, branch=older, paths=list(files))


def _branch(data: bytes | None) -> str:
    """The branch that a plan names; empty when it names none."""
    try:
        whole = json.loads(data or b"")
    except (ValueError, RecursionError):
        return ""
    name = whole.get("branchName") if isinstance(whole, dict) else None
    return name if isinstance(name, str) else ""


def _before(tree: Worktree, path: str, branch: str) -> tuple[str, bytes] | None:
    """The newest plan in the history of this path that names another branch, and that branch."""
    commits = tree.git.text("log", f"-n{_COMMITS}", "--format=%H", tree.base, "--", path).split()
    for commit in commits:
        data = _at_base(tree, commit, path)
        other = _branch(data)
        if data is not None and other and other != branch:
            return other, data
    return None

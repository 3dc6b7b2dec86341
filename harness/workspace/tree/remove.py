"""Removing the worktree of a session once nothing that it holds can be lost. Blocking: call from a worker thread."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.linux import durable
from harness.workspace.clone import submodule_git
from harness.workspace.git.discard import discard
from harness.workspace.git.errors import CannotKeep, DamagedWorktree, GitFailed, PublishFailed, UnsavedWork
from harness.workspace.git.locks import repository_lock
from harness.workspace.git.run import Git
from harness.workspace.git.same_work import only_here
from harness.workspace.git.scratch import scratch
from harness.workspace.git.untrusted_dir import Ground, Item, Kind
from harness.workspace.private_git import own_refs, private_gitdir
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree import preserved, worktrees
from harness.workspace.tree.scan import View, look, tip

_LEAVING = "leaving"
"""Beside the private directory once nothing of the worktree can be lost: the branch's commit and the refs that keep
work.
"""
_HEX = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def unpushed(tree: Worktree, pushed: Iterable[str] = ()) -> int:
    """Commits of the session's branch that are on no other branch, tag or remote, nor below one of the ``pushed``
    commits, and whose work is in no commit of those under another name.
    """
    git = Git.of(tree.common)
    ref = f"refs/heads/{tree.branch}"
    if git.commit(ref) is None:
        return 0
    known = [commit for commit in dict.fromkeys(pushed) if _HEX.fullmatch(commit) and git.commit(commit)]
    others = (f"--exclude={tree.branch}", "--branches", "--tags", "--remotes", f"--glob={preserved.REFS}*")
    if not int(git.text("rev-list", "--count", ref, "--not", *others, *known)):
        return 0
    tips = {*git.text("rev-parse", *others).split(), *known} - {git.commit(ref) or ""}
    with scratch(tree.common, tree.private.parent) as made:
        return only_here(made.git, git.text("rev-parse", ref), sorted(tips))


def remove(tree: Worktree, sid: str, *, force_keep: bool = False, pushed: Iterable[str] = ()) -> list[str]:
    """Remove the worktree, its private directory and its branch. Call it after the session's last call ended.

    Work that is not provably somewhere else stops it with UnsavedWork, unless ``force_keep``: then all of it is first
    committed to ``refs/watchfloor/kept/<sid>``, nested repositories and ignored files too, but not what lies in ignored
    folders. ``pushed`` are commits that a remote took. Returns the refs that keep work. Raises CannotKeep when
    something cannot be kept and DamagedWorktree when the folder is no worktree any more; then nothing is gone.
    """
    leaving = tree.private.parent / _LEAVING
    if os.path.lexists(tree.root) and (tree.root.is_symlink() or not tree.root.is_dir()):
        raise DamagedWorktree(f"the worktree {tree.root} was replaced by something that is no folder")
    if tree.root.is_dir() or not leaving.is_file():
        tip_seen, refs = _saved_elsewhere(tree, sid, force_keep, pushed)
        durable.write_file(leaving, "\n".join([tip_seen, *refs]).encode())
    tip_seen, *refs = leaving.read_text("utf-8").split("\n")
    git = Git.of(tree.common)
    with repository_lock(tree.common, tree.root.parent):
        worktrees.forget(git, tree.root)
        with contextlib.suppress(GitFailed):  # moved by somebody in this moment: then the branch is theirs
            git.run("update-ref", "-d", f"refs/heads/{tree.branch}", tip_seen)
    submodule_git.release(tree.private.parent, tree.branch)
    last = [worktrees.record(tree.private), leaving]  # while they are there, the next removal goes on from here
    for path in sorted(tree.private.parent.iterdir(), key=lambda p: last.index(p) if p in last else -1):
        if path.is_dir() and not path.is_symlink():
            discard(path)
        else:
            path.unlink()
    return refs


def removed(private: Path) -> list[str] | None:
    """The refs that keep work of a worktree of which nothing is recorded any more, at most the mark of a removal that
    died at its very end; None while there is more.
    """
    try:
        if not {path.name for path in private.parent.iterdir()} <= {_LEAVING}:
            return None
        return (private.parent / _LEAVING).read_text("utf-8").split("\n")[1:]
    except FileNotFoundError:
        return []


def _saved_elsewhere(tree: Worktree, sid: str, force_keep: bool, pushed: Iterable[str]) -> tuple[str, list[str]]:
    """(the branch's commit, refs that keep work) once nothing would be lost by removing the worktree.

    Raises UnsavedWork, CannotKeep.
    """
    damaged = _carried_out(tree)
    commit = tip(tree)
    commits = unpushed(tree, pushed)
    with look(tree, commit) as view:
        work = _work(tree, view)
        own = _own_refs(tree)
        if not (work.load or work.odd or work.unreadable or commits or damaged or own):
            return commit, []
        if not force_keep:
            why = f"commits that could not be brought into the repository ({damaged})" if damaged else ""
            if own and not why:
                why = f"commits that only refs of the agent's own have ({own_refs.told(own)})"
            raise UnsavedWork(work.files, commits, work.nested, work.ignored, work.reproducible, why)
        if work.unreadable:
            raise CannotKeep(
                f"{work.unreadable[0]} cannot be read, so it cannot be kept; give yourself the right to read it, then"
                " try again"
            )
        folder = view.scratch.tree.parent
        for number, (path, item) in enumerate(work.odd.items()):
            source = folder / f"{number}.tar"
            preserved.archive(view.ground, path, item, source)
            work.archive(path, source)
        if damaged:
            _git_folder(tree, work, folder)
        else:
            for ref in own:
                private_gitdir.bring(tree, ref.oid)
            work.load.parents += list(dict.fromkeys(view.scratch.git.commit(ref.oid) or ref.oid for ref in own))
        refs = [preserved.keep(tree, sid, view, work.load)]
        private_gitdir.let_go(tree)
        return commit, refs


def _own_refs(tree: Worktree) -> list[own_refs.OwnRef]:
    try:
        return own_refs.only_there(tree)
    except (PublishFailed, GitFailed, OSError):  # then nothing of it could be carried out, which is said
        return []


def _carried_out(tree: Worktree) -> str:
    """Publish what the agent committed; returns why that is impossible, or nothing."""
    if not tree.private.is_dir():
        return "the session's git folder is gone"
    try:
        private_gitdir.publish(tree)
    except (PublishFailed, DamagedWorktree, GitFailed, OSError) as exc:
        return str(exc)
    return ""


@dataclass(slots=True)
class _Work:
    """What the worktree holds that is nowhere else: what to keep, and how to call it."""

    load: preserved.Load
    files: list[str]
    nested: list[str]
    ignored: list[str]
    odd: dict[str, Item]
    unreadable: list[str]
    reproducible: int
    taken: set[str]

    def archive(self, path: str, source: Path) -> None:
        """Keep ``source`` as the archive of ``path``, beside its place."""
        name = preserved.archive_name(path, self.taken)
        self.taken.add(name)
        self.load.archives[name] = source


def _work(tree: Worktree, view: View) -> _Work:
    if not tree.root.is_dir():
        return _Work(preserved.Load(), [], [], [], {}, [], 0, set())
    seen = view.walk(complete=True)
    found = view.changes(seen)
    staged = view.staged()
    nested = [
        name
        for name, files in seen.nested.items()
        if files or _holds(view, seen.odd.get(f"{name}/.git"), f"{name}/.git")
    ]
    odd = {path: item for path, item in seen.odd.items() if _holds(view, item, path)}
    files = {path: seen.tracked[path] for path in found.different} | seen.untracked | seen.ignored
    for name in nested:
        files |= seen.nested[name]
    load = preserved.Load(files, found.gone, parents=[view.staged_commit()] if staged else [])
    alone = {path for path in odd if not any(path.startswith(f"{name}/") for name in nested)}
    named = sorted({*found.different, *found.gone, *staged, *seen.untracked, *alone, *seen.unreadable})
    taken = {*view.entries, *files}
    return _Work(
        load,
        named,
        sorted(f"{n}/" for n in nested),
        sorted(seen.ignored),
        odd,
        seen.unreadable,
        seen.reproducible,
        taken,
    )


def _holds(view: View, item: Item | None, path: str) -> bool:
    """True unless it is nothing, an empty folder, or a pipe or device."""
    if item is None or item.kind is Kind.OTHER:
        return False
    if item.kind is not Kind.FOLDER:
        return True
    try:
        return bool(view.ground.items(path))
    except OSError:
        return True


def _git_folder(tree: Worktree, work: _Work, folder: Path) -> None:
    """Keep the session's git folder as it is: its commits could not be carried out."""
    with Ground(tree.private.parent) as ground:
        for item in ground.items(""):
            if item.name in ("private", "objects"):
                source = folder / f"{item.name}.tar"
                preserved.archive(ground, item.name, item, source)
                work.archive(item.name, source)

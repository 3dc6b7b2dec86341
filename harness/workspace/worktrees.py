"""Creating, opening and removing the worktree of a session. Blocking: call from a worker thread."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import msgspec

from harness.hands import reading
from harness.workspace import private as private_dir
from harness.workspace import shown_config
from harness.workspace.diff import changed_files
from harness.workspace.errors import BranchExists, DamagedWorktree, GitFailed, UnsavedWork, WorktreeExists
from harness.workspace.git import Git, Repository, head_commit, open_repository
from harness.workspace.locks import repository_lock
from harness.workspace.private import Worktree

KEPT = "refs/watchfloor/kept/"


class _Saved(msgspec.Struct, frozen=True):
    """``workspace.json`` beside the private directory; ``ready`` is false until everything stands."""

    root: str
    branch: str
    base: str
    repo: str
    common: str
    admin: str = ""
    dirty: int = 0
    ready: bool = False


def _record(private: Path) -> Path:
    return private.parent / "workspace.json"


def _save(private: Path, saved: _Saved) -> None:
    private.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = _record(private)
    temporary = path.with_suffix(".new")
    with open(temporary, "wb") as f:
        f.write(msgspec.json.encode(saved))
        f.flush()
        os.fsync(f.fileno())
    temporary.rename(path)
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _load(private: Path) -> _Saved | None:
    try:
        saved = msgspec.json.decode(reading.read(_record(private)), type=_Saved)
        if not all(os.path.isabs(path) and "\0" not in path for path in (saved.root, saved.repo, saved.common, saved.admin or "/")):
            raise DamagedWorktree(f"{_record(private)} names a path that cannot be one")
        return saved
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as exc:
        raise DamagedWorktree(f"{_record(private)} cannot be read: {exc}") from exc


def _tree(saved: _Saved, private: Path) -> Worktree:
    return Worktree(Path(saved.root), saved.branch, saved.base, Path(saved.repo), Path(saved.common), Path(saved.admin), private, saved.dirty)


def create(repo: Path, worktree: Path, branch: str, private: Path) -> Worktree:
    """Make the worktree of a session at ``worktree`` on a new ``branch`` from the repository's HEAD, and its private git directory.

    Safe to call again after a crash at any point: what an earlier attempt left is finished or taken away. On failure the new
    branch does not stay. Raises NotARepository, NoCommits, BranchExists, WorktreeExists, GitFailed.
    """
    saved = _load(private)
    if saved is not None and saved.ready:
        return open_worktree(private)
    repository = open_repository(repo)
    worktree = Path(os.path.realpath(worktree.parent)) / worktree.name
    private = Path(os.path.realpath(private.parent)) / private.name
    worktree.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with repository_lock(repository.common, worktree.parent):
        git = Git.of(repository.git_dir)
        if saved is not None:
            _undo(Git.of(Path(saved.common)), saved, private)
        base = head_commit(repository)
        git.run("check-ref-format", "--branch", branch)
        if git.commit(f"refs/heads/{branch}") is not None:
            raise BranchExists(f"branch {branch} exists already in {repository.root}; choose another name")
        if os.path.lexists(worktree):
            raise WorktreeExists(f"{worktree} exists already and is not ours; move it away")
        saved = _Saved(str(worktree), branch, base, str(repository.root), str(repository.common), dirty=_dirty(repository))
        _save(private, saved)
        try:
            common = Git.of(repository.common)
            common.run("worktree", "add", "--quiet", "--no-track", "--lock", "-b", branch, "--end-of-options", str(worktree), base)
            saved = msgspec.structs.replace(saved, admin=str(_admin(worktree, repository.common)))
            tree = _tree(saved, private)
            private_dir.make(tree, _identity(repository))
            private_dir.prepare(tree)
        except BaseException:
            _undo(git, saved, private)
            raise
        saved = msgspec.structs.replace(saved, ready=True)
        _save(private, saved)
    return tree


def open_worktree(private: Path) -> Worktree:
    """The worktree that `create` made for this private directory. Raises DamagedWorktree when it is not whole."""
    saved = _load(private)
    if saved is None or not saved.ready:
        raise DamagedWorktree(f"there is no worktree recorded in {private.parent}")
    return _tree(saved, Path(os.path.realpath(private.parent)) / private.name)


def _admin(worktree: Path, common: Path) -> Path:
    text = (worktree / ".git").read_text("utf-8", "surrogateescape")
    admin = Path(os.path.realpath(text.removeprefix("gitdir:").strip()))
    if admin.parent != Path(os.path.realpath(common / "worktrees")):
        raise DamagedWorktree(f"git made the worktree's record at {admin}, outside {common}/worktrees")
    return admin


def _dirty(repository: Repository) -> int:
    return 0 if repository.bare else len(changed_files(repository.git))


def _identity(repository: Repository) -> tuple[str, str]:
    """The user's name and address for commits, from the repository or the user's own configuration."""
    git = Git(repository.common).with_env(GIT_CONFIG_GLOBAL=os.path.expanduser("~/.gitconfig"))
    name = git.text("config", "--get", "user.name", ok=(0, 1))
    email = git.text("config", "--get", "user.email", ok=(0, 1))
    return name or "Watchfloor agent", email or "agent@watchfloor.invalid"


def _undo(git: Git, saved: _Saved, private: Path) -> None:
    """Take away a half-made worktree and its branch, which holds nothing but the base commit."""
    with contextlib.suppress(GitFailed):
        git.run("worktree", "remove", "--force", "--force", "--end-of-options", saved.root)
    if os.path.lexists(saved.root):
        shutil.rmtree(saved.root)
    git.run("worktree", "prune", "--expire", "now")
    ref = f"refs/heads/{saved.branch}"
    if git.commit(ref) == saved.base:
        git.run("update-ref", "-d", ref, saved.base)
    for path in (private, private.parent / "objects", private.parent / "shared-objects"):
        shutil.rmtree(path, ignore_errors=True)
    (private.parent / "published").unlink(missing_ok=True)
    _record(private).unlink(missing_ok=True)


def unsaved(tree: Worktree) -> tuple[list[str], int]:
    """(files with uncommitted or untracked content, commits that are on no other branch, tag or remote)."""
    files = changed_files(tree.git)
    git = Git.of(tree.admin)
    ref = f"refs/heads/{tree.branch}"
    if git.commit(ref) is None:
        return files, 0
    count = git.text("rev-list", "--count", ref, "--not", f"--exclude={tree.branch}", "--branches", "--tags", "--remotes", f"--glob={KEPT}*")
    return files, int(count)


def remove(tree: Worktree, sid: str, *, force_keep: bool = False) -> list[str]:
    """Remove the worktree, its private directory and its branch. Call it after the session's last call ended.

    Work that exists nowhere else stops it with UnsavedWork, unless ``force_keep``: then everything, untracked files too, is first
    committed to ``refs/watchfloor/kept/<sid>``. Returns the refs that keep work.
    """
    kept: list[str] = []
    if tree.root.is_dir():
        private_dir.prepare(tree)
        private_dir.publish(tree)
        files, commits = unsaved(tree)
        if (files or commits) and not force_keep:
            raise UnsavedWork(files, commits)
        if files or commits:
            kept.append(keep(tree, sid))
    git = Git.of(tree.common)
    with repository_lock(tree.common, tree.root.parent):
        with contextlib.suppress(GitFailed):
            git.run("worktree", "remove", "--force", "--force", "--end-of-options", str(tree.root))
        if os.path.lexists(tree.root):
            shutil.rmtree(tree.root)
        with contextlib.suppress(GitFailed):
            git.run("worktree", "unlock", "--end-of-options", str(tree.root))
        git.run("worktree", "prune", "--expire", "now")
        ref = f"refs/heads/{tree.branch}"
        if (tip := git.commit(ref)) is not None:
            git.run("update-ref", "-d", ref, tip)
    for path in (tree.private, tree.objects, tree.shared, tree.empty):
        shutil.rmtree(path, ignore_errors=True)
    for file in (
        tree.dotgit,
        *map(tree.shown, shown_config.FILES),
        *(tree.private.parent / name for name in ("gitconfig", "published")),
        _record(tree.private),
    ):
        file.unlink(missing_ok=True)
    return kept


def keep(tree: Worktree, sid: str) -> str:
    """Commit everything in the worktree (untracked files too, ignored ones not) to a ref of its own; returns the ref.

    Raises UnsavedWork when a nested repository holds work, which git cannot put into a commit of this one.
    """
    ref = KEPT + sid
    nested = [name for name in changed_files(tree.git) if name.endswith("/")]
    if nested:
        raise UnsavedWork(nested, 0)
    index = tree.private.parent / "keep.index"
    git = tree.git.with_env(GIT_INDEX_FILE=str(index), **_author())
    head = git.commit(f"refs/heads/{tree.branch}") or tree.base
    try:
        git.run("read-tree", head)
        git.run("add", "--all", "--ignore-errors", "--", ".")
        made = git.text("write-tree")
        commit = head
        if made != git.text("rev-parse", "--verify", "--end-of-options", f"{head}^{{tree}}"):
            commit = git.text("commit-tree", made, "-p", head, "-m", f"Unsaved work of session {sid}")
        git.run("update-ref", ref, commit)
    finally:
        index.unlink(missing_ok=True)
    return ref


def _author() -> dict[str, str]:
    return {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "Watchfloor"), ("EMAIL", "keep@watchfloor.invalid"))}

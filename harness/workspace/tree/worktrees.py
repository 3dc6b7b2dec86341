"""Making, opening and moving the worktree of a session. Blocking: call from a worker thread."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from harness.domain.denied import NOTHING, Denied
from harness.linux import durable, safe_files
from harness.workspace.clone import filters, submodule_git, submodules
from harness.workspace.clone.repository_notes import fetches, fetching
from harness.workspace.git.branch_names import blocking
from harness.workspace.git.discard import discard
from harness.workspace.git.errors import BranchExists, DamagedWorktree, GitFailed, PartialClone, WorktreeExists
from harness.workspace.git.locks import repository_lock
from harness.workspace.git.run import Git, Repository, head_commit, open_repository, parted
from harness.workspace.git.scratch import quoted, scratch
from harness.workspace.private_git import private_gitdir, shown_repository, withheld
from harness.workspace.private_git.planting import put
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.scan import GITLINK, look

AS_THEY_LIE = "* -text -ident -filter -working-tree-encoding -crlf\n"
"""Attributes by which git writes the files of a checkpoint as they lay there, whatever the repository says."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a session begins that goes on from another: the files of ``commit`` over the commit ``head``; ``base`` is
    what its work is compared with. ``store`` has the objects of that commit which the repository has not.
    """

    base: str
    head: str
    commit: str
    store: Path | None = None

    @property
    def stores(self) -> tuple[Path, ...]:
        """What is borrowed from beside the repository."""
        return () if self.store is None else (self.store,)


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
    head: str = ""
    """What its branch stands on before it is ready, when that is not the base."""
    folder: str = ""
    denied: Denied = NOTHING


def record(private: Path) -> Path:
    """Where it is written down what `create` made for this private directory."""
    return private.parent / "workspace.json"


def _save(private: Path, saved: _Saved) -> None:
    private.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.replace_file(record(private), msgspec.json.encode(saved))


def _load(private: Path) -> _Saved | None:
    try:
        saved = msgspec.json.decode(safe_files.read(record(private)), type=_Saved)
        if not all(
            os.path.isabs(path) and "\0" not in path
            for path in (saved.root, saved.repo, saved.common, saved.admin or "/")
        ):
            raise DamagedWorktree(f"{record(private)} names a path that cannot be one")
        return saved
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as exc:
        raise DamagedWorktree(f"{record(private)} cannot be read: {exc}") from exc


def _tree(saved: _Saved, private: Path) -> Worktree:
    return Worktree(
        Path(saved.root),
        saved.branch,
        saved.base,
        Path(saved.repo),
        Path(saved.common),
        Path(saved.admin),
        private,
        saved.dirty,
        saved.folder,
        saved.denied,
    )


def create(
    repo: Path,
    worktree: Path,
    branch: str,
    private: Path,
    start: Start | None = None,
    at: str = "",
    denied: Denied = NOTHING,
) -> Worktree:
    """Make the worktree of a session at ``worktree`` on a new ``branch`` from the repository's HEAD, from the commit
    ``at`` or from where ``start`` says, and its private git directory. What is ``denied`` is in neither of them.

    Safe to call again after a crash at any point: what an earlier attempt left is finished or taken away. On failure
    the new branch does not stay. Raises NotARepository, NoCommits, BranchExists, WorktreeExists, GitFailed.
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
        begin = start or _plainly_at(at or head_commit(repository))
        _may_begin(repository, git, begin, branch, worktree)
        saved = _Saved(
            str(worktree),
            branch,
            begin.base,
            str(repository.root),
            str(repository.common),
            dirty=0 if start is not None or at else _dirty(repository, begin.base, private),
            head=begin.head,
            folder=folder_of(repository, repo, begin.head),
            denied=denied,
        )
        _save(private, saved)
        try:
            how = "--checkout" if start is None else "--no-checkout"
            options = ("--quiet", "--no-track", "--lock", how, "-b", branch)
            Git.of(repository.common).run("worktree", "add", *options, "--end-of-options", str(worktree), begin.head)
            saved = msgspec.structs.replace(saved, admin=str(admin_of(worktree, repository.common)))
            tree = _tree(saved, private)
            if start is not None:
                _fill(tree, start)
            own = None if denied else (private, tree.admin)  # their objects hold what is denied, too
            submodules.fill(repository, begin.head, tree.root, private.parent, own)
            filters.lay(repository, begin.head, tree.root, private.parent, tree.admin, denied)
            withheld.flag(tree.admin, denied)
            withheld.take_away(tree.root, denied)
            private_gitdir.make(tree, identity(repository), start.head if start is not None else "")
            private_gitdir.prepare(tree)
        except BaseException as exc:
            _undo(git, saved, private)
            if isinstance(exc, GitFailed) and fetches(dict(git.configured())):
                raise PartialClone(
                    f"{repository.root} is a partial clone and lacks files of commit {begin.head[:12]}; fetch them,"
                    f" then launch again: {fetching(repository.root, git, begin.head)}"
                ) from exc
            raise
        saved = msgspec.structs.replace(saved, ready=True)
        _save(private, saved)
    return tree


def folder_of(repository: Repository, path: Path, commit: str) -> str:
    """The folder of the commit that ``path`` names, from the top; empty for the top, and where there is no such one.
    Raises GitFailed.
    """
    real = os.path.realpath(path)
    if repository.bare or not real.startswith(f"{repository.root}/"):
        return ""
    folder = os.path.relpath(real, repository.root)
    known = Git.of(repository.git_dir).call("cat-file", "-e", f"{commit}:{folder}/", ok=(0, 1, 128))[0] == 0
    return folder if known else ""


def _may_begin(repository: Repository, git: Git, begin: Start, branch: str, worktree: Path) -> None:
    """Raises DamagedWorktree, GitFailed, BranchExists, WorktreeExists."""
    both = git.with_env(GIT_ALTERNATE_OBJECT_DIRECTORIES=":".join(map(quoted, begin.stores)))
    if lost := next((c for c in dict.fromkeys((begin.base, begin.head)) if git.commit(c) is None), ""):
        raise DamagedWorktree(f"commit {lost[:12]} is no longer in {repository.root}, so nothing can begin there")
    if begin.commit not in (begin.base, begin.head) and both.commit(begin.commit) is None:
        raise DamagedWorktree(f"checkpoint {begin.commit[:12]} is no longer kept, so nothing can begin there")
    git.run("check-ref-format", "--branch", branch)
    if there := blocking(git, branch):
        what = "exists already" if there == f"branch {branch}" else f"cannot be made, {there} is in the way"
        raise BranchExists(f"branch {branch} {what} in {repository.root}; choose another name")
    if os.path.lexists(worktree):
        raise WorktreeExists(f"{worktree} exists already and is not ours; move it away")


def _plainly_at(commit: str) -> Start:
    return Start(commit, commit, commit)


def _fill(tree: Worktree, start: Start) -> None:
    """Write the files of a checkpoint into the empty worktree; the index is that of the head, so that what they are
    beyond it is work that is not committed.
    """
    with scratch(tree.common, tree.private.parent, *start.stores) as made:
        plain = (("core.autocrlf", "false"), ("core.protectHFS", "false"), ("core.protectNTFS", "false"))
        git = replace(made.git, work_tree=tree.root, extra=(*made.git.extra, *plain))
        (git.git_dir / "info" / "attributes").write_text(AS_THEY_LIE, "ascii")
        git.run("read-tree", start.commit)
        git.run("checkout-index", "--all", "--quiet")
    Git.of(tree.admin).run("read-tree", "--reset", start.head)


def open_worktree(private: Path) -> Worktree:
    """The worktree that `create` made for this private directory. Raises DamagedWorktree when it is not whole."""
    saved = _load(private)
    if saved is None or not saved.ready:
        raise DamagedWorktree(f"there is no worktree recorded in {private.parent}")
    return _tree(saved, Path(os.path.realpath(private.parent)) / private.name)


def recorded_root(private: Path) -> Path | None:
    """Where the worktree of this private directory lies by our own record; None when there is no record.

    Raises DamagedWorktree.
    """
    saved = _load(private)
    return Path(saved.root) if saved is not None else None


def unmovable(private: Path, root: Path) -> str:
    """Why a worktree that was taken elsewhere cannot go on at ``root``, in words; empty when it can.

    Raises DamagedWorktree.
    """
    saved = _load(private)
    if saved is None:
        return ""
    if not saved.ready:
        return "its worktree was only half made"
    if os.path.realpath(saved.root) != os.path.realpath(root) and os.path.lexists(saved.root):
        return f"its worktree {saved.root} is still there and belongs to the fleet this one was copied from"
    for folder, what in (
        (root, "its worktree"),
        (private, "its git folder"),
        (Path(saved.common), "its repository"),
        (Path(saved.admin), "the repository's record of its worktree"),
    ):
        if folder.is_symlink() or not folder.is_dir():
            return f"{what} {folder} is not there"
    try:
        names = os.fsdecode(safe_files.read(Path(saved.admin) / "gitdir")).strip()
    except OSError as exc:
        return f"the repository's record of its worktree cannot be read: {exc}"
    names = os.path.normpath(os.path.join(saved.admin, names))
    if names not in (f"{saved.root}/.git", f"{root}/.git"):
        return f"the repository's record {saved.admin} belongs to another worktree, {names}"
    return ""


def move(private: Path, root: Path) -> bool:
    """Record that the worktree lies at ``root`` now, in our record, in the private directory and in the repository's
    own; True when that is new.

    Call it only when `unmovable` says nothing. Raises DamagedWorktree, OSError; repeating it finishes what was begun.
    """
    saved = _load(private)
    root = Path(os.path.realpath(root.parent)) / root.name
    if saved is None or saved.root == str(root):
        return False
    with repository_lock(Path(saved.common), root.parent):
        put(Path(saved.admin) / "gitdir", f"{root}/.git\n")
        _save(private, msgspec.structs.replace(saved, root=str(root)))
    return True


def admin_of(worktree: Path, common: Path) -> Path:
    """Git's record of a worktree that it just made. Raises DamagedWorktree, OSError."""
    text = (worktree / ".git").read_text("utf-8", "surrogateescape")
    # newer git writes it from the file's own folder
    admin = Path(os.path.realpath(worktree / text.removeprefix("gitdir:").strip()))
    if admin.parent != Path(os.path.realpath(common / "worktrees")):
        raise DamagedWorktree(f"git made the worktree's record at {admin}, outside {common}/worktrees")
    return admin


def _dirty(repository: Repository, base: str, private: Path) -> int:
    """Files of the user's own checkout that the session will not see; counted like a session's, as an agent may have
    written there too.
    """
    if repository.bare:
        return 0
    private.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    checkout = Worktree(repository.root, "", base, repository.root, repository.common, repository.git_dir, private)
    with look(checkout, base) as view:
        seen = view.walk()
        found = view.differences(seen)
        links = {path for path, entry in view.entries.items() if entry.mode == GITLINK}
        return len({*found.different, *found.gone, *view.staged(), *seen.untracked, *seen.nested} - links)


def identity(repository: Repository) -> tuple[str, str]:
    """The user's name and address for commits, from the repository or the user's own configuration."""
    git = Git(repository.common, personal=True)
    found = dict(parted(git.run("config", "-z", "--get-regexp", r"^user\.(name|email)$", ok=(0, 1))))
    return found.get("user.name") or "Watchfloor agent", found.get("user.email") or "agent@watchfloor.invalid"


def _undo(git: Git, saved: _Saved, private: Path) -> None:
    """Take away a half-made worktree and its branch, which holds nothing but the base commit."""
    forget(git, Path(saved.root))
    ref = f"refs/heads/{saved.branch}"
    if git.commit(ref) == (head := saved.head or saved.base):
        git.run("update-ref", "-d", ref, head)
    for path in (
        private,
        private.parent / "objects",
        private.parent / "shared-objects",
        private.parent / shown_repository.FOLDER,
        *(private.parent / name for name in (filters.FOLDER, filters.MADE, filters.OBJECTS, withheld.FOLDER)),
        private.parent / submodule_git.OBJECTS,
    ):
        shutil.rmtree(path, ignore_errors=True)
    for name in ("published", submodule_git.FILE):
        (private.parent / name).unlink(missing_ok=True)
    record(private).unlink(missing_ok=True)


def forget(git: Git, worktree: Path) -> None:
    """Delete the folder of a worktree and git's record of it; records of other worktrees stay, even of those whose disk
    is away.
    """
    discard(worktree)
    with contextlib.suppress(GitFailed):
        git.run("worktree", "remove", "--force", "--force", "--end-of-options", str(worktree))

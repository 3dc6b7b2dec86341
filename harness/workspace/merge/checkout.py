"""A person's checkout, and moving the branch that it shows: looked at first, never touched while it holds changes.

The order is: take the index's lock, look, move the ref by comparing it, let the files follow, put the index in place.
So the ref alone says whether a merge has happened, and `finish` can complete what was interrupted after it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from harness.linux import durable, safe_files
from harness.workspace.clone import filters
from harness.workspace.git import index_stamps
from harness.workspace.git.errors import GitFailed, WorkspaceError, held
from harness.workspace.git.run import Git, common_of
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.scan import GITLINK, look
from harness.workspace.tree.worktrees import recorded_root

_MARK = b"watchfloor merge "
_NAMED = 3
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "sequencer": "a cherry-pick or a revert",
    "BISECT_LOG": "a bisect",
}
_MOVED_BY_REBASE = ("rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs")


class Place(Protocol):
    """A branch and, when ``shown``, the checkout that shows it."""

    @property
    def common(self) -> Path: ...
    @property
    def git_dir(self) -> Path: ...
    @property
    def root(self) -> Path: ...
    @property
    def into(self) -> str: ...
    @property
    def onto(self) -> str: ...
    @property
    def ref(self) -> str: ...
    @property
    def shown(self) -> bool: ...


class CannotMove(WorkspaceError):
    """The branch was not moved; the message says why, and what to do."""

    code = "cannot_move"


class NotFollowed(WorkspaceError):
    """The branch was moved, and its checkout could not follow; the message says what to do."""

    code = "not_followed"


def branch_of(git_dir: Path) -> str:
    """The branch that a checkout is on; empty when it is on none."""
    try:
        text = safe_files.read_beneath(git_dir, "HEAD", 4096).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return ""
    ref = text.removeprefix("ref:").strip()
    return ref.removeprefix("refs/heads/") if text.startswith("ref:") and ref.startswith("refs/heads/") else ""


def is_branch(git: Git, name: str) -> bool:
    """True for the exact name of a branch; what only leads to a commit (``main~1``) is none."""
    return git.call("show-ref", "--verify", "--quiet", f"refs/heads/{name}", ok=(0, 1, 128))[0] == 0


def branch_behind(git: Git, name: str) -> str:
    """The branch that a branch is another name of, else itself: a checkout shows the one that moves."""
    status, out = git.call("symbolic-ref", "--quiet", f"refs/heads/{name}", ok=(0, 1, 128))
    return out.decode("utf-8", "surrogateescape").strip().removeprefix("refs/heads/") if status == 0 else name


def shown_in(git: Git, branch: str) -> str:
    """The folder in which a branch is checked out; empty when it is in none. Raises GitFailed."""
    root = ""
    for field in git.run("worktree", "list", "--porcelain", "-z").decode("utf-8", "surrogateescape").split("\0"):
        if field.startswith("worktree "):
            root = field.removeprefix("worktree ")
        elif field == f"branch refs/heads/{branch}":
            return root
    return ""


def under_way(git_dir: Path) -> str:
    """What git does in a checkout that is not over, in words; empty when it does nothing."""
    return next((words for name, words in _UNDER_WAY.items() if os.path.lexists(git_dir / name)), "")


def rebased_in(git: Git, branch: str) -> str:
    """The folder in which a rebase is under way that moves a branch when it ends, or cannot end once somebody else
    moved it; empty when there is none. Raises GitFailed.
    """
    ref = f"refs/heads/{branch}".encode("utf-8", "surrogateescape")
    common = common_of(git.git_dir)
    for folder in (common, *sorted((common / "worktrees").glob("*"))):
        for name in _MOVED_BY_REBASE:
            with contextlib.suppress(OSError):
                if ref in safe_files.read_beneath(folder, name, safe_files.SMALL).split(b"\n"):
                    return _root_of(folder, common)
    return ""


def _root_of(git_dir: Path, common: Path) -> str:
    if git_dir == common:
        return str(common.parent if common.name == ".git" else common)
    return os.path.dirname(safe_files.read_beneath(git_dir, "gitdir", 4096).decode("utf-8", "surrogateescape").strip())


def changed(place: Place, commit: str, folder: Path, *, staged: bool = True, aside: bool = True) -> list[str]:
    """Files of the checkout that are not as ``commit`` has them, or are ``staged`` otherwise; those that their owner
    had git set ``aside`` too, of which git itself says nothing. ``folder`` is ours.

    Raises WorkspaceError, OSError.
    """
    tree = Worktree(place.root, place.into, commit, place.root, place.common, place.git_dir, folder / "none")
    with look(tree, commit) as view:
        found = view.changes(view.walk())
        seen = {*found.different, *found.gone}
        return sorted({*(seen if aside else seen - set_aside(place)), *(view.staged() if staged else ())})


def set_aside(place: Place) -> set[str]:
    """Files whose owner told git not to look at them (``skip-worktree``, ``assume-unchanged``)."""
    known = index_stamps.read(place.git_dir / "index", len(place.onto) // 2)
    return {path for path, stamp in known.items() if stamp.skip or stamp.assumed}


def move(place: Place, old: str, new: str, name: str, folder: Path) -> None:
    """Have the branch stand on ``new`` instead of ``old``, and its checkout with it. ``name`` is the merge's.

    Raises CannotMove (nothing is moved then), NotFollowed, WorkspaceError, OSError.
    """
    git = Git.of(place.git_dir, None)
    if not place.shown:
        _swap(git, place, old, new, name)
        return
    with _locked(place, name):
        if branch_of(place.git_dir) != place.into:
            raise CannotMove(f"{place.root} was switched to another branch; nothing was touched")
        if found := changed(place, old, folder, aside=False):
            raise CannotMove(f"{found[0]} in {place.root} was changed meanwhile; commit or stash it, then try again")
        _passable(git, place, old, new, folder)
        _swap(git, place, old, new, name)
        try:
            _follow(place, folder, "-m", "-u", old, new)
        except (WorkspaceError, OSError) as exc:
            _back(git, place, old, new, folder, exc)


def behind(place: Place, old: str, new: str) -> str:
    """What is left to the person once the checkout shows ``new``, in words: submodules stand where they stood. Raises
    GitFailed.
    """
    if not place.shown:
        return ""
    fields = Git.of(place.git_dir).names("diff-tree", "-r", "-z", "--no-renames", "--raw", old, new)
    pairs = zip(fields[::2], fields[1::2], strict=False)
    if moved := [path for about, path in pairs if about.split(" ")[1] == GITLINK]:
        names = ", ".join(moved[:_NAMED]) + (", …" if len(moved) > _NAMED else "")
        root = shlex.quote(str(place.root))
        return f"{names}: bring to its new commit with git -C {root} submodule update --init --recursive"
    return ""


def arrived(git_dir: Path, ref: str, commit: str) -> bool:
    """True when the branch holds the commit. Raises GitFailed."""
    git = Git.of(git_dir)
    if git.commit(ref) is None or git.commit(commit) is None:
        return False
    return git.call("merge-base", "--is-ancestor", commit, ref, ok=(0, 1))[0] == 0


def finish(place: Place, old: str, new: str, name: str, folder: Path) -> None:
    """Bring the checkout to ``new`` after its branch was, whatever was done of that; what its owner changed meanwhile
    stays. Safe to repeat. Raises NotFollowed, WorkspaceError, OSError.
    """
    git = Git.of(place.git_dir)
    unlock(place.git_dir, name)
    if branch_of(place.git_dir) != place.into or git.commit(place.ref) != new:
        return
    with _locked(place, name):
        if not changed(place, new, folder):
            return
        if strange := _strange(git, place, old, new, folder):
            raise NotFollowed(
                f"{place.into} is at {new[:12]}, and {place.root} still shows {old[:12]} with changes of yours in"
                f" {strange[0]}; look at it there: git status"
            )
        _follow(place, folder, "--reset", "-u", new)


def _strange(git: Git, place: Place, old: str, new: str, folder: Path) -> list[str]:
    """Files of the checkout that neither of the two commits made."""
    before, after = ({*git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)} for commit in (old, new))
    unlike_old, unlike_new = ({*changed(place, commit, folder, staged=False)} for commit in (old, new))
    alone = before ^ after
    suspects = (unlike_old | (after - before)) & (unlike_new | (before - after))
    suspects &= unlike_old | unlike_new
    return sorted(path for path in suspects if path not in alone or os.path.lexists(place.root / path))


def unlock(git_dir: Path, name: str) -> None:
    """Take away the index's lock that this merge left when it was killed; another's stays. Raises OSError."""
    lock = git_dir / "index.lock"
    with contextlib.suppress(FileNotFoundError, safe_files.Unreadable):
        if safe_files.read_beneath(git_dir, "index.lock", 4096) == _MARK + name.encode():
            lock.unlink()


@contextlib.contextmanager
def _locked(place: Place, name: str) -> Iterator[None]:
    """Hold the lock by which git keeps others from the index. Raises CannotMove when somebody has it."""
    lock = place.git_dir / "index.lock"
    try:
        fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError as exc:
        raise CannotMove(_busy(place, lock)) from exc
    try:
        with open(fd, "wb") as file:
            file.write(_MARK + name.encode())
        yield
    finally:
        unlock(place.git_dir, name)


def _busy(place: Place, lock: Path | str) -> str:
    return f"another git is at work in {place.root}; try again when it is done (if none is: remove {lock})"


def _swap(git: Git, place: Place, old: str, new: str, name: str) -> None:
    try:
        git.run("update-ref", "-m", f"watchfloor: merge {name}", place.ref, new, old)
    except GitFailed as exc:
        now = git.commit(place.ref)
        if now == old and (lock := held(str(exc))):
            raise CannotMove(_busy(place, lock)) from exc
        if now == old:
            raise
        where = f"moved to {now[:12]}" if now else "deleted"
        raise CannotMove(
            f"{place.into} was {where} while the checks ran, so the result is not what would be merged now; merge again"
        ) from exc


def _passable(git: Git, place: Place, old: str, new: str, folder: Path) -> None:
    """Raise CannotMove when letting the checkout follow would need what we do not do: overwrite files that are in no
    commit or that git was told not to look at, or run a filter.
    """
    written = {*git.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)}
    if kept := next((path for path in changed(place, old, folder) if path in written), ""):
        raise CannotMove(
            f"{kept} in {place.root} holds changes of yours that git was told not to look at, and would be overwritten;"
            f" git update-index --no-skip-worktree --no-assume-unchanged {kept}, then commit or stash them"
        )
    added = git.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", old, new)
    tracked = {*git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", old)}
    if blocked := next((path for name in added if (path := _in_the_way(place.root, name, tracked))), ""):
        raise CannotMove(
            f"{blocked} in {place.root} is in no commit and would be overwritten; move it away, then try again"
        )
    touched = git.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=AMT", old, new)
    covered = filters.attributes(Git(git.git_dir, place.root, git.extra), touched)
    own = {path: name for path, name in covered.items() if name in filters.configured(place.git_dir)}
    for path, name in own.items():
        oid = git.text("rev-parse", f"{new}:{path}")
        text = git.run("cat-file", "blob", oid)
        if mend := filters.advice(folder, recorded_root(folder / "private"), place.root, path, oid, new, text):
            raise CannotMove(
                f"{path} goes through the filter {name}, and {new[:12]} has what git would not commit of it, or what"
                f" only the session has the content of; bring it yourself: {mend}"
            )
    for path, name in own.items():
        raise CannotMove(
            f"{path} goes through the filter {name}, which is yours to run and no session runs; bring it yourself:"
            f" git -C {shlex.quote(str(place.root))} merge {new}"
        )


def _in_the_way(root: Path, name: str, tracked: set[str]) -> str:
    """What of the checkout stands where a new file has to be; empty when nothing does."""
    parts = name.split("/")
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        if path in tracked:
            return ""
        try:
            folder = os.path.isdir(root / path) and not os.path.islink(root / path)
        except OSError:
            return path
        if not os.path.lexists(root / path):
            return ""
        if not folder:
            return path
    return _in_no_commit(root, name, tracked)


def _in_no_commit(root: Path, folder: str, tracked: set[str]) -> str:
    """A file below a folder that is not tracked; empty when there is none, so that nothing is lost with it."""
    for at, _, names in os.walk(root / folder):
        for name in names:
            path = os.path.relpath(os.path.join(at, name), root)
            if path not in tracked:
                return path
    return ""


def _follow(place: Place, folder: Path, *how: str) -> None:
    """Files first, on a copy of the index, which then takes the index's place in one step."""
    index = place.git_dir / "index"
    copy = folder / "index.merge"
    copy.unlink(missing_ok=True)
    copy.write_bytes(index.read_bytes())
    try:
        git = Git.of(place.git_dir, place.root).with_env(GIT_INDEX_FILE=str(copy))
        git.run("update-index", "-q", "--refresh", ok=(0, 1))
        git.run("read-tree", "--no-recurse-submodules", *how)
        with durable.swapping(index, place.git_dir / "index.watchfloor") as fd:
            os.fchmod(fd, index.stat().st_mode & 0o777)
            durable.write_all(fd, copy.read_bytes())
    finally:
        copy.unlink(missing_ok=True)


def _back(git: Git, place: Place, old: str, new: str, folder: Path, why: Exception) -> None:
    """The files could not follow: the branch goes back, and what was written of the new ones. Raises CannotMove,
    NotFollowed.
    """
    try:
        git.run("update-ref", "-m", "watchfloor: merge taken back", place.ref, old, new)
        strange = {*_strange(git, place, old, new, folder)}
        ours = [path for path in changed(place, old, folder, staged=False) if path not in strange]
        asked = b"".join(os.fsencode(path) + b"\0" for path in ours)
        looked = Git.of(place.git_dir, place.root)
        looked.run("checkout-index", "--force", "-z", "--stdin", stdin=asked)
        before = {*git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", old)}
        for path in git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", new):
            if path not in before and path not in strange:
                with contextlib.suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
                    (place.root / path).unlink()
    except (WorkspaceError, OSError) as exc:
        raise NotFollowed(
            f"{place.root} could not follow {place.into} to {new[:12]} ({why}; {exc}); look at it there: git status"
        ) from why
    raise CannotMove(f"the files of {place.root} could not be brought along ({why}); all is as it was") from why

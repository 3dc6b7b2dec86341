"""The private git directory of a session: what its agent can write of git, and how its commits come out.

Inside the sandbox the repository is not there. Where the worktree's ``.git`` leads lies a git directory of the
session's own, with a detached HEAD, refs, configuration and objects that borrow from the real store, which is
read-only. So an agent commits, branches, tags and stashes as it likes, and can reach no branch, no hook, no
configuration and no object of anybody else. `publish` carries the commits of its HEAD out; its other refs stay here.

Nothing that is bound has its source or its mount point below a folder that the agent can write, but for two mount
points of every call, which therefore cannot be replaced from inside: the ``.git`` file and the folder of objects.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.domain.denied import NOTHING, Denied
from harness.executor import preconditions
from harness.linux import safe_files
from harness.workspace.clone import filters, submodule_git, submodules
from harness.workspace.git import object_transfer
from harness.workspace.git.errors import DamagedWorktree, GitFailed, PublishFailed
from harness.workspace.git.locks import repository_lock
from harness.workspace.git.object_transfer import Source
from harness.workspace.git.run import Git
from harness.workspace.git.scratch import alternates, real_objects
from harness.workspace.private_git import own_settings, shown_repository, withheld
from harness.workspace.private_git.planting import clear, make_way, plant, put

_HEX = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ON = "ref: refs/heads/"


@dataclass(frozen=True, slots=True)
class Worktree:
    """A session's worktree. All paths are absolute and real."""

    root: Path
    branch: str
    base: str
    repo: Path
    common: Path
    admin: Path
    """``<common>/worktrees/<name>``."""
    private: Path
    """The session's own git directory, which lies over ``admin``; its siblings hold objects and bookkeeping."""
    dirty: int = 0
    """Uncommitted files in the user's own checkout when the session began; they are not part of it."""
    folder: str = ""
    """Where commands run unless a call names another folder, from the top: the part of the repository it was launched
    from.
    """

    denied: Denied = NOTHING
    """What is kept from it."""

    @property
    def objects(self) -> Path:
        """New objects of the agent, not yet published."""
        return self.private.parent / "objects"

    @property
    def shared(self) -> Path:
        """Where the repository's own objects appear inside the sandbox (an empty folder outside)."""
        return self.private.parent / "shared-objects"

    @property
    def dotgit(self) -> Path:
        """Our copy of the worktree's ``.git`` file."""
        return self.private.parent / "dotgit"

    @property
    def settings(self) -> Path:
        """The configuration of every git inside, which no agent can write."""
        return self.private.parent / own_settings.FILE

    @property
    def git(self) -> Git:
        """A runner outside the sandbox, on the real administrative directory."""
        return Git.of(self.admin, self.root)


@dataclass(frozen=True, slots=True)
class Published:
    """What `publish` found: the agent's commit, and whether the session branch moved."""

    head: str
    moved: bool


def make(tree: Worktree, identity: tuple[str, str], head: str = "") -> None:
    """Create the private directory: HEAD detached at ``head`` (by default the base), index as the worktree's record has
    it, an empty object store.
    """
    for folder in (tree.private / "refs" / "heads", tree.objects / "info", tree.objects / "pack", tree.shared):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(tree.admin / "index", tree.private / "index", follow_symlinks=False)
    put(tree.private / "HEAD", f"{head or tree.base}\n")
    if head:
        put(tree.private.parent / "published", head)
    put(tree.dotgit, f"gitdir: {tree.admin}\n")
    own_settings.write(tree.private, tree.admin, tree.base, identity, tree.denied)


def prepare(tree: Worktree) -> list[Path]:
    """Make sure that what will be bound is what we made; the stores that the repository borrows from (`alternates`).

    Raises DamagedWorktree when it cannot be put right.
    """
    objects = tree.objects
    shared = tree.shared
    for folder, what in (
        (tree.root, "worktree"),
        (tree.private, "private git directory"),
        (objects, "object store"),
        (tree.admin, "git's record of the worktree"),
    ):
        if not stat.S_ISDIR(mode := _mode(folder)):
            raise DamagedWorktree(
                f"the session's {what} {folder} is gone; its committed work is on branch {tree.branch} of {tree.repo}"
            )
        if mode & 0o700 != 0o700:  # an agent may close to us what is ours
            folder.chmod(stat.S_IMODE(mode) | 0o700)
    clear(tree.private / "commondir")  # an agent can have written one
    shared.mkdir(mode=0o700, exist_ok=True)
    borrowed = [] if tree.denied else alternates(tree.common)
    info = objects / "info"
    for folder in (info, objects / "pack", tree.private / "objects", tree.private / "refs"):
        if not stat.S_ISDIR(_mode(folder)):
            folder.unlink(missing_ok=True)
            folder.mkdir(mode=0o700)
    stores = "".join(f"{s}\n" for s in (shared, *borrowed))
    if not _holds(info / "alternates", stores):
        put(info / "alternates", stores)
    dotgit = tree.root / ".git"
    wanted = f"gitdir: {tree.admin}\n"
    if stat.S_ISDIR(_mode(dotgit)):
        raise DamagedWorktree(f"{dotgit} was replaced by a folder; look at it and remove it, then go on")
    if not _holds(dotgit, wanted):
        put(dotgit, wanted)
    return borrowed


def _mode(path: Path) -> int:
    """Of what has this name, a link itself; 0 when there is nothing. Raises OSError."""
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _holds(path: Path, text: str) -> bool:
    """True when a regular file of this name says exactly that: writing it anew costs a file and a change of name."""
    try:
        return safe_files.read(path) == os.fsencode(text)
    except OSError:
        return False


def binds(tree: Worktree) -> list[tuple[str, str, str]]:
    """(source, destination, ``ro`` | ``rw``) for the sandbox, in mount order.

    Repairs what the agent may have disturbed first.
    """
    borrowed = prepare(tree)
    root = str(tree.root)
    shown_repository.refresh(tree.common, tree.private, tree.branch, tree.denied)
    store = str(withheld.store(tree.private) if tree.denied else real_objects(tree.common))
    listed: list[tuple[str, str, str]] = [(str(a), str(a), "ro") for a in borrowed]
    listed += [
        (str(tree.private), str(tree.admin), "rw"),
        (store, str(tree.shared), "ro"),
        (str(tree.objects), f"{tree.admin}/objects", "rw"),
        (str(tree.settings), str(tree.settings), "ro"),
        (root, root, "rw"),
        (str(tree.dotgit), f"{root}/.git", "ro"),
    ]
    ours = tree.private.parent
    return listed + submodule_git.binds(ours) + filters.binds(ours, tree.common, tree.denied)


def environment(tree: Worktree) -> dict[str, str]:
    """What git needs inside the sandbox."""
    return {
        "GIT_CONFIG_GLOBAL": str(tree.settings),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
    }


def agent_head(tree: Worktree) -> str | None:
    """The commit the agent's HEAD names, or None when it names none that can be published. Does not follow links."""
    found = preconditions.ref(str(tree.private), "HEAD")
    return found if _HEX.fullmatch(found) else None


def agent_branch(tree: Worktree) -> str:
    """The branch of its own that the agent is on, without ``refs/heads/``; empty when its HEAD is detached."""
    try:
        text = safe_files.read_beneath(tree.private, "HEAD", 4096).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return text.removeprefix(_ON) if text.startswith(_ON) else ""


def publish(tree: Worktree) -> Published:
    """Bring the agent's commits into the repository and move the session's branch to them. Call it while no call of the
    session runs.

    Objects are re-hashed and checked on the way (``index-pack --strict``); only the session's own branch and the
    worktree's index change. Raises PublishFailed when the agent's objects are damaged or its HEAD names no commit.
    """
    submodule_git.carry(tree.private, tree.admin, tree.branch)
    last = _published(tree)
    if _at_rest(tree, last):
        return Published(last, False)
    git = Git.of(tree.admin)
    ref = f"refs/heads/{tree.branch}"
    old = git.commit(ref)
    head = agent_head(tree)
    if head is None:
        raise PublishFailed(
            f"the agent's HEAD in {tree.private} names no commit; bring back what was there before with: watchfloor"
            " undo ID; or have the agent write a commit's id into the file HEAD of the folder that its .git names"
        )
    if head == last and old is not None:
        if old != last:
            _adopt(tree, old)
        return Published(old, False)
    if head == old:
        put(tree.private.parent / "published", head)
        return Published(head, False)
    with repository_lock(tree.common, tree.root.parent):
        let_go(tree)
        _bring(tree, head)
        # A branch that somebody else moved meanwhile is only ever moved forward, so that their commits are not lost.
        if old is not None and old != last and git.call("merge-base", "--is-ancestor", old, head, ok=(0, 1))[0]:
            raise PublishFailed(
                f"branch {tree.branch} was moved to {old[:12]} from outside while the agent went on to {head[:12]};"
                " merge one into the other"
            )
        if there := submodule_git.of(tree.private.parent):
            links = submodules.links_of(tree.common, head, [one.path for one in there])
            submodule_git.carry(tree.private, tree.admin, tree.branch, links)
        args = ["update-ref", "-m", "watchfloor: work of the session", ref, head] + ([old] if old else [])
        git.run(*args)
        put(tree.private.parent / "published", head)
        let_go(tree)
        filters.carry(tree.private.parent, tree.common, old or tree.base, head)
        git.run("read-tree", "--reset", head)
        withheld.flag(tree.admin, tree.denied)
    return Published(head, True)


def _at_rest(tree: Worktree, commit: str) -> bool:
    """True when the agent and the session's branch are both at this commit by the files that name it, which git reads
    first too: most calls commit nothing, and starting git only to hear that would cost more than the call.
    """
    try:
        there = safe_files.read_beneath(tree.common, f"refs/heads/{tree.branch}", 4096)
    except OSError:
        return False
    return there.strip() == commit.encode() and agent_head(tree) == commit


def _published(tree: Worktree) -> str:
    """The agent's commit that was last in step with the session's branch."""
    try:
        text = safe_files.read(tree.private.parent / "published").decode("ascii", "replace").strip()
    except FileNotFoundError:
        return tree.base
    return text if _HEX.fullmatch(text) else tree.base


def _adopt(tree: Worktree, commit: str) -> None:
    """The branch was moved from outside (a human, or a command without the sandbox) and the agent did not move: it
    follows.
    """
    shutil.copyfile(tree.admin / "index", tree.private.parent / "index.new", follow_symlinks=False)
    make_way(tree.private / "index")
    (tree.private.parent / "index.new").rename(tree.private / "index")
    branch = agent_branch(tree)
    if not branch or not plant(tree.private, f"refs/heads/{branch}", f"{commit}\n".encode()):
        put(tree.private / "HEAD", f"{commit}\n")
    put(tree.private.parent / "published", commit)


def source(tree: Worktree, folder: Path) -> Source:
    """The agent's objects beside the repository's; ``folder`` is an empty one of ours that must stand as long. Raises
    PublishFailed, GitFailed.
    """
    return Source(Git.of(tree.admin), tree.objects, real_objects(tree.common), folder)


def bring(tree: Worktree, commit: str) -> None:
    """Copy what a commit of the agent's needs into the repository, where a ref must hold it at once: then `let_go`.
    Raises PublishFailed, GitFailed.
    """
    with repository_lock(tree.common, tree.root.parent):
        _bring(tree, commit)


def let_go(tree: Worktree) -> None:
    """A ref holds what was brought."""
    object_transfer.let_go(real_objects(tree.common), tree.branch)


def _bring(tree: Worktree, head: str) -> None:
    with tempfile.TemporaryDirectory(prefix="publish-", dir=tree.private.parent) as name:
        own = source(tree, Path(name))
        try:
            brought = own.bring(head, tree.branch)
        except GitFailed as exc:
            let_go(tree)
            raise PublishFailed(f"commit {head[:12]} of {tree.branch} cannot be published: {exc}") from exc
    for path in () if tree.denied else brought:  # it may not see the repository's
        path.unlink(missing_ok=True)

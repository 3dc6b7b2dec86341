"""What else has the files that a deletion outside the worktree would take: a commit, a remote, another checkout.
Blocking.

A repository is looked for by hand and asked by name: nothing that it configures runs, and no filter is applied, so that
a file which git keeps otherwise than it lies there (line ends) counts as not committed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.domain.text.formatting import counted
from harness.linux import safe_files
from harness.policy.effects import inside
from harness.workspace.git.commit_files import blob_id
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.git.run import Git, common_of
from harness.workspace.merge.checkout import branch_of

_TIMEOUT_S = 5.0
_MOST_BYTES = 16 << 20
"""Bytes of files that are compared, in all."""
_MOST_LISTED = 4 << 20
_MOST_CHECKOUTS = 16
_MOST_NAMED = 3
_LINK = "120000"
_PLAIN = ("100644", "100755")


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """``has`` says what else has all of it; ``lacks`` what has not, or not all. Both are empty where nothing could."""

    has: str = ""
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class _Home:
    """The checkout that a name lies in."""

    root: str
    git_dir: Path
    common: Path

    @property
    def git(self) -> Git:
        return Git(self.git_dir)

    @property
    def name(self) -> str:
        return os.path.basename(self.root) or self.root

    @property
    def called(self) -> str:
        branch = branch_of(self.git_dir)
        return f"{self.name} ({branch})" if branch else self.name


def elsewhere(path: str, files: Sequence[str], repositories: Sequence[str], gone: Iterable[str]) -> Elsewhere:
    """Of ``path`` (its folder resolved): ``files`` are the names in it, or itself; ``repositories`` the git folders
    in it. ``gone`` is all that the same command takes away. Never raises.
    """
    try:
        if repositories:
            return Elsewhere(lacks=_repository_goes(repositories))
        home = _home(os.path.dirname(path))
        if home is None or any(inside(str(home.common), one) for one in gone):
            return Elsewhere()
        if inside(path, str(home.common)):
            return Elsewhere(lacks=f"it is of the repository {home.name} itself")
        return _compared(home, path, files, list(gone)) if files else Elsewhere()
    except (OSError, ValueError, WorkspaceError):
        return Elsewhere()


def is_repository(folder: str) -> bool:
    """Whether a folder holds a repository's own data."""
    return os.path.isfile(f"{folder}/HEAD") and all(os.path.isdir(f"{folder}/{name}") for name in ("objects", "refs"))


def _home(folder: str) -> _Home | None:
    """The checkout around a folder; None when there is none, or it is another user's."""
    at = folder
    while not os.path.lexists(f"{at}/.git"):
        if at == os.path.dirname(at):
            return None
        at = os.path.dirname(at)
    mark = f"{at}/.git"
    git_dir = mark
    if not stat.S_ISDIR(os.lstat(mark).st_mode):
        text = safe_files.read(mark, 4096).decode("utf-8", "surrogateescape").strip()
        git_dir = os.path.join(at, text.removeprefix("gitdir:").strip())
    real = Path(os.path.realpath(git_dir))
    common = Path(os.path.realpath(real / common_of(real)))
    own = all(os.stat(one).st_uid == os.geteuid() for one in (real, common))
    return _Home(at, real, common) if own and is_repository(str(common)) else None


def _repository_goes(repositories: Sequence[str]) -> str:
    commits = 0
    for folder in repositories:
        listed = Git(Path(folder)).run("rev-list", "--count", "--all", "--not", "--remotes", timeout=_TIMEOUT_S)
        commits += int(listed)
    what = "a repository goes with it" if len(repositories) == 1 else f"{len(repositories)} repositories go with it"
    if not commits:
        return f"{what}: all commits were on a remote when it was last asked; what is not committed was not looked at"
    are = "is" if commits == 1 else "are"
    return f"{what}, {counted(commits, 'commit')} of which {are} on no remote that is known"


def _compared(home: _Home, path: str, files: Sequence[str], gone: list[str]) -> Elsewhere:
    head = home.git.commit("HEAD")
    if head is None:
        return Elsewhere()  # there is none, or git refuses the repository
    known = _listed(home, head, os.path.relpath(path, home.root))
    ids = _ids(files, len(head))
    without = [one for one in files if known.get(os.path.relpath(one, home.root), "-") != ids.get(one)]
    if not without:
        return Elsewhere(f"committed in {home.called}, {_remote(home, head)}")
    if len(files) > 1:
        names = ", ".join(os.path.relpath(one, path) for one in without[:_MOST_NAMED])
        more = f" and {len(without) - _MOST_NAMED} more" if len(without) > _MOST_NAMED else ""
        return Elsewhere(lacks=f"{len(without)} of {len(files)} are not committed in {home.called}: {names}{more}")
    (file,) = files
    if file not in ids:
        return Elsewhere(lacks=f"it cannot be compared with what {home.called} has")
    if has := _before(home, ids[file]) or _in_checkout(home, file, ids[file], gone):
        return Elsewhere(has)
    if os.path.relpath(file, home.root) in known:
        return Elsewhere(lacks=f"{home.called} has an earlier content of it, nothing has this one")
    return Elsewhere(lacks=f"it is in no commit of {home.name} and in no other checkout")


def _listed(home: _Home, head: str, name: str) -> dict[str, str]:
    """The objects that a commit has at and below a name, by path."""
    _, out = home.git.call(
        "ls-tree", "-r", "-z", "--full-tree", head, "--", name, timeout=_TIMEOUT_S, limit=_MOST_LISTED
    )
    found: dict[str, str] = {}
    # what stands behind the last NUL was cut
    for entry in out.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        fields, _, path = entry.partition("\t")
        mode, _, oid = fields.split(" ")
        if mode in (*_PLAIN, _LINK):
            found[path] = oid
    return found


def _ids(files: Sequence[str], length: int) -> dict[str, str]:
    """What git would call the content of each file as it lies there; those that cannot be read, or are too large
    together, are left out.
    """
    found: dict[str, str] = {}
    room = _MOST_BYTES
    for file in files:
        try:
            if stat.S_ISLNK(os.lstat(file).st_mode):
                content = os.fsencode(os.readlink(file))
            else:
                content = safe_files.read(file, room)
        except OSError:
            continue
        room -= len(content)
        found[file] = blob_id(content, length)
    return found


def _remote(home: _Home, commit: str) -> str:
    """Whether a remote has a commit, as far as this repository knows."""

    def refs(*more: str) -> str:
        return home.git.text(
            "for-each-ref", "--count=1", *more, "--format=%(refname:lstrip=2)", "refs/remotes", timeout=_TIMEOUT_S
        )

    if on := refs(f"--contains={commit}"):
        return f"and on {on} when it was last asked"
    return "on no remote that is known" if refs() else "which has no remote"


def _before(home: _Home, oid: str) -> str:
    """Which commit, reached by a ref, has this content, though not what is checked out."""
    if home.git.call("cat-file", "-e", oid, ok=(0, 1, 128), timeout=_TIMEOUT_S)[0] != 0:
        return ""
    found = home.git.text(
        "log",
        "--all",
        "--source",
        "--max-count=1",
        "--no-show-signature",
        f"--find-object={oid}",
        "--format=%H%x00%S",
        timeout=_TIMEOUT_S,
    )
    sha, _, ref = found.partition("\0")
    if not sha:
        return ""
    return f"in an earlier commit of {home.name} ({ref.removeprefix('refs/heads/')}), {_remote(home, sha)}"


def _in_checkout(home: _Home, file: str, oid: str, gone: list[str]) -> str:
    """Which other checkout of the repository has the same content under the same name."""
    size = os.lstat(file).st_size
    name = os.path.relpath(file, home.root)
    listed = Git(home.common).run("worktree", "list", "--porcelain", "-z", timeout=_TIMEOUT_S)
    fields = listed.decode("utf-8", "surrogateescape").split("\0")
    roots = [field.removeprefix("worktree ") for field in fields if field.startswith("worktree ")]
    for root in roots[:_MOST_CHECKOUTS]:
        other = os.path.join(root, name)
        if root == home.root or any(inside(other, one) for one in gone):
            continue
        try:
            same = (
                os.lstat(other).st_size == size and blob_id(safe_files.read_beneath(root, name, size), len(oid)) == oid
            )
        except OSError:
            continue
        if same:
            return f"the checkout {root} has the same"
    return ""

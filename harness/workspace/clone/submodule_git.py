"""Git inside the submodules of a session: each has a git directory of its own below the session's private one, which
borrows from the person's clone. Blocking.

In the sandbox they lie where git keeps those of a worktree, below its record. What the agent commits in one is carried
into the clone's own git directory of that submodule, under a ref of the session's (`REFS`), before a commit of the
repository that names it is published: no commit that a person gets names one that they have not.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from harness.executor import preconditions
from harness.linux import durable, safe_files
from harness.workspace.git.errors import GitFailed, PublishFailed
from harness.workspace.git.object_transfer import Source, let_go
from harness.workspace.git.run import Git
from harness.workspace.git.scratch import alternates, lay_out

REFS = "refs/watchfloor/work/"
FILE = "submodules.json"
"""Beside the private git directory: which submodules have a git of their own."""
OBJECTS = "module-objects"
"""Where the sandbox shows the objects that they borrow."""
_BELOW = "modules"
_HEX = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MOST_REFS = 20_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Module(msgspec.Struct, frozen=True):
    """The submodule at ``path``; ``store`` is the clone's git directory of it, ``objects`` the folders borrowed from,
    ``carried`` the commit that was there last.
    """

    path: str
    store: str
    objects: tuple[str, ...]
    carried: str


def of(ours: Path) -> list[Module]:
    """The submodules of a session that have a git of their own; ``ours`` is the folder beside its private one."""
    try:
        return msgspec.json.decode(safe_files.read(ours / FILE), type=list[Module])
    except (OSError, msgspec.DecodeError):
        return []


def _save(ours: Path, modules: Iterable[Module]) -> None:
    durable.swap_file(ours / FILE, msgspec.json.encode(list(modules)))


def marks(ours: Path, admin: Path) -> dict[str, bytes]:
    """What their ``.git`` files say, by the paths of the submodules."""
    return {one.path: _mark(admin, number) for number, one in enumerate(of(ours))}


def _mark(admin: Path, number: int) -> bytes:
    return os.fsencode(f"gitdir: {admin}/{_BELOW}/{number}\n")


def equip(root: Path, private: Path, admin: Path, found: Iterable[tuple[str, Path, str, bytes]]) -> None:
    """Give submodules, each by (path, the clone's git directory, commit, index), a git of their own: in the private git
    directory for the sandbox, and in git's record of the worktree for the person. Raises GitFailed, OSError.
    """
    ours = private.parent
    modules: list[Module] = []
    for number, (path, store, commit, index) in enumerate(found):
        objects = [Path(os.path.realpath(store / "objects")), *alternates(store)]
        inside = [ours / OBJECTS / f"{number}.{place}" for place in range(len(objects))]
        kind = "sha1" if len(commit) == 40 else "sha256"
        refs = _packed(store)
        for git_dir, stores in ((private / _BELOW / str(number), inside), (admin / _BELOW / str(number), objects)):
            lay_out(git_dir, kind)
            (git_dir / "objects" / "info" / "alternates").write_bytes(b"".join(os.fsencode(s) + b"\n" for s in stores))
            (git_dir / "packed-refs").write_bytes(refs)
            (git_dir / "index").write_bytes(index)
            if (store / "shallow").is_file():
                (git_dir / "shallow").write_bytes((store / "shallow").read_bytes())
            (git_dir / "HEAD").write_text(f"{commit}\n", "ascii")
        (root / path / ".git").write_bytes(_mark(admin, number))
        modules.append(Module(path, str(store), tuple(map(str, objects)), commit))
    if modules:
        _save(ours, modules)


def _packed(store: Path) -> bytes:
    """Branches of remotes and tags of the clone's submodule, for its history to have names."""
    listed = Git(store).run(
        "for-each-ref",
        f"--count={_MOST_REFS}",
        "--format=%(objectname) %(refname) %(symref)",
        "refs/remotes",
        "refs/tags",
    )
    rows = sorted(line.rstrip().split(b" ") for line in listed.split(b"\n") if line)
    lines = [b"%s %s\n" % (row[0], row[1]) for row in sorted(rows, key=lambda row: row[1]) if len(row) == 2]
    return b"# pack-refs with: sorted \n" + b"".join(lines)


def binds(ours: Path) -> list[tuple[str, str, str]]:
    """What they borrow, for the sandbox."""
    pairs = [
        (objects, f"{ours}/{OBJECTS}/{number}.{place}")
        for number, one in enumerate(of(ours))
        for place, objects in enumerate(one.objects)
    ]
    return [(source, target, "ro") for source, target in pairs if os.path.isdir(source)]


def carry(
    private: Path,
    admin: Path,
    branch: str,
    links: Mapping[str, str] | None = None,
) -> None:
    """Bring what the agent committed in submodules into the clone's, with what the repository's commit ``links`` them
    to. Raises PublishFailed.
    """
    ours = private.parent
    modules = of(ours)
    now = list(modules)
    for number, one in enumerate(modules):
        with _opened(private, str(number)) as own:
            head = preconditions.ref(f"{own}/.", "HEAD") if own else ""
            wanted = [oid for oid in dict.fromkeys((head, (links or {}).get(one.path, ""))) if _HEX.fullmatch(oid)]
            if all(oid == one.carried for oid in wanted):
                continue
            for oid in reversed(wanted):
                _carry_one(private, number, one, oid, branch)
        if _HEX.fullmatch(head):
            now[number] = msgspec.structs.replace(one, carried=head)
            _follow(admin / _BELOW / str(number), head)
    if now != modules:
        _save(ours, now)


@contextlib.contextmanager
def _opened(private: Path, *names: str) -> Iterator[str]:
    """A name by which a folder that the agent writes stays the same one, no part of it a link; empty when there is
    none.
    """
    fds: list[int] = []
    try:
        with contextlib.suppress(OSError):
            fds.append(os.open(private, _FOLDER))
            for name in (_BELOW, *names):
                fds.append(os.open(name, _FOLDER, dir_fd=fds[-1]))
        yield f"/proc/self/fd/{fds[-1]}" if len(fds) == len(names) + 2 else ""
    finally:
        for fd in fds:
            os.close(fd)


def _carry_one(private: Path, number: int, one: Module, oid: str, branch: str) -> None:
    store = Git.of(Path(one.store))
    if not Path(one.store).is_dir():
        return
    with (
        tempfile.TemporaryDirectory(prefix="publish-", dir=private.parent) as name,
        _opened(private, str(number), "objects") as objects,
    ):
        (empty := Path(name) / "empty").mkdir()
        own = Source(store, Path(objects) if objects else empty, Path(one.objects[0]), Path(name))
        if own.git.commit(oid) != oid:  # of elsewhere: a merge says so
            return
        try:
            own.bring(oid, branch)
            _hold(store, branch, oid)
        except GitFailed as exc:
            raise PublishFailed(f"commit {oid[:12]} of the submodule {one.path} cannot be published: {exc}") from exc
        finally:
            let_go(Path(one.objects[0]), branch)


def _hold(store: Git, branch: str, oid: str) -> None:
    """Have a ref of the session's hold the commit; one that the last does not lead to stays held, too."""
    ref = f"{held_in(branch)}head"
    old = store.commit(ref)
    if old and store.call("merge-base", "--is-ancestor", old, oid, ok=(0, 1))[0]:
        store.run("update-ref", f"{held_in(branch)}{old}", old)
    store.run("update-ref", "-m", "watchfloor: work of the session", ref, oid)


def held_in(branch: str) -> str:
    """The folder of refs, in the clone's submodules, that hold what the session of this branch committed there."""
    return f"{REFS}{branch.replace('/', '-')}/"


def _follow(git_dir: Path, head: str) -> None:
    """The person's view of the worktree stands on the same commit."""
    with contextlib.suppress(OSError, GitFailed):
        durable.swap_file(git_dir / "HEAD", f"{head}\n".encode())
        Git(git_dir).run("read-tree", "--reset", head)


def release(ours: Path, branch: str) -> None:
    """Let go of commits that other refs of the clone's submodules hold as well; what only a session made stays, since
    commits of the repository may name it.
    """
    for store in dict.fromkeys(one.store for one in of(ours)):
        git = Git(Path(store))
        with contextlib.suppress(GitFailed, OSError):
            for ref in git.text("for-each-ref", "--format=%(refname)", held_in(branch)).split():
                others = (f"--exclude={held_in(branch)}*", "--all")
                if not git.text("rev-list", "--max-count=1", ref, "--not", *others):
                    git.run("update-ref", "-d", ref)

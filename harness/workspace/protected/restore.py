"""The files that decide whether work is done: compared with the commit the session began from, and put back. Blocking.

What lies in the worktree is hostile: every path is walked beneath the opened folder and through no link. Nothing of the
agent's is ever deleted; what has to go is moved aside, into a folder of ours that no sandbox shows.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.checks import check_settings
from harness.checks.check_scripts import Named
from harness.checks.protected_files import IN_PARTS, New, Rules, folders_around, settings_of, shadows
from harness.workspace.git.errors import GitFailed
from harness.workspace.git.untrusted_dir import Ground, Item, Kind
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected import check_inputs
from harness.workspace.protected.aside import Aside
from harness.workspace.tree.scan import GITLINK, Seen, View, folders_of, item_name, look, paths

ABSENT = "absent"
"""In place of a digest: nothing is there."""
FOLDER = "folder"
"""In place of a digest: a folder is there."""
MAX_SETTINGS = 1 << 20
"""Bytes of a configuration file that is read for its parts; a larger one is compared as a whole."""
CACHES = frozenset({"__pycache__", ".pytest_cache"})
"""Byte code, and what a runner remembers of tests that failed."""
MAX_FOLDERS = 20_000
"""Folders that are looked through for byte code."""
_NOT_ENTERED = frozenset({"node_modules", "venv", "env", "site-packages", "target"})
MAX_SHOWN = 1 << 20
_LINK = "120000"
_UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Difference:
    """One protected path that is not as it was: ``how`` is changed, deleted, replaced (it is another kind of thing) or
    shadows (it is new). ``sha`` is what is there now, as SHA-256 of a file's bytes or of a link's target.
    """

    path: str
    how: str
    sha: str


@dataclass(frozen=True, slots=True)
class Examined:
    """``touched`` are protected files that were written to since the given time, whatever they hold now."""

    protected: frozenset[str]
    differences: tuple[Difference, ...]
    touched: tuple[str, ...] = ()


@dataclass(slots=True)
class PutBack:
    """How many paths are as they were, and in words what is not."""

    done: int = 0
    refused: list[str] = field(default_factory=list)


def examine(tree: Worktree, rules: Rules, accepted: Mapping[str, str], since_ns: int = 0) -> Examined:
    """Compare what is protected with the base. ``accepted`` are digests by path that a person allowed.

    With ``since_ns`` (of the clock of day) it is also told what was touched since. Raises WorkspaceError, OSError.
    """
    with look(tree, tree.base) as view:
        base = {path for path, entry in view.entries.items() if entry.mode != GITLINK}
        run = check_inputs.run_by(tree, rules)
        guarded = check_inputs.guarded(tree, rules)
        view.entries = {path: view.entries[path] for path in guarded}
        around = {*folders_around(guarded), *run.path, *run.packages, *run.modules}
        around.update(map(os.path.dirname, run.stops | run.env))
        if settings_of(run):
            around.update(folders_of(base))
        items = {path: item for folder in around for path, item in _items(view.ground, folder)}
        seen = Seen(tracked={p: i for p, i in items.items() if p in guarded and i.kind in (Kind.FILE, Kind.LINK)})
        changes = view.differences(seen)
        found = [_gone(path, items.get(path)) for path in changes.gone]
        found += [
            Difference(path, "changed", digest(view.ground, path, items[path].kind))
            for path in changes.different
            if not _same_settings(view, path)
        ]
        found += [
            Difference(path, "shadows", digest(view.ground, path, items[path].kind))
            for path in _shadows(tree.root, view, base, guarded, items, rules, run)
        ]
        touched = tuple(
            sorted(p for p, i in seen.tracked.items() if since_ns and i.stamp and i.stamp.st_ctime_ns >= since_ns)
        )
    left = [one for one in found if accepted.get(one.path) != one.sha]
    return Examined(
        guarded,
        tuple(sorted(left, key=lambda one: one.path)),
        touched,
    )


def caches(tree: Worktree) -> tuple[str, ...]:
    """Folders of byte code in the worktree that the base has not: it would run in place of the source beside it, and
    need not be what that says. Environments and what runners leave out are not looked into. Raises WorkspaceError.
    """
    known = folders_of(set(paths(tree)))
    found: list[str] = []
    left = MAX_FOLDERS
    folders = [""]
    with Ground(tree.root) as ground:
        while folders and left:
            left -= 1
            for path, item in _items(ground, folders.pop()):
                if item.kind is not Kind.FOLDER:
                    continue
                if item.name in CACHES:
                    found += [] if path in known else [path]
                elif path in known or not (item.name.startswith(".") or item.name in _NOT_ENTERED):
                    folders.append(path)
    return tuple(sorted(found))


def _items(ground: Ground, folder: str) -> Iterator[tuple[str, Item]]:
    try:
        listed = ground.items(folder, stamps=True)
    except OSError:  # gone, no folder any more, or closed: then nothing of it is there
        return
    for item in listed:
        yield (f"{folder}/{item.name}" if folder else item.name), item


def _gone(path: str, item: Item | None) -> Difference:
    if item is None:
        return Difference(path, "deleted", ABSENT)
    return Difference(path, "replaced", FOLDER if item.kind is Kind.FOLDER else item.kind.value)


def digest(ground: Ground, path: str, kind: Kind) -> str:
    """SHA-256 of a file's bytes or of a link's target, else what is there in a word."""
    made = hashlib.sha256()
    try:
        if kind is Kind.LINK:
            made.update(b"link\0" + ground.link(path))
        elif kind is Kind.FILE:
            with open(ground.file(path), "rb") as file:
                left = os.fstat(file.fileno()).st_size
                made.update(b"x" if os.fstat(file.fileno()).st_mode & stat.S_IXUSR else b"-")
                while left > 0 and (chunk := file.read(min(1 << 20, left))):
                    left -= len(chunk)
                    made.update(chunk)
        else:
            return FOLDER if kind is Kind.FOLDER else kind.value
    except OSError:
        return _UNREADABLE
    return made.hexdigest()


def digest_of(mode: str, body: bytes) -> str:
    """The digest of a file that a commit has with this mode."""
    before = {_LINK: b"link\0", "100755": b"x"}.get(mode, b"-")
    return hashlib.sha256(before + body).hexdigest()


def _same_settings(view: View, path: str) -> bool:
    """True when only parts of the file changed that have nothing to do with checking."""
    name = item_name(path)
    if name not in IN_PARTS or view.entries[path].mode == _LINK:
        return False
    try:
        now = check_settings.of(name, view.ground.read(path, MAX_SETTINGS))
    except OSError:
        return False
    before = check_settings.of(name, original(view, path))
    return now is not None and now == before


def original(view: View, path: str) -> bytes:
    """The bytes of a file as the commit has it. Raises GitFailed."""
    return view.scratch.git.run("cat-file", "blob", view.entries[path].oid)


def _shadows(
    root: Path,
    view: View,
    base: set[str],
    guarded: frozenset[str],
    items: Mapping[str, Item],
    rules: Rules,
    run: Named,
) -> list[str]:
    folders = folders_of(base)
    new: list[New] = []
    for path, item in items.items():
        if path in base or path in folders or (path in run.reads and check_inputs.in_environment(root, path)):
            continue
        text = ""
        if item.kind is Kind.FILE and (path.endswith("_test.go") or path in run.env):
            with contextlib.suppress(OSError):
                text = _head(view.ground, path)
        elif item.kind is Kind.FOLDER and path.endswith((".dist-info", ".egg-info")):
            with contextlib.suppress(OSError):
                text = _head(view.ground, f"{path}/entry_points.txt")
        folder = item.kind is Kind.FOLDER
        first = (
            not folder and os.path.dirname(path) in run.path | run.packages and check_inputs.stands_before(root, path)
        )
        new.append(New(path, folder, text, first))
        if item.kind is Kind.LINK:
            new.append(New(path, True))
    return [
        path for path in dict.fromkeys(shadows(base, guarded, new, rules, run)) if not _says_nothing(view.ground, path)
    ]


def _head(ground: Ground, path: str) -> str:
    with open(ground.file(path), "rb") as file:
        return file.read(check_inputs.HEAD).decode("utf-8", "replace")


def _says_nothing(ground: Ground, path: str) -> bool:
    """True for a new file of many uses that does not say how to check."""
    name = item_name(path)
    if name not in IN_PARTS:
        return False
    try:
        return check_settings.of(name, ground.read(path, MAX_SETTINGS)) == b""
    except OSError:
        return False


# -- putting back ----------------------------------------------------------------------------------


def put_back(tree: Worktree, differences: Sequence[Difference], aside: Path) -> PutBack:
    """Make each path what it is in the base; what the agent had there is moved to ``aside/<index>``.

    Safe to repeat. Raises WorkspaceError, OSError when nothing can be done at all.
    """
    done = PutBack()
    aside.mkdir(mode=0o700, parents=True, exist_ok=True)
    with look(tree, tree.base) as view, Aside(tree.root, aside) as ground:
        back = [one.path for one in differences if one.path in view.entries]
        if back:
            asked = b"".join(os.fsencode(path) + b"\0" for path in back)
            view.scratch.git.run("read-tree", tree.base)
            view.scratch.git.run("checkout-index", "--force", "-z", "--stdin", stdin=asked)
        for index, one in enumerate(differences):
            try:
                ground.take_away(one.path, str(index))
                if one.path in view.entries:
                    entry = view.entries[one.path]
                    ground.put(one.path, view.scratch.tree / one.path, entry.mode)
                done.done += 1
            except OSError as exc:
                done.refused.append(f"{one.path}: {exc.strerror or exc}")
    return done


def clear(tree: Worktree, paths: Sequence[str], aside: Path) -> None:
    """Move what can be made again aside. Raises OSError."""
    aside.mkdir(mode=0o700, parents=True, exist_ok=True)
    with Aside(tree.root, aside) as ground:
        for index, path in enumerate(paths):
            ground.take_away(path, str(index))


def bring_again(tree: Worktree, differences: Sequence[Difference], aside: Path) -> PutBack:
    """Undo `put_back`: what the agent had is there again, as a person allowed. Safe to repeat. Raises OSError."""
    done = PutBack()
    with Aside(tree.root, aside) as ground:
        for index, one in enumerate(differences):
            try:
                if one.sha == ABSENT:
                    ground.take_away(one.path, f"{index}-original")
                elif os.path.lexists(aside / str(index)):
                    ground.take_away(one.path, f"{index}-original")
                    ground.give_back(one.path, str(index))
                done.done += 1
            except OSError as exc:
                done.refused.append(f"{one.path}: {exc.strerror or exc}")
    return done


def write(tree: Worktree, path: str, data: bytes, aside: Path) -> None:
    """Make ``path`` a file with these bytes; what is there, when it is no file, is moved aside. Raises OSError."""
    aside.mkdir(mode=0o700, parents=True, exist_ok=True)
    with Aside(tree.root, aside) as ground:
        ground.write(path, data)


def content(tree: Worktree, path: str, limit: int) -> bytes | None:
    """The bytes of a regular file of at most ``limit`` bytes; None when there is none. Raises OSError."""
    with Ground(tree.root) as ground:
        try:
            return ground.read(path, limit)
        except OSError as exc:
            if exc.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.EFBIG, errno.EACCES):
                return None
            raise


def at_base(tree: Worktree, path: str, limit: int) -> bytes | None:
    """The beginning of a file of the base, ``limit`` bytes and one more where there are more; None when it has none.
    Raises GitFailed.
    """
    size = tree.git.run("cat-file", "-s", f"{tree.base}:{path}", ok=(0, 128))
    if not size.strip().isdigit():
        return None
    if int(size) > 4 * limit:
        return b" " * (limit + 1)
    return tree.git.run("cat-file", "blob", f"{tree.base}:{path}")[: limit + 1]


def both(tree: Worktree, differences: Sequence[Difference], aside: Path) -> list[tuple[bytes | None, bytes | None]]:
    """For each path the original and what the agent had there, None for what is none, no file or larger than
    `MAX_SHOWN`.
    """
    made: list[tuple[bytes | None, bytes | None]] = []
    with Ground(aside) as ground:
        for index, one in enumerate(differences):
            before = None
            after = None
            with contextlib.suppress(GitFailed):
                before = tree.git.run("cat-file", "blob", f"{tree.base}:{one.path}")
            with contextlib.suppress(OSError):
                after = ground.read(str(index), MAX_SHOWN)
            made.append((before if before is None or len(before) <= MAX_SHOWN else None, after))
    return made

"""The repository's git directory as an agent may see it: a folder of ours with listed parts, which the fence shows in
its place.

People and tools keep much in a git directory: credentials, backups of the configuration, hooks, submodules, the stash,
records of other worktrees. None of it is there. What is: HEAD, the refs as they are when a call begins, the safe form
of the configuration, lists of ignored files and attributes, the depth of a shallow clone, and empty folders over which
the fence lays what is the session's own.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.linux import durable
from harness.workspace import shown_config
from harness.workspace.errors import DamagedWorktree
from harness.workspace.git import Git

FOLDER = "shown-repository"
STAMP = "shown-repository.stamp"
_COPIED = ("HEAD", "shallow", "info/exclude", "info/attributes")
_SHOWN = ("config", "packed-refs", "reftable", "objects", *_COPIED)
"""What is looked at to know whether the folder is in step with the repository, beside its refs."""
_HIDDEN = ("refs/stash", "refs/bisect/", "refs/rewritten/", "refs/watchfloor/", "refs/worktree/")
_MAX_COPY = 64 << 20
_WHOLE_SECONDS_NS = 2 * 10**9
_FRACTIONS_NS = 50 * 10**6
_REF = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def refresh(common: Path, admin: Path, beside: Path, places: Iterable[Path] = ()) -> Path:
    """Bring the shown folder, in ``beside`` (ours), in step with the repository and return it. Raises DamagedWorktree,
    GitFailed, OSError.

    ``places`` are folders that the fence mounts; one inside the git directory needs a folder to be mounted on.
    """
    shown = beside / FOLDER
    stamp = beside / STAMP
    began = time.time_ns()
    inner = sorted(str(place.relative_to(common)) for place in places if place.is_relative_to(common))
    newest, wanted = _state(common, admin)
    wanted += f"\n{inner}"
    if shown.is_dir() and _text(stamp) == wanted:
        return shown
    git = Git(common)
    _folders(common, admin, shown)
    for name in inner:
        (shown / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in _COPIED:
        _copy(common / name, shown / name)
    # each in one step: the folder may be mounted in a fence that runs
    durable.swap_file(shown / "config", shown_config.shown(git, common / "config"))
    _refs(git, shown)
    if settled(newest, began):
        durable.swap_file(stamp, wanted.encode("utf-8", "surrogateescape"))
    else:
        stamp.unlink(missing_ok=True)
    return shown


def settled(newest: int, began: int) -> bool:
    """Whether a change at or after ``began`` shows in the state whose newest time is ``newest``, in nanoseconds: one
    within the grain of the file system's clock would leave the same state behind.

    A file system that keeps whole seconds (FAT: every other one) shows no fraction; others keep at least the kernel's
    tick, 10 ms at most.
    """
    grain = _FRACTIONS_NS if newest % 10**9 else _WHOLE_SECONDS_NS
    return began - newest > grain


def _state(common: Path, admin: Path) -> tuple[int, str]:
    """(time of the newest change, what identifies everything that is shown).

    A ref changes by a rename in its folder.
    """
    parts = [str(common), str(admin), str(shown_config.VERSION)]
    newest = 0
    folder = os.fspath(common)
    store = f"{folder}/objects"
    for path in (*(f"{folder}/{name}" for name in _SHOWN), *_ref_folders(f"{folder}/refs")):
        try:
            info = os.lstat(path)
        except OSError:
            parts.append(f"{path}: none")
            continue
        if path == store:
            parts.append(f"{path}: {os.path.realpath(path)}")
        else:
            newest = max(newest, info.st_mtime_ns, info.st_ctime_ns)
            parts.append(f"{path}: {info.st_dev} {info.st_ino} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}")
    return newest, "\n".join(parts)


def _ref_folders(refs: str) -> Iterator[str]:
    pending = [refs]
    while pending:
        folder = pending.pop()
        yield folder
        try:
            with os.scandir(folder) as entries:
                pending += sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue


def _folders(common: Path, admin: Path, shown: Path) -> None:
    """The folders git looks for, and the places over which the fence mounts."""
    for name in ("info", "refs/heads", "refs/tags", f"worktrees/{admin.name}"):
        (shown / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    store = common / "objects"
    place = shown / "objects"
    if place.is_symlink() or (store.is_symlink() and place.exists()):
        place.unlink() if place.is_symlink() else place.rmdir()
    if store.is_symlink():
        place.symlink_to(os.path.realpath(store))
    else:
        place.mkdir(mode=0o700, exist_ok=True)


def _refs(git: Git, shown: Path) -> None:
    """All refs but the hidden ones: as one sorted file, symbolic ones each in its own."""
    packed = ["# pack-refs with: sorted \n"]
    symbolic = dict[str, str]()
    listed = git.run("for-each-ref", "--format=%(objectname)%00%(refname)%00%(symref)")
    for line in listed.decode("utf-8", "surrogateescape").split("\n"):
        oid, _, rest = line.partition("\0")
        name, _, target = rest.partition("\0")
        if not _REF.fullmatch(oid) or name.startswith(_HIDDEN):
            continue
        if target:
            symbolic[name] = target
        else:
            packed.append(f"{oid} {name}\n")
    for path in sorted((shown / "refs").rglob("*")):
        if path.is_file() and str(path.relative_to(shown)) not in symbolic:
            path.unlink()
    durable.swap_file(shown / "packed-refs", "".join(packed).encode("utf-8", "surrogateescape"))
    for name, target in symbolic.items():
        path = shown / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.swap_file(path, f"ref: {target}\n".encode("utf-8", "surrogateescape"))


def _copy(source: Path, target: Path) -> None:
    try:
        size = source.stat().st_size
        if not source.is_file() or size > _MAX_COPY:
            raise DamagedWorktree(f"{source} is no file of at most {_MAX_COPY >> 20} MiB; put it right, then try again")
        durable.swap_file(target, source.read_bytes())
    except FileNotFoundError:
        target.unlink(missing_ok=True)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""

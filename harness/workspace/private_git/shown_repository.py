"""What an agent sees of the person's repository: the parts that git needs, brought into the session's own git directory
when a call begins.

People and tools keep much in a git directory: credentials, backups of the configuration, hooks, submodules, the stash,
records of other worktrees. None of it is there. What is: the refs as they are when a call begins, without those of
other sessions, the safe form of the configuration, lists of ignored files and attributes, the depth of a shallow clone.

The agent's own refs lie among those that are shown. What it made, moved or deleted stays as it left it; everything else
follows the repository.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.domain.denied import NOTHING, Denied
from harness.linux import durable, safe_files
from harness.workspace.git import shown_config
from harness.workspace.git.errors import DamagedWorktree
from harness.workspace.git.merge_rules import OWN
from harness.workspace.git.run import Git
from harness.workspace.private_git import withheld
from harness.workspace.private_git.planting import make_way, plant

FOLDER = "shown-repository"
"""Ours, beside the private git directory: what was shown last."""
STAMP = "shown-repository.stamp"
CONFIG = "shown-config"
"""Of the session's own: the configuration of the repository, in its safe form."""
_PACKED = "packed-refs"
_COPIED = ("shallow", "info/exclude", "info/attributes")
_SHOWN = ("config", "packed-refs", "reftable", *_COPIED)
"""What is looked at to know whether the folder is in step with the repository, beside its refs."""
_HIDDEN = ("refs/stash", "refs/bisect/", "refs/rewritten/", "refs/watchfloor/", "refs/worktree/")
_BASE = "shown-refs"
"""Among the session's own: what was shown last when its refs were as they are. An undo brings both back together."""
_BRANCHES = "refs/heads/"
_REMOTES = "refs/remotes/"
_MAX_COPY = 64 << 20
_WHOLE_SECONDS_NS = 2 * 10**9
_FRACTIONS_NS = 50 * 10**6
_REF = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LINE = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?) (refs/[^\x00-\x20\x7f]+)")
_VERSION = 3


class Seen(NamedTuple):
    """Refs by name: the commits (or other objects) they name, and where symbolic ones lead."""

    plain: Mapping[str, str]
    symbolic: Mapping[str, str] = {}


def refresh(common: Path, private: Path, branch: str, denied: Denied = NOTHING) -> Path:
    """Bring the session's ``private`` git directory in step with the repository and return the folder of what is shown
    beside it. Raises DamagedWorktree, GitFailed, OSError.
    """
    shown = private.parent / FOLDER
    stamp = private.parent / STAMP
    began = time.time_ns()
    newest, wanted = _state(common, branch)
    if shown.is_dir() and (private / _PACKED).is_file() and _text(stamp) == wanted + _stamp_of(private / _BASE):
        return shown
    git = Git(common)
    (shown / "info").mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in _COPIED:
        _copy(common / name, shown / name, private, name)
    _planted(private, CONFIG, shown_config.shown(git, common / "config"))
    now = _listed(git, branch, denied)
    if denied:
        withheld.fill(common, private, now.plain.values(), denied)
    _refs(now, shown, private, branch)
    if settled(newest, began):
        durable.swap_file(stamp, f"{wanted}{_stamp_of(private / _BASE)}".encode("utf-8", "surrogateescape"))
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


def _state(common: Path, branch: str) -> tuple[int, str]:
    """(time of the newest change, what identifies everything that is shown).

    A ref changes by a rename in its folder.
    """
    parts = [str(common), branch, f"{_VERSION}.{shown_config.VERSION}"]
    newest = 0
    folder = os.fspath(common)
    for path in (*(f"{folder}/{name}" for name in _SHOWN), *_ref_folders(f"{folder}/refs")):
        try:
            info = os.lstat(path)
        except OSError:
            parts.append(f"{path}: none")
            continue
        newest = max(newest, info.st_mtime_ns, info.st_ctime_ns)
        parts.append(f"{path}: {_identity(info)}")
    return newest, "\n".join(parts)


def _identity(info: os.stat_result) -> str:
    return f"{info.st_dev} {info.st_ino} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}"


def _stamp_of(path: Path) -> str:
    try:
        return f"\n{_identity(os.lstat(path))}"
    except OSError:
        return "\nnone"


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


def visible(name: str, branch: str, denied: Denied = NOTHING) -> bool:
    """Whether a session whose own branch is ``branch`` sees a ref of the repository: not what git keeps for itself, and
    not the work of other sessions, nor a branch that its role denies.
    """
    if name.startswith(_HIDDEN) or (denied.ref(name) and name != f"{_BRANCHES}{branch}"):
        return False
    if name.startswith(_BRANCHES):
        short = name.removeprefix(_BRANCHES)
    elif name.startswith(_REMOTES):
        short = name.removeprefix(_REMOTES).partition("/")[2]
    else:
        return True
    return short == branch or not short.startswith(OWN)


def shown_refs(private: Path) -> dict[str, str]:
    """The refs that were shown last, by name."""
    return parse(_bytes(private.parent / FOLDER / _PACKED))


def parse(packed: bytes) -> dict[str, str]:
    """The refs of a packed-refs file; what is no such line is passed over."""
    found = (_LINE.fullmatch(line) for line in packed.split(b"\n"))
    return {os.fsdecode(match[2]): match[1].decode() for match in found if match is not None}


def _refs(now: Seen, shown: Path, private: Path, branch: str) -> None:
    """The agent's packed refs with those of the repository; loose ones are its own, and come first for git."""
    last = parse(_bytes(shown / _PACKED))
    before = Seen(_parsed(private, _BASE, last), _symbolic(_bytes(shown / "symbolic")))
    there = _parsed(private, _PACKED, before.plain)
    session = f"{_BRANCHES}{branch}"
    own = {name: oid for name, oid in there.items() if name != session and before.plain.get(name) != oid}
    gone = {name for name, oid in before.plain.items() if name not in there and now.plain.get(name) == oid} - {session}
    folders = {folder for name in own for folder in _above(name)}
    kept = {
        name: oid
        for name, oid in now.plain.items()
        if name not in gone and name not in folders and own.keys().isdisjoint(_above(name))
    }
    for name in (_PACKED, _BASE):
        make_way(private / name)
    if not _planted(private, _PACKED, b"# pack-refs with: sorted \n" + _packed({**kept, **own})):
        raise DamagedWorktree(f"{private / _PACKED} cannot be written; look at it and remove it, then go on")
    for name in before.symbolic.keys() - now.symbolic.keys():
        plant(private, name, None)
    for name, target in now.symbolic.items():
        _planted(private, name, f"ref: {target}\n".encode("utf-8", "surrogateescape"))
    durable.swap_file(shown / _PACKED, _packed(now.plain))
    _planted(private, _BASE, _packed(now.plain))
    lines = "".join(f"{name} {target}\n" for name, target in now.symbolic.items())
    durable.swap_file(shown / "symbolic", lines.encode("utf-8", "surrogateescape"))


def _planted(private: Path, name: str, data: bytes) -> bool:
    """Put a file there unless it is so already: a kept state of the session is not another one for it."""
    with contextlib.suppress(OSError):
        if safe_files.read_beneath(private, name, _MAX_COPY) == data:
            return True
    return plant(private, name, data)


def _parsed(private: Path, name: str, otherwise: Mapping[str, str]) -> dict[str, str]:
    """The refs of a file of the agent's git directory; ``otherwise`` when it has none, or spoiled it."""
    try:
        return parse(safe_files.read_beneath(private, name, _MAX_COPY))
    except OSError:
        return dict(otherwise)


def _above(name: str) -> list[str]:
    """The folders of a ref, which can be no refs beside it."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(3, len(parts))]


def _listed(git: Git, branch: str, denied: Denied) -> Seen:
    plain = dict[str, str]()
    symbolic = dict[str, str]()
    listed = git.run("for-each-ref", "--format=%(objectname)%00%(refname)%00%(symref)")
    for line in listed.decode("utf-8", "surrogateescape").split("\n"):
        oid, _, rest = line.partition("\0")
        name, _, target = rest.partition("\0")
        if not _REF.fullmatch(oid) or not visible(name, branch, denied):
            continue
        if not target:
            plain[name] = oid
        elif visible(target, branch, denied):
            symbolic[name] = target
    return Seen(plain, symbolic)


def _packed(refs: Mapping[str, str]) -> bytes:
    lines = sorted((os.fsencode(name), oid.encode()) for name, oid in refs.items())
    return b"".join(oid + b" " + name + b"\n" for name, oid in lines)


def _symbolic(text: bytes) -> dict[str, str]:
    pairs = (line.partition(" ") for line in text.decode("utf-8", "surrogateescape").split("\n") if line)
    return {name: target for name, _, target in pairs}


def _copy(source: Path, kept: Path, private: Path, name: str) -> None:
    """Bring a list along when it changed, so that what an agent made of its own stays until then."""
    try:
        size = source.stat().st_size
        if not source.is_file() or size > _MAX_COPY:
            raise DamagedWorktree(f"{source} is no file of at most {_MAX_COPY >> 20} MiB; put it right, then try again")
        data = source.read_bytes()
        if not kept.is_file() or kept.read_bytes() != data:
            plant(private, name, data)
            durable.swap_file(kept, data)
    except FileNotFoundError:
        if kept.is_file():
            plant(private, name, None)
            kept.unlink()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _text(path: Path) -> str:
    return _bytes(path).decode("utf-8", "surrogateescape")

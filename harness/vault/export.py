"""A kept state as a stream for ``git fast-import``: what a commit of the worktree's files takes, made of what the vault
holds, so that nobody walks the worktree a second time. Pure but for `write`; standard library only.

A commit holds regular files (with their executable bit) and links. It does not hold what git takes into none (``.git``
of a nested repository, pipes, empty folders), what the vault left out, nor what tools fill by themselves
(`entries.is_work`): to go back to a state exactly is the vault's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.executor.git_names import refused_by_git
from harness.vault import entries
from harness.vault.entries import LEFT_OUT, Entry, State

EXPORT = "export.stream"
"""Where a stream lies, in the session's folder."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What the caller wants around the changes: the lines before them, and the one that names the tree they are made
    to when they begin from the state ``since``; otherwise everything is named and the tree begins empty.
    """

    head: bytes
    ground: bytes
    since: str


@dataclass(frozen=True, slots=True)
class Exported:
    """``names`` changed; ``left_out`` files should be in the commit and are not; ``whole`` = from nothing."""

    names: int
    left_out: int
    whole: bool


def write(out: Path, frame: Frame, old: State | None, new: State, content: Callable[[bytes], bytes]) -> Exported:
    """Write the stream that turns ``old`` (None = nothing) into ``new``. Raises OSError, and what ``content`` does."""
    names = 0
    with open(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(frame.head)
        file.write(b"deleteall\n" if old is None else frame.ground)
        for piece in changes(old or {}, new, content):
            file.write(piece)
            names += 1
        file.write(b"\ndone\n")
    return Exported(names, sum(1 for path, value in new.items() if _lacks(path, value)), old is None)


def changes(old: State, new: State, content: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """One command for each name that differs: what goes first, since a file may stand where a folder was."""
    for path in sorted(old.keys() | new.keys()):
        if _takes(path, old.get(path)) and not _takes(path, new.get(path)):
            yield b"D %s\n" % quoted(_name(path))
    for path in sorted(new):
        value = new[path]
        if not _takes(path, value) or (_takes(path, before := old.get(path)) and _same(before, value)):
            continue
        entry = Entry.of(value)
        data = content(entry.digest)
        yield b"M %s inline %s\ndata %d\n%s\n" % (_mode(entry), quoted(_name(path)), len(data), data)


def quoted(path: bytes) -> bytes:
    """A path as ``git fast-import`` reads any."""
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def _name(path: bytes) -> bytes:
    return path.partition(b"/")[2]


def _mode(entry: Entry) -> bytes:
    if stat.S_ISLNK(entry.mode):
        return b"120000"
    return b"100755" if entry.mode & stat.S_IXUSR else b"100644"


def _same(before: bytes | None, value: bytes) -> bool:
    if before is None:
        return False
    a = Entry.of(before)
    b = Entry.of(value)
    return a.digest == b.digest and _mode(a) == _mode(b)


def _wanted(path: bytes, value: bytes | None) -> bool:
    """True for a file or link of the worktree that git could take and nobody's tool made by itself."""
    if value is None or not path.startswith(b"w/") or not entries.is_work(path):
        return False
    kind = Entry.of(value).mode
    if not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)):
        return False
    parts = os.fsdecode(_name(path)).split("/")
    if stat.S_ISLNK(kind) and parts[-1].lower() == ".gitmodules":
        return False
    return not any(refused_by_git(part) for part in parts if part)


def _takes(path: bytes, value: bytes | None) -> bool:
    return _wanted(path, value) and value is not None and Entry.of(value).digest != LEFT_OUT


def _lacks(path: bytes, value: bytes) -> bool:
    return _wanted(path, value) and Entry.of(value).digest == LEFT_OUT

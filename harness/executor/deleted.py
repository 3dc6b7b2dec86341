"""What lies at a name that is to be deleted, as the kernel finds it. Standard library only.

Nothing is opened and no link is followed but those on the way to the name.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass

_MOST_ENTRIES = 5_000


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a folder: names relative to it. ``more``: there is more than was looked at; ``hidden``: part of it
    cannot be read.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]
    more: bool = False
    hidden: bool = False


def real(path: str) -> str:
    """Where a name really lies: links on the way to it are resolved, ``..`` after them, the last name is not."""
    path = path.rstrip("/") or "/"
    folder, name = os.path.split(path)
    return os.path.realpath(path) if name in ("", ".", "..") else os.path.join(os.path.realpath(folder), name)


def state(path: str) -> str:
    """A text that differs when something else would be deleted: another thing, in another place, or a folder with other
    names in it.
    """
    try:
        where = real(path)
        seen = os.lstat(where)
    except (OSError, ValueError):
        return "nothing"
    what = f"{seen.st_dev}:{seen.st_ino} {stat.S_IFMT(seen.st_mode):o}"
    if stat.S_ISREG(seen.st_mode):
        what += f" {seen.st_size} bytes, changed {seen.st_mtime_ns}"
    elif stat.S_ISDIR(seen.st_mode):
        held = contents(where)
        listed = "\0".join((*sorted(held.files), "/", *sorted(held.folders))).encode("utf-8", "surrogateescape")
        what += f" {held.more} {held.hidden} {'' if held.more else hashlib.sha256(listed).hexdigest()}"
    place = hashlib.sha256(where.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{what} at {place}"


def contents(path: str) -> Contents:
    """All files and folders below a folder, up to 5,000 of them, as far as it can be read."""
    files: list[str] = []
    folders: list[str] = []
    pending = [path]
    hidden = False
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if len(files) + len(folders) == _MOST_ENTRIES:
                        return _contents(path, files, folders, True, hidden)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        pending.append(entry.path)
                    else:
                        files.append(entry.path)
        except OSError:
            hidden = True
    return _contents(path, files, folders, False, hidden)


def _contents(path: str, files: list[str], folders: list[str], more: bool, hidden: bool) -> Contents:
    inner = len(path.rstrip("/")) + 1
    return Contents(tuple(f[inner:] for f in files), tuple(f[inner:] for f in folders), more, hidden)

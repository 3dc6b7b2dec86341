"""The files of a commit, as git lists them. A commit never changes, so the newest listings are kept: what decides is
compared with the same one before and after every check.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from harness.workspace.git.run import Git

MOST_KEPT = 40_000
"""Files in all listings that are kept together, about 15 MB."""


class Entry(NamedTuple):
    """One file of a commit."""

    mode: str
    oid: str


_kept: OrderedDict[tuple[Path, str], Mapping[str, Entry]] = OrderedDict()
_lock = threading.Lock()


def of(common: Path, commit: str) -> Mapping[str, Entry]:
    """Every file of the commit by its path; ``commit`` is an id in full. Raises GitFailed."""
    key = (common, commit)
    with _lock:
        if (known := _kept.get(key)) is not None:
            _kept.move_to_end(key)
            return known
    found = _listed(Git(common), commit)
    with _lock:
        _kept[key] = found
        while sum(map(len, _kept.values())) > MOST_KEPT:
            _kept.popitem(last=False)
    return found


def _listed(git: Git, commit: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for line in git.names("ls-tree", "-r", "-z", "--full-tree", commit):
        about, _, path = line.partition("\t")
        mode, _, oid = about.split(" ")
        found[path] = Entry(mode, oid)
    return found


def blob_id(content: bytes, length: int) -> str:
    """What git calls this content in a repository whose ids have ``length`` digits."""
    made = hashlib.sha1(usedforsecurity=False) if length == 40 else hashlib.sha256()
    made.update(b"blob %d\0" % len(content) + content)
    return made.hexdigest()

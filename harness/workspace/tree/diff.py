"""What a session changed: its files, untracked ones too, and the patch against its base.

All text that comes back is untrusted.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace

from harness.workspace.git.untrusted_dir import Ground
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.scan import View, look, tip

MAX_PATCH = 2 * 1024 * 1024
"""Bytes of patch text that `diff` returns at most."""
_BINARY_PROBE = 8000
_UNPLAIN = re.compile(rb'[\x00-\x1f\x7f"\\]')
_COMMON = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules=none",
    "--submodule=short",
    "--find-renames",
)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file against the base.

    ``status``: added, modified, deleted, renamed, type, untracked. Counts are None for binary files.
    """

    path: str
    status: str
    added: int | None
    removed: int | None


@dataclass(frozen=True, slots=True)
class Diff:
    """All changed files, and the patch cut at ``MAX_PATCH`` bytes (``truncated`` says so); ``head`` is the commit that
    the work stood on.
    """

    files: tuple[FileChange, ...]
    patch: str
    truncated: bool
    head: str

    @property
    def seen(self) -> str:
        """What somebody who reads it has seen, as one hash: the same for the same work alone."""
        told = json.dumps([self.head, [astuple(file) for file in self.files], self.patch])
        return hashlib.sha256(told.encode("ascii")).hexdigest()

    @property
    def extent(self) -> Extent:
        """How much that is."""
        added = sum(file.added or 0 for file in self.files)
        return Extent(len(self.files), added, sum(file.removed or 0 for file in self.files))


@dataclass(frozen=True, slots=True)
class Extent:
    """How much was changed against the base; lines of binary and of too large files are not among them."""

    files: int
    added: int
    removed: int


_STATUS = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "added", "T": "type", "U": "modified"}


def extent(tree: Worktree) -> Extent:
    """The size of what `diff` shows, without making its patch. Untracked files are read up to ``MAX_PATCH`` in all."""
    with look(tree, tip(tree)) as view:
        seen = view.walk()
        uncompared = view.changes(seen).uncompared
        back = view.brought_back(seen, tree.base)
        changes = [change for change in _changed(view, tree.base) if change.path not in uncompared]
        room = MAX_PATCH
        for name in sorted({*seen.untracked, *seen.nested} - back):
            change, patch = _new_file(view.ground, name, room)
            changes.append(change)
            room -= len(patch or b"")
            room = max(room, 0)
    added = sum(change.added or 0 for change in changes)
    removed = sum(change.removed or 0 for change in changes)
    return Extent(len(changes) + len(uncompared), added, removed)


def _changed(view: View, base: str) -> list[FileChange]:
    """What git follows and sees as changed."""
    args = (*_COMMON, "--raw", "--numstat", "-z", "--end-of-options", base, "--")
    return _tracked(view.scratch.git.run("diff-index", "--cached", *args))


def diff(tree: Worktree, limit: int = MAX_PATCH) -> Diff:
    """Committed, uncommitted and untracked work of the session against its base."""
    head = tip(tree)
    with look(tree, head) as view:
        seen = view.walk()
        uncompared = view.changes(seen).uncompared
        back = view.brought_back(seen, tree.base)
        git = view.scratch.git
        files = _changed(view, tree.base)
        _, raw = git.call(
            "diff-index", "--cached", *_COMMON, "--patch", "--end-of-options", tree.base, "--", limit=limit + 1
        )
        pieces = [raw[:limit]]
        size = min(len(raw), limit)
        truncated = len(raw) > limit
        for name in sorted(uncompared):
            files = [*(f for f in files if f.path != name), FileChange(name, "modified", None, None)]
            pieces.append(b"diff --git %s %s\nToo large to compare\n" % (spelled("a/", name), spelled("b/", name)))
        for name in sorted({*seen.untracked, *seen.nested} - back):
            change, patch = _new_file(view.ground, name, max(limit - size, 0))
            files.append(change)
            truncated = truncated or patch is None
            if patch:
                pieces.append(patch)
                size += len(patch)
    text = b"".join(pieces).decode("utf-8", "replace")
    named = (replace(f, path=os.fsencode(f.path).decode("utf-8", "replace")) for f in files)  # as the patch spells it
    return Diff(tuple(sorted(named, key=lambda f: f.path)), text, truncated, head)


def _tracked(out: bytes) -> list[FileChange]:
    states: dict[str, str] = {}
    counts: dict[str, tuple[int | None, int | None]] = {}
    fields: Iterator[str] = iter(out.decode("utf-8", "surrogateescape").split("\0"))
    for text in fields:
        if text.startswith(":"):
            code = text.rsplit(" ", 1)[-1][:1]
            path = next(fields)
            if code in "RC":  # the old name comes first
                path = next(fields)
            states[path] = _STATUS.get(code, "modified")
        elif text:
            added, removed, path = text.split("\t", 2)
            if not path:
                next(fields)
                path = next(fields)
            counts[path] = (None, None) if added == "-" else (int(added), int(removed))
    return [FileChange(p, s, *counts.get(p, (None, None))) for p, s in states.items()]


def _new_file(ground: Ground, name: str, room: int) -> tuple[FileChange, bytes | None]:
    """The change and the patch of an untracked file; None as patch = left out for size.

    Links and special files are named, not read.
    """
    head = b"diff --git %s %s\nnew file\n" % (spelled("a/", name), spelled("b/", name))
    try:
        data = ground.read(name, room)
    except OSError as exc:
        return FileChange(name, "untracked", None, None), None if exc.errno == errno.EFBIG else head
    if b"\0" in data[:_BINARY_PROBE]:
        return FileChange(name, "untracked", None, None), head + b"Binary file, %d bytes\n" % len(data)
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    count = len(lines)
    body = b"".join(b"+" + line + b"\n" for line in lines)
    if data and not data.endswith(b"\n"):
        body += b"\\ No newline at end of file\n"
    hunk = b"--- /dev/null\n+++ %s\n@@ -0,0 +1,%d @@\n" % (spelled("b/", name), count) if count else b""
    return FileChange(name, "untracked", count, 0), head + hunk + body


def spelled(side: str, name: str) -> bytes:
    """A name as git spells it in a patch: one that could end its line, and forge those below, stands in quotes."""
    raw = os.fsencode(side + name)
    if not _UNPLAIN.search(raw):
        return raw
    return b'"' + _UNPLAIN.sub(lambda found: b"\\%03o" % ord(found[0]), raw) + b'"'

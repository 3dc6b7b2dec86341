"""What a role denies is kept from a session: its files from the worktree, and from the objects that the sandbox shows.
Blocking.

The objects are a store of the session's own: all that its refs reach but the contents of denied paths. It grows with
what the refs come to reach.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from harness.domain.denied import Denied
from harness.linux import durable
from harness.workspace.git.discard import discard
from harness.workspace.git.run import Git
from harness.workspace.git.scratch import scratch

FOLDER = "seen-objects"
"""Beside the private git directory."""
_REACHED = "reached"


def store(private: Path) -> Path:
    """Where the objects lie that the session may read."""
    return private.parent / FOLDER


def fill(common: Path, private: Path, tips: Iterable[str], denied: Denied) -> None:
    """See that the store has all that these objects of the repository reach, without what is denied. Raises GitFailed,
    OSError.
    """
    packs = store(private) / "pack"
    packs.mkdir(mode=0o700, parents=True, exist_ok=True)
    reached = store(private) / _REACHED
    before = reached.read_text("ascii").split() if reached.is_file() else []
    new = sorted({*tips} - {*before})
    if not new:
        return
    with scratch(common, private.parent) as made:
        spec = made.git.run("hash-object", "-w", "--stdin", stdin=os.fsencode(denied.sparse())).decode().strip()
        asked = "".join(f"{tip}\n" for tip in (*new, *(f"^{tip}" for tip in before)))
        options = ("--objects", "--no-object-names", "--missing=allow-any", "--ignore-missing", "--stdin")
        listed = made.git.run("rev-list", *options, f"--filter=sparse:oid={spec}", stdin=asked.encode("ascii"))
        if listed:
            at = made.tree.parent / "pack"
            name = made.git.run("pack-objects", "--quiet", "--window=0", str(at), stdin=listed).decode().strip()
            (packs / f"pack-{name}.promisor").touch()
            for ending in ("rev", "pack", "idx"):  # git looks for a pack by its index
                if (part := Path(f"{at}-{name}.{ending}")).exists():
                    os.replace(part, packs / f"pack-{name}.{ending}")
    durable.swap_file(reached, "".join(f"{tip}\n" for tip in (*before, *new)).encode("ascii"))


def flag(admin: Path, denied: Denied) -> None:
    """Have the index of the worktree's record say that denied files are left out on purpose. Raises GitFailed."""
    if not denied.paths:
        return
    git = Git(admin)
    names = [name for name in git.names("ls-files", "--cached", "-z") if denied.path(name)]
    if names:
        given = b"".join(os.fsencode(name) + b"\0" for name in names)
        git.run("update-index", "-z", "--skip-worktree", "--stdin", stdin=given)


def take_away(root: Path, denied: Denied) -> None:
    """Delete what is denied from a worktree in which nobody worked yet. Raises OSError."""
    if not denied.paths:
        return
    for folder, folders, files in os.walk(root):
        inside = os.path.relpath(folder, root)
        for name in (*folders, *files):
            path = os.path.normpath(os.path.join(inside, name))
            if path == ".git" or not denied.path(path):
                continue
            if name in folders:
                folders.remove(name)
            if os.path.isdir(root / path) and not os.path.islink(root / path):
                discard(root / path)
            else:
                os.unlink(root / path)

"""Taking the objects that an agent wrote into a repository of the person's. Blocking.

An agent's store is hostile: only regular files with an object's name are read, through hard links in a clean store, and
everything is hashed and checked anew on its way (``index-pack --strict``).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.linux import safe_files
from harness.workspace.git.errors import GitFailed, PublishFailed
from harness.workspace.git.run import Git
from harness.workspace.git.scratch import quoted

MAX_OBJECT = 8 << 30
"""Bytes that one object file or pack of an agent may have to be published."""
_LOOSE = re.compile(r"[0-9a-f]{38}(?:[0-9a-f]{24})?")
_PACK = re.compile(r"pack-[0-9a-f]+\.(pack|idx)")
_SAFE = (("core.commitGraph", "false"), ("core.multiPackIndex", "false"))
_KEEP = "watchfloor: publishing"
_TRIES = 8


class Source:
    """An agent's ``objects``, read beside the repository's own ``store``. ``folder`` is an empty one of ours that must
    stand as long. Raises PublishFailed for a file of a size that no work has: one without content can claim any.
    """

    def __init__(self, target: Git, objects: Path, store: Path, folder: Path) -> None:
        clean = folder / "objects"
        (clean / "pack").mkdir(parents=True)
        self._target = target
        self._loose = _collect(objects, clean)
        self.git = Git(target.git_dir, None, (*target.extra, *_SAFE)).with_env(
            GIT_OBJECT_DIRECTORY=str(clean),
            GIT_ALTERNATE_OBJECT_DIRECTORIES=quoted(store),
            GIT_INDEX_FILE=str(folder / "index"),
        )
        """A runner on the repository that also finds the agent's objects."""

    def bring(self, commit: str, branch: str) -> list[Path]:
        """Copy what ``commit`` needs into the repository, as one pack that is marked to be kept, so that no ``gc``
        takes it before a ref holds it: then `let_go`. The agent's files whose objects are there now. Raises GitFailed.
        """
        wanted = self.git.run("rev-list", "--objects", "--no-object-names", commit, "--not", "--all")
        packed = self.git.run("pack-objects", "--stdout", "--quiet", stdin=wanted) if wanted else b""
        for left in reversed(range(_TRIES)):
            try:
                if packed:
                    self._target.run("index-pack", "--stdin", "--strict", f"--keep={_KEEP} {branch}", stdin=packed)
                self._target.run("rev-list", "--objects", "--quiet", commit, "--not", "--all")
                break
            except GitFailed:  # a gc with --prune=now may take the half-written pack
                if not left:
                    raise
        published = set(wanted.decode().split())
        return [path for path in self._loose if path.parent.name + path.name in published]


def let_go(store: Path, branch: str) -> None:
    """Unmark the packs that a session marked, those of an earlier, interrupted publish too: a ref holds them now."""
    mark = f"{_KEEP} {branch}"
    for file in (store / "pack").glob("pack-*.keep"):
        try:
            if safe_files.read(file).decode("utf-8", "replace").strip() == mark:
                file.unlink()
        except (FileNotFoundError, safe_files.Unreadable):
            continue


def _collect(objects: Path, into: Path) -> list[Path]:
    """Hard-link loose objects and packs into a clean store; the loose ones."""
    loose: list[Path] = []
    for folder in os.scandir(objects):
        if not folder.is_dir(follow_symlinks=False):
            continue
        if folder.name == "pack":
            wanted = _PACK
        elif re.fullmatch(r"[0-9a-f]{2}", folder.name):
            wanted = _LOOSE
        else:
            continue
        for entry in os.scandir(folder.path):
            if wanted.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                if (size := entry.stat(follow_symlinks=False).st_size) > MAX_OBJECT:
                    raise PublishFailed(
                        f"the agent's object file {folder.name}/{entry.name} has {size} bytes, over the limit of"
                        f" {MAX_OBJECT}"
                    )
                target = into / folder.name
                target.mkdir(exist_ok=True)
                os.link(entry.path, target / entry.name, follow_symlinks=False)
                if wanted is _LOOSE:
                    loose.append(Path(entry.path))
    return loose

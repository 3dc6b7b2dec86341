"""A git directory and a work tree of our own, for every git that has to do with what an agent wrote.

Git is never let into the agent's worktree: it would enter nested repositories and open whatever lies there under a name
it knows. It sees a folder of ours with copies of single files, a configuration of ours, no hooks, and the repository's
objects.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.linux import safe_files
from harness.workspace.git.run import Git
from harness.workspace.git.untrusted_dir import Ground

PREFIX = "scratch-"
MAX_RULES = 1 << 20
"""Bytes of a ``.gitignore`` or ``.gitattributes`` file that count; a larger one has no say."""
_PASSED_ON = "autocrlf|eol|filemode|symlinks|ignorecase|excludesfile|attributesfile|bigfilethreshold|sharedrepository"
_KIND = "extensions.objectformat"
_CHUNK = 1 << 20


class Scratch:
    """Our git directory, our work tree ``tree``, and the runner `git` on both, whose new objects stay in a store of its
    own.
    """

    def __init__(self, common: Path, made: Path, *more: Path) -> None:
        self.tree = made / "tree"
        self._git_dir = made / "git"
        self._common = common
        self.store = real_objects(common)
        self._more = more
        self.tree.mkdir(mode=0o700)

    @functools.cached_property
    def git(self) -> Git:
        """Runs on our work tree, with those settings of the user's repository that change how files compare and name no
        program.
        """
        git_dir = self._git_dir
        user = Git(self._common)
        kind, settings = _settings(user)
        lay_out(git_dir, kind)
        for known in ("shallow", "info/exclude", "info/attributes"):
            if (self._common / known).is_file():
                shutil.copyfile(self._common / known, git_dir / known)
        extra = (*settings, ("core.commitGraph", "false"), ("core.multiPackIndex", "false"))
        borrowed = ":".join(map(quoted, (self.store, *self._more)))
        return Git(git_dir, self.tree, extra).with_env(GIT_ALTERNATE_OBJECT_DIRECTORIES=borrowed)

    @property
    def storing(self) -> Git:
        """The same, but what it makes goes into the repository's own object store."""
        return self.git.with_env(GIT_OBJECT_DIRECTORY=str(self.store), GIT_ALTERNATE_OBJECT_DIRECTORIES="")

    def copy(self, ground: Ground, path: str, limit: int) -> bool:
        """Copy a regular file (with its executable bit) or a link into our work tree; False when it is gone, no file,
        or over ``limit`` bytes.
        """
        target = self.tree / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(ground.file(path), "rb") as source, open(target, "wb") as out:
                info = os.fstat(source.fileno())
                left = limit if info.st_size <= limit else -1
                while left >= 0 and (chunk := source.read(min(_CHUNK, left + 1))):
                    left -= len(chunk)
                    out.write(chunk)
            target.chmod(0o700 if info.st_mode & stat.S_IXUSR else 0o600)
        except OSError:
            return False
        return left >= 0

    def copy_link(self, ground: Ground, path: str) -> bool:
        """Make the same symbolic link in our work tree; False when it is gone."""
        target = self.tree / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.symlink(ground.link(path), os.fsencode(target))
        except OSError:
            return False
        return True

    def take(self, paths: Iterable[str]) -> None:
        """Bring the files of our work tree into our index, and the absence of those that are not there.

        Raises GitFailed.
        """
        if asked := b"".join(os.fsencode(path) + b"\0" for path in paths):
            self.git.run("update-index", "-z", "--add", "--replace", "--remove", "--stdin", stdin=asked)

    def ignored(self, paths: Iterable[str]) -> set[str]:
        """Those of the paths (folders end with ``/``) that the copied ``.gitignore`` files and the repository's own
        list exclude.
        """
        # a name that begins with a colon is a name
        asked = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
        if not asked:
            return set()
        _, out = self.git.call("check-ignore", "-z", "--stdin", "--no-index", stdin=asked, ok=(0, 1))
        return {os.fsdecode(path.removeprefix(b"./")) for path in out.split(b"\0") if path}


@contextmanager
def scratch(common: Path, folder: Path, *more: Path) -> Iterator[Scratch]:
    """A fresh scratch repository below ``folder`` (ours), borrowing the objects of the repository ``common`` and of
    ``more`` stores; it is gone afterwards.
    """
    for left in folder.glob(f"{PREFIX}*"):
        if not os.path.exists(f"/proc/{left.name.split('-')[1]}"):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", dir=folder, ignore_cleanup_errors=True) as name:
        yield Scratch(common, Path(name), *more)


def real_objects(common: Path) -> Path:
    """The repository's object store, links resolved."""
    return Path(os.path.realpath(common / "objects"))


def alternates(common: Path) -> list[Path]:
    """Object stores the repository itself borrows from, transitively, real paths in git's order."""
    found: list[Path] = []
    pending = [real_objects(common)]
    while pending and len(found) < 64:
        store = pending.pop(0)
        try:
            lines = safe_files.read(store / "info" / "alternates").split(b"\n")
        except OSError:
            continue
        for line in lines:
            if not line or line.startswith(b"#"):
                continue
            other = Path(os.path.realpath(os.path.join(store, os.fsdecode(line))))
            if other.is_dir() and other not in found:
                found.append(other)
                pending.append(other)
    return found


def lay_out(git_dir: Path, kind: str, *, bare: bool = False) -> None:
    """Make an empty git directory, with a configuration of ours; its HEAD, which makes it one, comes last. ``kind`` is
    that of its object ids.
    """
    for name in ("", "objects/info", "objects/pack", "refs", "info"):
        (git_dir / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    version = 0 if kind == "sha1" else 1
    text = f"[core]\n\trepositoryformatversion = {version}\n\tbare = {str(bare).lower()}\n"
    if version:
        text += f"[extensions]\n\tobjectFormat = {kind}\n"
    (git_dir / "config").write_text(text, "ascii")
    (git_dir / "HEAD").write_text("ref: refs/heads/none\n", "ascii")


def _settings(user: Git) -> tuple[str, list[tuple[str, str]]]:
    """The repository's kind of object ids, and its settings that change how files compare and name no program."""
    kind = "sha1"
    found = list[tuple[str, str]]()
    for name, value in user.configured():
        if name == _KIND:
            kind = "sha256" if value == "sha256" else "sha1"
        elif re.fullmatch(f"core\\.({_PASSED_ON})", name):
            found.append((name, value or "true"))
    return kind, found


def quoted(path: Path) -> str:
    """A folder as ``GIT_ALTERNATE_OBJECT_DIRECTORIES`` takes it."""
    text = str(path)
    if ":" not in text and not text.startswith('"'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

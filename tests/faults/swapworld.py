"""A worktree that commands rest on: programs, what they include, links, odd names, ignored, large and deep files."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

LARGE = (64 << 20) + 1
"""Bytes: one more than a file may have whose content is kept."""
DEEP = "/".join(["deep" * 50] * 24)
"""A path longer than one system call takes."""
ODD = b"odd \xff\xfe\n'\"$(x) \xe2\x80\xae -n"
PROOF = '"${PROOF:?}"'

FILES: dict[bytes, str] = {
    b"Makefile": f"include rules.mk\nall:\n\t@. ./lib.sh; cat @data > /dev/null; touch {PROOF.replace('$', '$$')}\n",
    b"rules.mk": "WORD = fine\n",
    b"main.py": "import os, helper\nopen(os.environ['PROOF'], 'w').write(helper.WORD)\n",
    b"helper.py": "from pack.inner import WORD\n",
    b"pack/inner.py": "WORD = 'fine'\n",
    b"lib.sh": "WORD=fine\n",
    b"data": "line\n",
    b"run": f"#!/bin/sh\n. ./lib.sh\ntouch {PROOF}\n",
    b"bin/step": f"#!/bin/sh\ntouch {PROOF}\n",
    b"tool.toml": "[tool]\n",
    b".gitignore": "ignored/\n",
    b"ignored/deps/index.js": "module.exports = 1\n",
    b"place/a/script.sh": f"touch {PROOF}\n",
    b"place/b/script.sh": f"touch {PROOF} # b\n",
    b"-rf": "dash\n",
    b"n" * 255: "long\n",
    ODD: "odd\n",
    b"pytest.ini": "[pytest]\n",
}
PROGRAMS = (b"run", b"bin/step")
LINKS = {b"current": b"lib.sh", b"tool": b"run", b"shelf": b"place/a"}


class World:
    """The worktree ``root`` of a session whose private git folder is ``private``; ``beside`` is a folder out of its
    reach.
    """

    def __init__(self, root: Path, private: Path, beside: Path) -> None:
        self.root = os.fsencode(root)
        self.private = private
        self.beside = os.fsencode(beside)
        self.mend()
        self.head = (private / "HEAD").read_bytes()
        self.dot_git = (root / ".git").read_bytes()

    def at(self, name: bytes) -> bytes:
        return self.root + b"/" + name

    # -- how it is shown ---------------------------------------------------------------------------

    def mend(self) -> None:
        """Make what differs from the beginning as it was; the rest keeps its age."""
        folders = {b"deep" * 50} | {name[:i] for name in FILES for i in range(len(name)) if name[i : i + 1] == b"/"}
        wanted = folders | FILES.keys() | LINKS.keys() | {b"large", b"twin", b".git"}
        for here, inner, names in os.walk(self.root, topdown=True):
            below = os.path.relpath(here, self.root)
            for name in [*inner, *names]:
                path = name if below == b"." else below + b"/" + name
                if path in wanted and stat.S_ISDIR(os.lstat(self.at(path)).st_mode) == (path in folders):
                    continue
                remove(self.at(path))
            inner[:] = [n for n in inner if n not in (b"deep" * 50, b".git") and os.path.isdir(os.path.join(here, n))]
        for folder in sorted(folders):
            os.makedirs(self.at(folder), exist_ok=True)
            _mode(self.at(folder), 0o755)
        for name, text in FILES.items():
            self._file(name, text.encode(), 0o755 if name in PROGRAMS else 0o644)
        for name, target in LINKS.items():
            if not os.path.islink(self.at(name)) or os.readlink(self.at(name)) != target:
                remove(self.at(name))
                os.symlink(target, self.at(name))
        if not os.path.exists(self.at(b"twin")) or not os.path.samefile(self.at(b"twin"), self.at(b"data")):
            remove(self.at(b"twin"))
            os.link(self.at(b"data"), self.at(b"twin"))
        if not os.path.exists(self.at(b"large")) or os.stat(self.at(b"large")).st_size != LARGE:
            remove(self.at(b"large"))
            with open(self.at(b"large"), "wb") as file:
                file.truncate(LARGE)
        self.deep(b"fine\n")

    def _file(self, name: bytes, data: bytes, mode: int) -> None:
        path = self.at(name)
        try:
            with open(path, "rb") as file:
                same = stat.S_ISREG(os.lstat(path).st_mode) and file.read(len(data) + 1) == data
        except OSError:
            same = False
        if not same:
            remove(path)
            with open(path, "wb") as file:
                file.write(data)
        _mode(path, mode)

    def mend_git(self) -> None:
        """The private git folder and the ``.git`` file as at the beginning."""
        (self.private / "HEAD").write_bytes(self.head)
        shutil.rmtree(self.private / "refs/heads/other", ignore_errors=True)
        remove(self.at(b".git"))
        with open(self.at(b".git"), "wb") as file:
            file.write(self.dot_git)

    def deep(self, data: bytes) -> bool:
        """Give the file at the end of the deep path this content; True when it had another."""
        at = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        for part in DEEP.split("/"):
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=at)
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        try:
            fd = os.open("leaf.sh", os.O_RDWR | os.O_CREAT, 0o644, dir_fd=at)
            try:
                if os.pread(fd, 4096, 0) == data:
                    return False
                os.ftruncate(fd, 0)
                os.pwrite(fd, data, 0)
                return True
            finally:
                os.close(fd)
        finally:
            os.close(at)


def remove(path: bytes) -> None:
    """Whatever is there is gone."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return


def _mode(path: bytes, mode: int) -> None:
    if stat.S_IMODE(os.stat(path).st_mode) != mode:
        os.chmod(path, mode)

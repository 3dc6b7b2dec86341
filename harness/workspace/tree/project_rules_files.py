"""A project's file of rules with what it brings in: through links inside the worktree, and by ``@path`` as Claude Code
reads it. Blocking.

All of it is text of a repository: it is found beneath one root, read within limits and shown as a quotation. What is
left out is named with the reason.
"""

from __future__ import annotations

import errno
import hashlib
import posixpath
import re
from collections.abc import Iterator
from typing import Protocol

from harness.events.conversation.project_rules_events import RulesPart, RulesRead

MOST_SHOWN = 8 * 1024
"""Bytes of one file that are shown."""
MOST_BROUGHT_IN = 16 * 1024
"""Bytes that one file of rules may bring in, over all of its imports."""
MOST_READ = 1 << 20
"""Bytes of one file that are read to name it by its hash; a larger one is left out."""
MOST_DEPTH = 5
_MOST_FILES = 20
_MOST_LEFT_OUT = 20
_MOST_PARSED = 64 * 1024
_MOST_HOPS = 16
_IMPORT = re.compile(r"(?:(?<=\s)|\A)@((?:[^\s\\]|\\ )+)")
_SANDBOX = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST = re.compile(r"\s*([-*+]|\d+[.)])\s")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", re.DOTALL)
_OUTSIDE = "outside the worktree"


class Root(Protocol):
    """Where files of rules are looked for: a worktree, or a commit. Paths are relative, without ``..``."""

    def link_at(self, path: str) -> str | None:
        """Where the link of this name leads; None for what is no link. Raises OSError for a name that is not there."""

    def read(self, path: str, limit: int) -> bytes:
        """The bytes of a regular file, no part of its path a link. Raises OSError, with EFBIG for a larger one."""


def read(root: Root, path: str) -> RulesRead:
    """One file of rules as it is now, with its imports."""
    return _Reading(root, path).done()


class _Left(Exception):
    """Why something is left out."""


class _Reading:
    def __init__(self, root: Root, path: str) -> None:
        self._root = root
        self._path = path
        self._parts: dict[str, RulesPart] = {}
        self._left_out: dict[str, str] = {}
        self._room = MOST_BROUGHT_IN

    def done(self) -> RulesRead:
        try:
            place, data = self._found(self._path)
            text = _text(data)
        except FileNotFoundError:
            return RulesRead(path=self._path)
        except _Left as exc:
            return RulesRead(path=self._path, left_out=[f"{self._path}: {exc}"])
        self._imports(text, self._path, place, (place,))
        return RulesRead(
            path=self._path,
            real=place if place != self._path else "",
            sha=hashlib.sha256(data).hexdigest(),
            bytes=len(data),
            text=_cut(data, MOST_SHOWN),
            parts=[*self._parts.values()],
            left_out=[f"{name}: {why}" for name, why in self._left_out.items()],
        )

    def _imports(self, text: str, named: str, place: str, above: tuple[str, ...]) -> None:
        for wanted in _wanted(text):
            self._bring(wanted, named, place, above)

    def _bring(self, wanted: str, named: str, place: str, above: tuple[str, ...]) -> None:
        """Take in one import; that it is asked for again is nothing new."""
        try:
            if wanted.startswith(("/", "~")):
                raise _Left(_OUTSIDE)
            target, data = self._near(wanted, {posixpath.dirname(place): None, posixpath.dirname(named): None})
            if target in above:
                raise _Left("brings itself in")
            if target in self._parts:
                return
            text = _text(data)
            if len(above) > MOST_DEPTH:
                raise _Left(f"deeper than {MOST_DEPTH} imports")
            if len(self._parts) >= _MOST_FILES:
                raise _Left(f"more than {_MOST_FILES} files are brought in")
            shown = _cut(data, min(MOST_SHOWN, self._room))
            if not shown and data:
                raise _Left(f"what is brought in has {MOST_BROUGHT_IN >> 10} KiB already")
        except FileNotFoundError:
            if posixpath.splitext(wanted)[1]:  # a name such as @types/node is none of a file
                self._leave_out(wanted, "not there")
            return
        except _Left as exc:
            self._leave_out(wanted, str(exc))
            return
        self._room -= len(shown.encode())
        self._parts[target] = RulesPart(target, hashlib.sha256(data).hexdigest(), len(data), shown, named)
        self._imports(text, target, target, (*above, target))

    def _near(self, wanted: str, folders: dict[str, None]) -> tuple[str, bytes]:
        """An import beside the file that names it, where that lies or, for one that is a link, where the link does."""
        first: OSError | None = None
        for folder in folders:
            try:
                return self._found(posixpath.join(folder, wanted))
            except FileNotFoundError as exc:
                first = first or exc
        raise first or FileNotFoundError(errno.ENOENT, "not there", wanted)

    def _found(self, path: str) -> tuple[str, bytes]:
        """(path without links, bytes). Raises FileNotFoundError, _Left."""
        try:
            place = _real(self._root, path)
            return place, self._root.read(place, MOST_READ)
        except OSError as exc:
            if exc.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
                raise FileNotFoundError(errno.ENOENT, "not there", path) from exc
            why = {
                errno.EXDEV: _OUTSIDE,
                errno.ELOOP: "a link that leads to itself",
                errno.EFBIG: f"larger than {MOST_READ >> 20} MiB",
                errno.EINVAL: "no file",
                errno.EISDIR: "no file",
            }
            raise _Left(why.get(exc.errno or 0, "cannot be read")) from exc
        except ValueError as exc:
            raise _Left("no name of a file") from exc

    def _leave_out(self, name: str, why: str) -> None:
        if len(self._left_out) < _MOST_LEFT_OUT:
            self._left_out.setdefault(name, why)


def _real(root: Root, path: str) -> str:
    """The path with every link in it followed, beneath the root. Raises OSError, with EXDEV for one that leads out."""
    done: list[str] = []
    left = path.split("/")[::-1]
    hops = 0
    while left:
        part = left.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not done:
                raise OSError(errno.EXDEV, "leads out of the folder", path)
            done.pop()
            continue
        target = root.link_at("/".join((*done, part)))
        if target is None:
            done.append(part)
            continue
        hops += 1
        if hops > _MOST_HOPS:
            raise OSError(errno.ELOOP, "has too many links", path)
        if target.startswith("/"):
            raise OSError(errno.EXDEV, "leads out of the folder", path)
        left += target.split("/")[::-1]
    if not done:
        raise OSError(errno.EISDIR, "is a folder", path)
    return "/".join(done)


def _text(data: bytes) -> str:
    """Raises _Left for what is no text."""
    if b"\0" in data:
        raise _Left("no text")
    return data[:_MOST_PARSED].decode("utf-8", "replace")


def _cut(data: bytes, most: int) -> str:
    return data[:most].decode("utf-8", "ignore" if len(data) > most else "replace")


def _wanted(text: str) -> list[str]:
    """The paths that a text imports, in its order, each once. What stands in code is none."""
    prose = (_SPAN.sub(" ` ", part) for part in re.split(r"\n\s*\n", "\n".join(_prose(text))))  # a span ends with it
    named = (match[1] for part in prose for match in _IMPORT.finditer(part))
    found = (one.replace("\\ ", " ").rstrip(".,;:!?)]}\"'*_") for one in named)
    return list(dict.fromkeys(one for one in found if one and ("/" in one or "." in one)))


def _prose(text: str) -> Iterator[str]:
    """The lines outside of fenced and indented code; a line of code is empty."""
    fence = ""
    blank = True
    in_list = False
    for line in text.splitlines():
        mark = _SANDBOX.match(line)
        if fence:
            closes = mark is not None and mark[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
            yield ""
        elif mark is not None and not ("`" in mark[1] and "`" in line[mark.end() :]):
            fence = mark[1]
            yield ""
        elif line.startswith(("    ", "\t")) and blank and not in_list:
            yield ""  # and blank stays: the next line of the code, too
            continue
        else:
            in_list = bool(_LIST.match(line)) or (in_list and (not line.strip() or line[0] in " \t"))
            yield line
        blank = not line.strip()

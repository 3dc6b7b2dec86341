"""Patterns over paths relative to the top of a repository, as `[ratchet]` has them. Pure.

``*`` and ``?`` stay within one name, ``**`` spans folders; a pattern without a slash means a name in any folder; one
that fits a folder fits all that is in it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

_FOLDER = re.compile(r"\*\*/((?:(?!\*\*)[^/])+)/\*\*")
"""A pattern that means all that is in folders of one name."""
_FOLDERS_KEPT = 8192


class _Names:
    """Patterns of single names."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._plain = frozenset(one for one in patterns if not re.search(r"[*?]", one))
        globs = [_expression(one) for one in patterns if one not in self._plain]
        self._globs = re.compile("|".join(globs), re.DOTALL) if globs else None

    def fit(self, name: str) -> bool:
        return name in self._plain or (self._globs is not None and self._globs.fullmatch(name) is not None)


class _Matcher:
    """Some patterns, made ready for many paths: what fits a folder is remembered for all that is in it."""

    def __init__(self, patterns: Iterable[str]) -> None:
        known = [pattern.removeprefix("./").strip("/") for pattern in patterns]
        folders = [found[1] for one in known if (found := _FOLDER.fullmatch(one))]
        self._names = _Names([one for one in known if "/" not in one])
        self._folders = _Names(folders)
        whole = [f"(?:{_expression(one)}(?:/.*)?)" for one in known if "/" in one and not _FOLDER.fullmatch(one)]
        self._whole = re.compile("|".join(whole), re.DOTALL) if whole else None
        self._inside = functools.lru_cache(maxsize=_FOLDERS_KEPT)(self._in_folder)

    def fits(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if self._names.fit(name) or (folder and self._inside(folder)):
            return True
        return self._whole is not None and self._whole.fullmatch(path) is not None

    def _in_folder(self, folder: str) -> bool:
        above, _, name = folder.rpartition("/")
        return self._names.fit(name) or self._folders.fit(name) or bool(above and self._inside(above))


@functools.lru_cache(maxsize=64)
def _matcher(patterns: tuple[str, ...]) -> _Matcher:
    return _Matcher(patterns)


def _expression(pattern: str) -> str:
    made: list[str] = []
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        match piece:
            case "**/":
                made.append("(?:.*/)?")
            case "**":
                made.append(".*")
            case "*":
                made.append("[^/]*")
            case "?":
                made.append("[^/]")
            case _:
                made.append(re.escape(piece))
    return "".join(made)


def fits(path: str, patterns: Iterable[str]) -> bool:
    """True when one of the patterns means this path or a folder above it."""
    known = tuple(patterns)
    return bool(known) and _matcher(known).fits(path)


def problem(pattern: str) -> str:
    """Why a pattern cannot be used, in words; empty when it can."""
    if not pattern.strip("/ "):
        return "a pattern must name something"
    if pattern.startswith("/") or ".." in pattern.split("/") or "\0" in pattern:
        return f"{pattern!r} must be a path inside the repository"
    return ""

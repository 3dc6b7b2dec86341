"""Paths and branches that a session may not read, as its roles name them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Self

import msgspec

from harness.domain import path_patterns

MOST = 100
LONGEST = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BRANCHES = "refs/heads/"
_REMOTES = "refs/remotes/"


class Denied(msgspec.Struct, frozen=True):
    """Patterns as `harness.domain.path_patterns` has them: of ``paths`` from the top of the repository, of ``branches``
    by their names without ``refs/heads/``, or without the remote's.
    """

    paths: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.paths or self.branches)

    def __or__(self, other: Self) -> Denied:
        paths = dict.fromkeys((*self.paths, *other.paths))
        return Denied(tuple(paths), tuple(dict.fromkeys((*self.branches, *other.branches))))

    def path(self, path: str) -> bool:
        """Whether this path of the repository may not be read."""
        return path_patterns.fits(path, self.paths)

    def ref(self, name: str) -> bool:
        """Whether this ref, by its full name, may not be read."""
        if name.startswith(_BRANCHES):
            return path_patterns.fits(name.removeprefix(_BRANCHES), self.branches)
        if name.startswith(_REMOTES):
            short = name.removeprefix(_REMOTES)
            return path_patterns.fits(short, self.branches) or path_patterns.fits(
                short.partition("/")[2], self.branches
            )
        return False

    def told(self) -> str:
        """In words, for the agent and for a person."""
        kinds = {"the paths": self.paths, "the branches": self.branches}
        return " and ".join(f"{kind} {', '.join(some)}" for kind, some in kinds.items() if some)

    def sparse(self) -> str:
        """The sparse checkout that leaves out these paths, as git reads it."""
        return "/*\n" + "".join(f"!{_ignored(pattern)}\n" for pattern in self.paths)


NOTHING = Denied()


def _ignored(pattern: str) -> str:
    """The same as a line of a ``.gitignore``."""
    text = re.sub(r"([\\\[\]])", r"\\\1", pattern.removeprefix("./").strip("/"))
    text = re.sub(r"( +)\Z", lambda found: "\\ " * len(found[1]), text)
    return f"/{text}" if "/" in text else text


def problem(what: str, given: Sequence[str]) -> str:
    """Why a role's list of patterns cannot be used, in words; empty when it can. ``what`` is path or branch."""
    if len(given) > MOST:
        return f"has {len(given)} patterns, over the limit of {MOST}"
    for one in given:
        if why := _bad(what, one):
            return why
    return ""


def _bad(what: str, one: str) -> str:
    text = one.removeprefix("./").strip("/")
    if why := path_patterns.problem(one):
        return why
    if len(one) > LONGEST:
        return f"a pattern has {len(one)} characters, over the limit of {LONGEST}"
    if _CONTROL.search(one):
        return f"{one!r} holds a control character"
    if one.startswith("!"):
        return f"{one!r}: nothing can be taken out again; name what is denied"
    if not text.strip("*/"):
        return f"{one!r} would deny every {what}; a role without tools reads nothing: tools = []"
    if what == "path" and ".git" in text.split("/"):
        return f"{one!r}: git's own folder is the session's own; deny the paths themselves, or a branch"
    if what == "branch" and text.startswith("refs/"):
        return f"{one!r}: give the branch's name without refs/heads/"
    return ""

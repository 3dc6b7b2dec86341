"""What is asked of the program that tells which commit a line comes from, and what it answers."""

from __future__ import annotations

import msgspec


class Taken(msgspec.Struct, frozen=True):
    """A merge took what ``commit`` has beyond ``onto``."""

    onto: str
    commit: str


class BlameOrder(msgspec.Struct, frozen=True):
    """Line ``line`` of ``path`` in the repository at ``repo``: as the checkout shows it, or on a ``branch``."""

    repo: str
    path: str
    line: int
    branch: str = ""
    merges: tuple[Taken, ...] = ()


class Blamed(msgspec.Struct, frozen=True):
    """The line's ``commit`` (empty: not committed yet) and ``text``; ``merged`` is the commit of the merge that brought
    it in, of those that were named. ``problem`` says why there is no answer.
    """

    commit: str = ""
    text: str = ""
    merged: str = ""
    problem: str = ""

"""The words of the suite: an attempt, what became of it, a family of attempts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.attack.ground import Ground


class Escape(Exception):
    """The forbidden effect happened; the text says which."""


class Skip(Exception):
    """The attempt is impossible on this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Inside:
    """Python that runs inside the sandbox with the helpers of `inside.py`; it raises OSError when it was refused.

    With ``claim`` a success inside is an escape by itself; without, only what is seen from outside counts.
    """

    name: str
    code: str
    claim: bool = True
    access: str = "sandbox"


@dataclass(frozen=True, slots=True)
class Outside:
    """An attempt of several steps, carried out by ``run``, which raises Escape or Skip."""

    name: str
    run: Callable[[Ground], None]


Attempt = Inside | Outside


@dataclass(frozen=True, slots=True)
class Family:
    """``attempts(ground, dice)`` gives the listed attempts without dice, and a handful of generated ones with dice."""

    name: str
    attempts: Callable[[Ground, random.Random | None], Iterable[Attempt]]


@dataclass(frozen=True, slots=True)
class Result:
    """``status``: refused, escaped or skipped."""

    name: str
    status: str
    detail: str = ""

"""What a request to a person says beside its action: looked up when it is asked, kept in its record, so that what is
shown later is what stood there then.

All text in it is untrusted as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

LAST_SEEN = "as last seen"
"""How `Outgoing.against` ends where a remote's other branches are as this machine last saw them: at worst, commits that
are there already are listed.
"""
KEY = "card"
"""The entry of a request's ``detail`` that holds these notes."""


class Fact(StrEnum):
    """A group of machine facts, which a person need not read again while it is as he approved it before."""

    ARGUMENTS = "arguments"
    PLACE = "place"
    DESTINATION = "destination"
    REACH = "reach"
    FOLDERS = "folders"
    WORLD = "world"
    ENVIRONMENT = "environment"
    LIMITS = "limits"


class FileCount(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file of a commit; the counts are -1 for what has no lines."""

    path: str
    added: int
    removed: int


class CommitNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """One commit; ``more`` are the files that are not listed."""

    sha: str
    subject: str
    files: list[FileCount] = []
    more: int = 0


class Outgoing(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a push brings to one ref (newest first), and what it takes away there.

    ``against`` says what the ref was compared with, ``problem`` why it could not be; ``refused``: the remote keeps what
    would be ``lost``, because nothing forces the push.
    """

    ref: str
    new: bool
    commits: list[CommitNote] = []
    more: int = 0
    lost: list[CommitNote] = []
    lost_more: int = 0
    against: str = ""
    problem: str = ""
    refused: bool = False


class Going(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a deletion outside the sandbox takes away. ``kept`` says what else has it; empty when nothing is
    known to. ``files``: of a folder, the first that are in it, by their names there. ``lacks``: what was looked through
    and has it not, or not all of it.
    """

    path: str
    what: str
    kept: str = ""
    files: list[str] = []
    lacks: str = ""


class RunFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file of the session's own worktree that a call without a sandbox runs: its lines, from its line ``first`` on,
    and how many more it has; ``problem`` says why it cannot be shown.
    """

    path: str
    lines: list[str] = []
    more: int = 0
    problem: str = ""
    first: int = 1

    @property
    def whole(self) -> bool:
        """True when all of it is shown."""
        return not self.more and not self.problem


class CardNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """``of`` names the kind of request that is compared, ``facts`` its facts as digests.

    ``unusual`` are those that no approved request had so; ``before`` counts the approved ones that equal it in all;
    ``first``: none of its kind was approved. ``going_unknown``: the words of a deletion, as written, that only its
    run turns into names. ``runs_only``: the call is known to run no file of its worktree but ``runs``.
    """

    of: str = ""
    facts: dict[str, str] = {}
    unusual: list[str] = []
    before: int = 0
    first: bool = False
    outgoing: list[Outgoing] = []
    going: list[Going] = []
    going_more: int = 0
    going_unknown: list[str] = []
    going_unknown_more: int = 0
    runs: list[RunFile] = []
    runs_only: bool = False
    goal: str = ""
    step: str = ""
    checks: int = 0
    passed: int = 0

    @property
    def routine(self) -> bool:
        """True when a request with just these facts was approved before."""
        return self.before > 0 and not self.unusual


def notes_of(detail: Mapping[str, object]) -> CardNotes | None:
    """The notes in a request's detail; None when it has none that can be read (then nothing of it is folded)."""
    try:
        return msgspec.convert(detail[KEY], CardNotes)
    except (KeyError, msgspec.ValidationError):
        return None


def in_detail(notes: CardNotes) -> dict[str, object]:
    """The entry of ``detail`` that `notes_of` reads."""
    return {KEY: msgspec.to_builtins(notes)}

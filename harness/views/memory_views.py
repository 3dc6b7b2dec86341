"""Memories as clients see them. Texts are untrusted: whoever shows them passes the display function."""

from __future__ import annotations

import msgspec


class VersionView(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a memory; ``by`` names its author in words, ``sha`` is empty for a deletion."""

    version: int
    op: str
    ts: str
    actor: str
    author: str
    by: str
    sha: str
    before: str
    text: str
    expires: str = ""
    why: str = ""


class MemoryView(msgspec.Struct, frozen=True, kw_only=True):
    """One memory; ``of`` is the session's id, or the common git folder of the repository."""

    scope: str
    of: str
    key: str
    live: bool
    newest: VersionView


class LessonView(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson that an agent wants remembered: ``pending``, ``accepted`` or ``rejected``. ``standing`` is the hash of
    what it was made on, empty for nothing.
    """

    lesson: str
    scope: str
    of: str
    key: str
    text: str
    state: str
    sightings: list[str]
    ts: str
    removes: bool
    standing: str
    why: str


class MemoriesShown(msgspec.Struct, frozen=True, kw_only=True):
    """Memories and lessons."""

    memories: list[MemoryView]
    lessons: list[LessonView]


class MemoriesFound(msgspec.Struct, frozen=True, kw_only=True):
    """Memories that match, best first."""

    memories: list[MemoryView]


class MemoryVersions(msgspec.Struct, frozen=True, kw_only=True):
    """One memory and its versions, newest first."""

    memory: MemoryView
    versions: list[VersionView]


class MemoryWritten(msgspec.Struct, frozen=True, kw_only=True):
    """What was written; empty when nothing had to change."""

    written: list[VersionView]

"""How well sessions worked and what they made, as clients see it. Names are untrusted: whoever shows them passes the
display function.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from harness.projections.score import Score


class Artifact(msgspec.Struct, frozen=True):
    """A file that a session changed. ``how``: A, M, D or T (another kind of thing); ``sha256`` of the content as
    committed, empty for a deleted file.
    """

    path: str
    how: str
    bytes: int
    sha256: str


class Artifacts(msgspec.Struct, frozen=True):
    """Files that a session changed, by name; ``count`` is how many there are in all."""

    commit: str
    count: int
    files: tuple[Artifact, ...]


class SessionScore(Score, frozen=True, kw_only=True):
    """The figures of one session; ``artifacts`` is None without a branch to look at, and unset when nobody asked."""

    sid: str
    name: str
    artifacts: Artifacts | UnsetType | None = UNSET


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one session, or of every session."""

    scores: list[SessionScore]

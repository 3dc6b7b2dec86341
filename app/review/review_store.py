"""What a person viewed and said of sessions' work, kept beyond the screen: in the app's own state, a file a session.

What is there and cannot be read counts as nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from app.review.comments import Anchor, Comment, Review
from harness.eventlog.framing import BadLine
from harness.eventlog.regular_files import opened
from harness.linux.durable import replace_file

FOLDER = "reviews"
_MOST_BYTES = 4 << 20


class _Kept(msgspec.Struct, frozen=True):
    viewed: dict[str, str]
    comments: list[tuple[Anchor, Comment]]


def load(state: Path, sid: str) -> Review:
    """What is kept of one session."""
    try:
        with opened(_file(state, sid)) as file:
            kept = msgspec.convert(json.loads(file.read(_MOST_BYTES)), _Kept)
    except (OSError, BadLine, ValueError, RecursionError):
        return Review()
    return Review(kept.viewed, dict(kept.comments))


def store(state: Path, sid: str, review: Review) -> None:
    """Keep it, whole or not at all, for its owner alone; a review without a word or a mark leaves no file. Raises
    OSError.
    """
    if not (review.viewed or review.comments):
        forget(state, sid)
        return
    (state / FOLDER).mkdir(mode=0o700, exist_ok=True)
    kept = _Kept(review.viewed, list(review.comments.items()))
    replace_file(_file(state, sid), json.dumps(msgspec.to_builtins(kept)).encode())


def forget(state: Path, sid: str) -> None:
    """Delete what is kept of one session. Raises OSError."""
    _file(state, sid).unlink(missing_ok=True)


def _file(state: Path, sid: str) -> Path:
    return state / FOLDER / f"{sid}.json"

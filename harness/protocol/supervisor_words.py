"""What a supervisor and its guardian say in their log of a start that does not come. Standard library only."""

from __future__ import annotations

from harness.protocol import locks
from harness.protocol.paths import Folders

_FATAL = "refused: "
_GIVEN_UP = "cannot serve: "
_PART = 1 << 16
"""Bytes of the log that are looked at."""


def _since(folders: Folders, offset: int | None) -> list[str]:
    """Lines from an offset on; from near the end for None."""
    try:
        with folders.supervisor_log.open("rb") as f:
            size = f.seek(0, 2)
            f.seek(max(0, size - _PART) if offset is None else offset)
            return f.read(_PART).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def refusal(folders: Folders, offset: int) -> str:
    """Why a supervisor gave up for good: it refused, or it came up twice and could not serve."""
    lines = _since(folders, offset)
    for line in reversed(lines):
        if line.startswith(_FATAL):
            return line.removeprefix(_FATAL)
    failed = [line for line in lines if line.startswith(_GIVEN_UP)]
    return (
        f"the supervisor cannot serve ({failed[-1].removeprefix(_GIVEN_UP)}); it is tried again by itself; see"
        f" {folders.supervisor_log}"
        if len(failed) > 1
        else ""
    )


def last(folders: Folders, offset: int) -> str:
    """The newest reason that a supervisor gave; empty when it gave none."""
    for line in reversed(_since(folders, offset)):
        if line.startswith((_GIVEN_UP, "supervisor: ")):
            return line.removeprefix(_GIVEN_UP).removeprefix("supervisor: ")
    return ""


def pause(folders: Folders) -> str:
    """What the guardian that lives says of the supervisor's end and of when the next one comes, and what to do who
    cannot wait; empty when it says nothing.
    """
    mark = f" guardian {locks.holder(folders.guardian_lock)}: "
    said = [line.partition(mark) for line in _since(folders, None) if mark in line]
    when, _, what = said[-1] if said else ("", "", "")
    if "it starts again in" not in what:
        return ""
    return (
        f"{what}, said at {when}; to start one now: watchfloor supervisor stop, then watchfloor supervisor start; see"
        f" {folders.supervisor_log}"
    )

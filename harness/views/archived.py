"""What stays of a removed session: its log, its payloads and a note of what it was and cost. Blocking."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.eventlog.framing import BadLine
from harness.eventlog.regular_files import opened
from harness.linux import durable

NOTE = "archived.json"
_MOST = 1 << 20
"""Bytes of a note that are read."""


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """A removed session: when (``archived``), how it had ended (``state``), the refs that hold its work (``kept``),
    what was not saved (``lost``), and why nothing more is known (``unread``).
    """

    sid: str
    name: str = ""
    goal: str = ""
    repo: str = ""
    branch: str = ""
    model: str = ""
    state: str = ""
    archived: str = ""
    spent_nano: int = 0
    reserved_nano: int = 0
    unknown_nano: int = 0
    tokens: int = 0
    requests: int = 0
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    folder: str = ""
    unread: str = ""


def write(folder: Path, note: Archived) -> None:
    """Leave the note in a session's folder, durably. Raises OSError."""
    durable.write_file(folder / NOTE, msgspec.json.encode(note))


def read(folder: Path) -> Archived:
    """The note of one archived session; its folder says which it is, whatever the note says."""
    here = Archived(sid=folder.name, folder=str(folder))
    try:
        with opened(folder / NOTE) as file:
            note = msgspec.json.decode(file.read(_MOST), type=Archived)
    except FileNotFoundError:
        return msgspec.structs.replace(here, unread="it has no note")
    except (OSError, BadLine, ValueError) as exc:
        return msgspec.structs.replace(here, unread=f"its note cannot be read: {exc}")
    return msgspec.structs.replace(note, sid=here.sid, folder=here.folder)


def listed(root: Path) -> list[Archived]:
    """All that are kept below ``root``, the latest first."""
    folders = [p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".")] if root.is_dir() else []
    return sorted(map(read, folders), key=lambda one: (one.archived, one.sid), reverse=True)


def said_of(root: Path, named: str) -> tuple[str, str] | None:
    """What is said of a session that was removed, and what can be done; None when none has that name, or several."""
    found = fitting(listed(root), named)
    if len(found) != 1:
        return None
    held = f"; its work is held by {', '.join(found[0].kept[:3])}" if found[0].kept else ""
    words = f"{found[0].name or named} was removed, so its worktree is gone{held}"
    return words, f"its log stays: watchfloor logs {found[0].sid}"


def fitting(notes: Iterable[Archived], text: str, *, whole: bool = False) -> list[Archived]:
    """By id, else by name, else (unless it has to be the ``whole`` of one) by the beginning of an id."""
    known = list(notes)
    exact = [one for one in known if one.sid == text] or [one for one in known if text and one.name == text]
    if exact or whole or not text:
        return exact
    return [one for one in known if one.sid.startswith(text)]

"""What became of an interrupted write or edit: the file itself says. Blocking."""

from __future__ import annotations

import hashlib

from harness.events import tools
from harness.events.action import Action, FileAction
from harness.hands import files, reading


def file_outcome(action: Action, given: object) -> tuple[str, str]:
    """(resolution, evidence) of an interrupted write or edit, from the file as it is now (blocking).

    Both replace files atomically.
    """
    asked = given if isinstance(given, dict) else {}
    if not isinstance(action, FileAction):
        return "unknown_told_model", "it is no file tool, so no file says what became of it"
    path = action.path
    content: bytes | None
    try:
        content = reading.read_named(action.cwd, path, files.MAX_READ)
    except (FileNotFoundError, NotADirectoryError):
        content = None
    except OSError as exc:
        return "unknown_told_model", f"{path} cannot be read: {exc.strerror}"
    if tools.writes(action.tool) is tools.Writes.WHOLE:
        done = content is not None and hashlib.sha256(content).hexdigest() == action.content_sha
        return (
            ("confirmed_done", "the file has exactly the new content")
            if done
            else ("confirmed_not_done", "the file does not have the new content")
        )
    old = str(asked.get("old", "")).encode()
    new = str(asked.get("new", "")).encode()
    if content is None or (old in content) == (new in content and bool(new)):
        return "unknown_told_model", "the file holds neither or both of the old and the new text"
    return (
        ("confirmed_not_done", "the old text is still there")
        if old in content
        else ("confirmed_done", "the new text is there and the old is gone")
    )

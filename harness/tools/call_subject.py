"""What a call is about, by its input: the file, the pattern, the question. Pure, standard library only.

The text is raw: whoever shows it passes `untrusted.to_display`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

LONGEST = 600
"""Characters of one line that are kept."""
Given = Mapping[str, object]
Subject = Callable[[Given], str]


def line(text: str) -> str:
    """The first line that says something, cut."""
    found = next((part.strip() for part in text.split("\n") if part.strip()), "")
    return found if len(found) <= LONGEST else found[:LONGEST] + " …"


def path(given: Given) -> str:
    """The file or folder, and which of the files there."""
    where = line(str(given["path"])) if given.get("path") else "."
    return f"{where} {line(str(given['glob']))}" if given.get("glob") else where


def pattern(given: Given) -> str:
    """The pattern, and where it is looked for."""
    wanted = line(str(given.get("pattern", "")))
    return f"{wanted} in {line(str(given['path']))}" if given.get("path") else wanted


def log(given: Given) -> str:
    """The session's own log, and what is looked for in it."""
    wanted = [line(str(given[name])) for name in ("grep", "type") if given.get(name)]
    return "its log" + (f" for {', '.join(wanted)}" if wanted else "")


def fields(*names: str) -> Subject:
    """Those fields that it has, one after the other."""
    return lambda given: " ".join(str(given[name]) for name in names if given.get(name))

"""Files in which whoever works writes down how it went: a judge reads none of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from harness.domain.text.patch_lines import sections
from harness.plan.files.progress_log import NAMES

_NOTES = re.compile(
    r"(?:agents?[_-]?)?(?:progress|notes?|hand[_-]?off|fix[_-]plan|scratch(?:pad)?|work[_-]?log|dev[_-]?log|journal"
    r"|status"
    r"|(?:implementation|changes|work|task|final)[_-](?:summary|report|notes)|summary|todo|done|self[_-]review)"
    r"(?:\.(?:md|txt|rst|log|json))?",
    re.IGNORECASE,
)
"""What agents call such files, in whatever case; it counts where the file is new and nobody asked for it."""


def records(changed: Iterable[tuple[str, str]], known: Collection[str], asked: str) -> list[str]:
    """Those of the changed files, each with its status, that are such a record: the progress files, what is ``known``
    to be one, and new notes that ``asked``, the goal and the criteria, do not name.
    """
    return [
        path
        for path, status in changed
        if (name := path.rpartition("/")[2]) in NAMES
        or path in known
        or (status in ("added", "untracked") and _NOTES.fullmatch(name) and name not in asked)
    ]


def without(patch: str, paths: Collection[str]) -> str:
    """The patch without what it says of these files."""
    if not paths:
        return patch
    return "".join(one.text for one in sections(patch) if one.path not in paths)

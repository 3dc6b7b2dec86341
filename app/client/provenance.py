"""The changes of a file in one session's log, for the command line and the screen. Blocking.

Texts are raw: whoever shows them passes `untrusted.to_display`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from harness.domain.text.formatting import local
from harness.eventlog.index import OffsetIndex
from harness.reports.why import Change, Fact, History


def changes(folder: Path, paths: Iterable[str], most: int) -> list[Change]:
    """The newest changes, by the first of these names that has any. ``folder`` is the session's, in the archive too.
    Raises LogError, OSError.
    """
    log = OffsetIndex(folder / "log")
    try:
        for path in paths:
            if found := list(islice(History(log, folder / "log", folder / "touched", path).changes(), most)):
                return found
    finally:
        log.close()
    return []


def that_wrote(found: Sequence[Change], text: str) -> list[Change]:
    """Those whose call wrote this text, where the log has what it wrote."""
    wanted = text.strip()
    return [one for one in found if wanted and wanted in one.wrote]


def headline(change: Change) -> str:
    """When it was, its record and what was done."""
    return f"{local(change.ts, '%Y-%m-%d %H:%M:%S')}  #{change.seq} {change.did}"


def claimed(fact: Fact) -> str:
    """The fact in one line; what the agent says is marked as such."""
    text = " ".join(fact.text.split())
    return f"the agent says: {text}" if fact.claim else text

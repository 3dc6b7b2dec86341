"""Why a file of a session, or a line of it, is as it is: the calls that made it, each with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from app.client import provenance
from app.screens.dialogs.record import WholeScreen
from harness.eventlog.framing import LogError
from harness.reports.why import Change
from widgets.base.fact_list import FactList

_SEARCHED = 500
"""Changes of the file that are looked through for the line."""
_SHOWN = 20


class WhyScreen(WholeScreen):
    """The newest change first. ``line`` is the text of a line that was added; where no call is known that wrote it, and
    without one, all calls that changed the file are shown.
    """

    def __init__(self, folder: Path, path: str, line: str = "") -> None:
        about = f"`{line.strip()}` in {path}" if line.strip() else path
        super().__init__(f"Why {about}", [("", "reading the log …")])
        self._of = folder, path, line

    def on_mount(self) -> None:
        super().on_mount()
        self.run_worker(self._read())

    async def _read(self) -> None:
        folder, path, line = self._of
        try:
            found = await asyncio.to_thread(provenance.changes, folder, [path], _SEARCHED)
        except (LogError, OSError) as exc:
            self._show([("", f"the log cannot be read: {exc}")])
            return
        wrote = provenance.that_wrote(found, line)
        facts = _facts((wrote or found)[:_SHOWN])
        if not found:
            facts = [("", "no call of this session is known to have changed it")]
        elif line.strip() and not wrote:
            facts = [("", "no call is known that wrote this line; these changed the file:"), ("", ""), *facts]
        self._show(facts)

    def _show(self, facts: Sequence[tuple[str, str]]) -> None:
        if self.is_mounted:
            self.query_one(FactList).set_facts(facts)


def _facts(found: Sequence[Change]) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    for change in found:
        facts += [("", provenance.headline(change))]
        facts += [(fact.what, f"#{fact.seq}  {provenance.claimed(fact)}") for fact in change.facts]
        facts += [("", "")]
    return facts

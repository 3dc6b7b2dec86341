"""One record of a log, or one row of a transcript, whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from harness.domain.text.display_safe import to_display
from harness.eventlog.framing import LogError
from harness.events.types import Record
from harness.protocol.client import SupervisorError, Unreachable
from harness.reports import record_detail
from harness.reports.describe import describe, detail
from widgets.base.fact_list import FactList

_MOST_BYTES = 1 << 20
ReadPayload = Callable[[str], Awaitable[bytes]]
"""Of a session, by SHA-256; from wherever it can be read."""


class WholeScreen(ModalScreen[None]):
    """Facts of any length, scrolled. The title and the facts are untrusted."""

    DEFAULT_CSS = """
    WholeScreen { align: center middle; background: $background 60%; }
    WholeScreen > Vertical {
        width: 110; max-width: 96%; height: 80%; background: $surface; border: round $border; padding: 0 1;
    }
    WholeScreen Static { height: 1; }
    WholeScreen FactList { height: 1fr; background: $surface; }
    WholeScreen:ansi { background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", show=False),
        Binding("up,k", "scroll_text(-1)", show=False),
        Binding("down,j", "scroll_text(1)", show=False),
        Binding("pageup", "scroll_text(-20)", show=False),
        Binding("pagedown,space", "scroll_text(20)", show=False),
    ]

    def __init__(self, title: str, facts: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._called = title
        self._facts = facts

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content.styled(to_display(self._called, limit=200), "bold"))
            yield FactList()
            yield Static(Content.styled("esc closes", "$text-muted"))

    def on_mount(self) -> None:
        self.query_one(FactList).set_facts(self._facts)

    def action_scroll_text(self, lines: int) -> None:
        """Scroll by so many lines."""
        self.query_one(FactList).scroll_relative(y=lines, animate=False)


def of_record(record: Record) -> WholeScreen:
    """Every field of a record."""
    facts = [
        ("when", record.ts),
        ("who", record.actor),
        ("generation", str(record.gen)),
        ("in short", describe(record).summary),
        ("", ""),
    ]
    return WholeScreen(f"{record.seq}  {record.type}", [*facts, ("record", detail(record))])


class RowScreen(WholeScreen):
    """A row of a transcript: all that its records say, what lies beside the log included."""

    def __init__(self, title: str, records: Sequence[Record], read: ReadPayload) -> None:
        super().__init__(title, record_detail.facts(records))
        self._records = records
        self._payload = read

    def on_mount(self) -> None:
        super().on_mount()
        if record_detail.payloads(self._records):
            self.run_worker(self._read())

    async def _read(self) -> None:
        stored = await _stored(self._payload, self._records)
        for facts in self.query(FactList):
            facts.set_facts(record_detail.facts(self._records, stored))


async def _stored(read: ReadPayload, records: Sequence[Record]) -> dict[str, str]:
    """The payloads of these records that can be read and are not too large to look at, by SHA-256."""
    found = {}
    for ref in record_detail.payloads(records):
        if ref.bytes <= _MOST_BYTES:
            try:
                found[ref.sha] = (await read(ref.sha)).decode("utf-8", "replace")
            except (LogError, OSError, ValueError, SupervisorError, Unreachable):
                continue
    return found

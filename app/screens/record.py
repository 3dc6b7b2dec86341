"""One record of a log, whole."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from harness.events.describe import describe, detail
from harness.events.types import Record
from harness.events.untrusted import to_display
from widgets.fact_list import Facts


class RecordScreen(ModalScreen[None]):
    """Every field of a record, scrolled."""

    DEFAULT_CSS = """
    RecordScreen { align: center middle; background: $background 60%; }
    RecordScreen > Vertical {
        width: 110; max-width: 96%; height: 80%; background: $surface; border: round $border; padding: 0 1;
    }
    RecordScreen Static { height: 1; }
    RecordScreen Facts { height: 1fr; background: $surface; }
    RecordScreen:ansi { background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", show=False),
        Binding("up,k", "scroll_text(-1)", show=False),
        Binding("down,j", "scroll_text(1)", show=False),
        Binding("pageup", "scroll_text(-20)", show=False),
        Binding("pagedown,space", "scroll_text(20)", show=False),
    ]

    def __init__(self, record: Record) -> None:
        super().__init__()
        self._record = record

    def compose(self) -> ComposeResult:
        record = self._record
        with Vertical():
            yield Static(Content.styled(f"{record.seq}  {to_display(record.type, limit=60)}", "bold"))
            yield Facts()
            yield Static(Content.styled("esc closes", "$text-muted"))

    def on_mount(self) -> None:
        record = self._record
        facts = [
            ("when", record.ts),
            ("who", record.actor),
            ("generation", str(record.gen)),
            ("in short", describe(record).summary),
            ("", ""),
        ]
        self.query_one(Facts).set_facts([*facts, ("record", detail(record))])

    def action_scroll_text(self, lines: int) -> None:
        """Scroll by so many lines."""
        self.query_one(Facts).scroll_relative(y=lines, animate=False)

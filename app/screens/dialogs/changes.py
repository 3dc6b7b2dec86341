"""All that a request would change in a file, a part at a time: what its card shows the beginning and the end of."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from app.framework.application import Host, host_of
from harness.domain.text.display_safe import to_display
from harness.protocol.client import SupervisorError, Unreachable
from harness.views.replies import Changes
from harness.views.session_views import ApprovalView
from widgets.card.approval_card import ApprovalCard
from widgets.card.card_text import CardLine, diff_lines

PART = 64 * 1024
"""Characters of one part: as much as can be wrapped without a wait."""
_TRIES = 5


def parts(lines: list[CardLine]) -> list[list[CardLine]]:
    """The lines in parts of at most about `PART` characters; a longer line is cut into pieces of that size."""
    made: list[list[CardLine]] = [[]]
    size = 0
    for line in lines:
        for at in range(0, max(len(line.text), 1), PART):
            piece = CardLine(line.text[at : at + PART], line.role)
            if made[-1] and size + len(piece.text) > PART:
                made.append([])
                size = 0
            made[-1].append(piece)
            size += len(piece.text)
    return made


class ChangesScreen(ModalScreen[None]):
    """The whole comparison of one request. Looking decides nothing."""

    DEFAULT_CSS = """
    ChangesScreen { align: center middle; background: $background 60%; }
    ChangesScreen > Vertical { width: 98%; height: 96%; background: $background; border: round $border; padding: 0 1; }
    ChangesScreen Static { height: 1; }
    ChangesScreen ApprovalCard { height: 1fr; }
    ChangesScreen:ansi { background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,c", "dismiss", show=False),
        Binding("up,k", "line(-1)", show=False),
        Binding("down,j", "line(1)", show=False),
        Binding("pageup,ctrl+u", "page(-1)", show=False),
        Binding("pagedown,ctrl+d,space", "page(1)", show=False),
        Binding("home,g", "part(-1000000)", show=False),
        Binding("end,G", "part(1000000)", show=False),
        Binding("n,right_square_bracket", "part(1)", show=False),
        Binding("p,left_square_bracket", "part(-1)", show=False),
    ]

    def __init__(self, view: ApprovalView) -> None:
        super().__init__()
        self._view = view
        self._parts: list[list[CardLine]] = [[CardLine("reading …", "dim")]]
        self._at = 0

    @property
    def host(self) -> Host:
        """The application, as screens see it."""
        return host_of(self.app)

    @property
    def card(self) -> ApprovalCard:
        """What scrolls."""
        return self.query_one(ApprovalCard)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(
                Content.styled(f"All that {to_display(self._view.session_name, limit=60)} would change", "bold")
            )
            yield ApprovalCard()
            yield Static(id="where")

    def on_mount(self) -> None:
        self._show()
        self.host.run_beside(self._read())

    async def _read(self) -> None:
        try:
            text = await self._whole()
        except (SupervisorError, Unreachable) as exc:
            self._parts = [[CardLine(to_display(str(exc)), "warn")]]
        else:
            self._parts = parts(diff_lines(text))
        if self.is_attached and self.app.is_running:
            self._show()

    async def _whole(self) -> str:
        """All of it; a file that changes meanwhile is read again from its beginning.

        Raises SupervisorError, Unreachable.
        """
        for _ in range(_TRIES):
            text = ""
            digest = ""
            while True:
                piece = await self.host.feed.reply(
                    Changes, "changes", approval_id=self._view.approval_id, offset=len(text)
                )
                if digest not in ("", piece.sha256):
                    break
                text = text + piece.text
                digest = piece.sha256
                if len(text) >= piece.characters or not piece.text:
                    return text
        raise Unreachable("the file keeps changing while it is read; close this and try again")

    def _show(self) -> None:
        self.card.set_lines(self._parts[self._at])
        many = f"part {self._at + 1} of {len(self._parts)}: n next, p previous · " if len(self._parts) > 1 else ""
        self.query_one("#where", Static).update(Content.styled(f"{many}space scrolls · esc closes", "$text-muted"))

    def action_line(self, step: int) -> None:
        """Scroll by one line."""
        self.card.scroll_relative(y=step, animate=False)

    def action_page(self, step: int) -> None:
        """Scroll by a page; behind the last one comes the next part."""
        card = self.card
        if step > 0 and card.scroll_offset.y >= card.max_scroll_y:
            self.action_part(1)
        elif step > 0:
            card.scroll_page_down(animate=False)
        else:
            card.scroll_page_up(animate=False)

    def action_part(self, step: int) -> None:
        """Go to another part."""
        at = min(max(self._at + step, 0), len(self._parts) - 1)
        if at != self._at:
            self._at = at
            self._show()

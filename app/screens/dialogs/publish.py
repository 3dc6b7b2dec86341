"""The question before a session's work is pushed and a review of it is asked for at a forge."""

from __future__ import annotations

from typing import ClassVar

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from app.review import publishing
from app.screens.dialogs.given_line import HearsLines
from app.screens.dialogs.taking import YES_NO, Taking
from app.screens.typing_rest import TypingRest
from harness.domain.text.display_safe import to_display
from harness.views.session_views import SessionRow

_SHOWN = 300
_LOOKING = "looking what would be pushed …"


class PublishDialog(HearsLines, Taking[list[str]]):
    """It sends only what it has shown: what would be pushed and opened as its fields are now. While that is sent it may
    be closed.
    """

    FIELDS: ClassVar[dict[str, tuple[str, str, str]]] = {
        "named": ("Title", "", "its commit's, or made of its goal"),
        "as": ("Branch", "", "named as the session's"),
        "into": ("Into", "", "the forge's own choice"),
        "repo": ("Repository", "", "OWNER/NAME, where the remote's address names none"),
        "remote": ("Remote", "origin", "a remote of the repository"),
        "draft": ("Draft", "no", "open it as a draft"),
        "commit": ("Commit rest", "no", "what it left in no commit"),
    }
    CHOICES: ClassVar[dict[str, tuple[str, ...]]] = {"draft": YES_NO, "commit": YES_NO}

    def __init__(self, row: SessionRow, seen: str) -> None:
        """``seen``: what of the work was on screen, as the supervisor named it; nothing else is sent then."""
        text = "With your own credentials and your own gh or glab. Commit rest first commits what it left in no commit."
        super().__init__(row, "Publish", text, "push and open")
        self._seen = seen
        self.looked_at: list[str] | None = None
        """The options whose preview is on screen."""
        self._shown = ""
        """That preview, as the verb names it."""
        self._looking: list[str] | None = None
        """Those that are being looked up; one process at a time does it."""
        self._rest = TypingRest(self, self.FIELDS, self._look)

    def fields(self) -> list[Widget]:
        return [*super().fields(), VerticalScroll(Static(_LOOKING, id="where"), id="sent")]

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(Input).focus()
        self._look()

    # -- what would be sent ------------------------------------------------------------------------

    def moved(self, name: str, value: str) -> None:
        if self._rest.changed(name, value):
            self.complain("")
            self._forget()
            self._rest.look_soon()

    def _forget(self) -> None:
        self.looked_at = None
        self.query_one("#where", Static).update(_LOOKING)

    def _look(self) -> None:
        """Show what the fields as they are would send; what is being looked up now is waited for first."""
        if self._sending or self._looking is not None:
            return
        try:
            self._looking = self._options()
        except ValueError as exc:
            self.complain(str(exc))
            self.query_one("#where", Static).update("")
            return
        self.host.run_beside(self._preview(self._looking))

    async def _preview(self, options: list[str]) -> None:
        able, said = await publishing.run(self.host.folders, self._row.sid, publishing.PREVIEW, *options)
        self._looking = None
        if not self.is_open:
            return
        if not self._stands(options):
            self._look()
            return
        self.looked_at = options if able else None
        self._shown = publishing.named(said) if able else ""
        lines = "\n".join(to_display(line, limit=_SHOWN) for line in said.splitlines())
        self.query_one("#where", Static).update(Content.styled(lines, "" if able else "bold $warning"))

    def _stands(self, options: list[str]) -> bool:
        """Whether the fields still say this."""
        try:
            return self._options() == options
        except ValueError:
            return False

    # -- sending it --------------------------------------------------------------------------------

    def _options(self) -> list[str]:
        """What the verb is told. Raises ValueError."""
        given = {"title": self.typed("named")} | {name: self.typed(name) for name in ("as", "into", "repo", "remote")}
        return publishing.options(given | {"seen": self._seen}, {name: self.yes(name) for name in self.CHOICES})

    def result(self) -> list[str]:
        options = self._options()
        if self.looked_at != options:
            self._look()
            raise ValueError("nothing was sent: first read above what would be")
        return [*options, f"--shown={self._shown}"]

    async def carry_out(self, asked: list[str]) -> tuple[str, str]:
        self.complain("pushing; this may be closed, it goes on")
        able, said = await publishing.run(self.host.folders, self._row.sid, *asked)
        words = "; ".join(line for line in said.splitlines() if line)
        return ("", f"{self._row.name}: {words}") if able else (words, "")

    def close_with(self, refused: str, about: str, done: str) -> None:
        super().close_with(refused, about, done)
        if refused and self.is_open:  # its commit may be made by now, or the remote moved: what was read is old
            self._forget()
            self._look()

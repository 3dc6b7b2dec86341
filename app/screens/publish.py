"""The question before a session's work is pushed and a review of it is asked for at a forge."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from app import publishing
from app.screens.taking import Taking
from harness.events.untrusted import to_display
from harness.events.views import SessionRow

_SHOWN = 300
_LINES = 3
"""Of the preview: what is pushed, where the request goes, its title."""


class PublishDialog(Taking):
    """What would be pushed and opened stands in it before anything is sent; while it is sent it may be closed."""

    FIELDS: ClassVar[dict[str, tuple[str, str, str]]] = {
        "named": ("Title", "", "its commit's, or made of its goal"),
        "as": ("Branch", "", "named as the session's"),
        "into": ("Into", "", "the forge's own choice"),
        "repo": ("Repository", "", "OWNER/NAME, where the remote's address names none"),
        "remote": ("Remote", "origin", "a remote of the repository"),
        "draft": ("Draft", "no", "no; yes = open it as a draft"),
        "commit": ("Commit rest", "no", "no; yes = first commit what it left in no commit"),
    }
    _FLAGS: ClassVar[tuple[str, ...]] = ("draft", "commit")

    def __init__(self, row: SessionRow) -> None:
        text = "Its branch is pushed with your own credentials, and your gh or glab opens a request for review."
        super().__init__(row, "Publish", text, "push and open")

    def fields(self) -> list[Widget]:
        return [Static("looking what would be pushed …", id="where"), *super().fields()]

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(Input).focus()
        self.host.run_beside(self._look())

    async def _look(self) -> None:
        able, said = await publishing.run(self.host.folders, self._row.sid, publishing.PREVIEW)
        if self.is_open:
            lines = [to_display(line, limit=_SHOWN) for line in said.splitlines()[:_LINES]]
            self.query_one("#where", Static).update(Content.styled("\n".join(lines), "" if able else "bold $warning"))

    def result(self) -> dict[str, Any]:
        given = {"title": self.typed("named")} | {name: self.typed(name) for name in ("as", "into", "repo", "remote")}
        return {"options": publishing.options(given, {name: self.yes(name) for name in self._FLAGS})}

    async def carry_out(self, asked: dict[str, Any]) -> tuple[str, str]:
        self.complain("pushing; this may be closed, it goes on")
        able, said = await publishing.run(self.host.folders, self._row.sid, *asked["options"])
        words = "; ".join(line for line in said.splitlines() if line)
        return ("", f"{self._row.name}: {words}") if able else (words, "")

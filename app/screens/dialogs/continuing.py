"""The question what an ended session gets to go on with.

It closes when the supervisor has it on record: nothing typed is lost.
"""

from __future__ import annotations

from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from app.client import requests
from app.screens.dialogs.dialogs import Dialog
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.config import config as configuration
from harness.views.session_views import SessionRow

_FIELDS = {
    "rounds": ("Rounds", "as before, counted anew"),
    "usd_nano": ("Dollars", "as before; +5 = five more, 5 = five in all"),
    "checks": ("New check", "none; a command that must exit with 0 too"),
}


class ContinueDialog(Dialog[dict[str, object]]):
    """Words, rounds, dollars, one more check: each may stay empty."""

    def __init__(self, row: SessionRow) -> None:
        why = f" ({row.detail})" if row.detail else ""
        self._row = row
        self._sending = False
        or_else = "give one more check" if row.state == "done" else "leave it empty to let it try again"
        super().__init__(
            "Continue",
            row.name,
            f"It ended {row.state}{why}. Say what it should do now, or {or_else}:",
            submit="continue",
        )

    def fields(self) -> list[Widget]:
        lines = [
            Horizontal(Static(title), Input(placeholder=text, id=name, compact=True), classes="given")
            for name, (title, text) in _FIELDS.items()
        ]
        return [TextArea("", soft_wrap=True, show_line_numbers=False, id="field", tab_behavior="focus"), *lines]

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#field").focus()

    def entries(self) -> list[tuple[str, str, str]]:
        return self.entries_of_fields()

    def submit(self) -> None:
        if self._sending:
            return
        try:
            request = requests.go_on(self.host.folders, self._row.sid, self.result())
        except (ValueError, configuration.ConfigError) as exc:
            self.complain(str(exc))
            return
        self._sending = True
        self.complain("continuing …")
        self.host.run_beside(self._send(request))

    async def _send(self, request: dict[str, object]) -> None:
        said = ""
        try:
            await self.host.feed.call("continue", **request)
        except (SupervisorError, Unreachable) as exc:
            said = str(exc)
        self._sending = False
        self.close_with(said, self._row.name, f"{self._row.name}: goes on")

    def result(self) -> dict[str, object]:
        typed = {name: self.query_one(f"#{name}", Input).value for name in _FIELDS}
        try:
            return requests.wish_of(
                self.query_one(TextArea).text, typed["rounds"], {"usd_nano": typed["usd_nano"]}, [typed["checks"]]
            )
        except requests.Unusable as exc:
            self.query_one(f"#{exc.field}").focus()
            raise ValueError(f"{_FIELDS[exc.field][0]}: {exc}") from exc

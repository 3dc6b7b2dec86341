"""The question which version of a memory to bring back."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.screens.dialogs.dialogs import Dialog
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import age
from harness.views.memory_views import VersionView


class VersionDialog(Dialog[int]):
    """Choose with the arrows, bring back with the chord. The result is the number of a version, 0 for none."""

    DEFAULT_CSS = """
    VersionDialog OptionList {
        text-wrap: nowrap; text-overflow: ellipsis; height: auto; max-height: 40vh;
        border: tall $border-blurred; background: $background;
    }
    VersionDialog OptionList:focus { border: tall $border; }
    """

    def __init__(self, key: str, versions: Sequence[VersionView], now: float) -> None:
        text = (
            "The version you choose stands again, as a new version. The next request of every session shows that and"
            " nothing of what stands there now."
        )
        super().__init__("Roll back", key, text, submit="roll back")
        self._versions = versions[1:]
        self._now = now

    def fields(self) -> list[Widget]:
        options = [Option(self._line(version)) for version in self._versions]
        nothing = Option(Content.styled("   0  nothing: it is forgotten", "$foreground"))
        return [OptionList(*options, nothing, id="field", markup=False)]

    def on_mount(self) -> None:
        super().on_mount()
        found = self.query_one(OptionList)
        found.highlighted = 0
        found.focus()

    def _line(self, version: VersionView) -> Content:
        words = "forgotten" if not version.sha else to_display(version.text, limit=200)
        by = to_display(version.by, limit=30)
        return Content.styled(f"{version.version:>4}  {age(version.ts, self._now):>4}  {by}: {words}", "$foreground")

    def result(self) -> int:
        at = self.query_one(OptionList).highlighted or 0
        return self._versions[at].version if at < len(self._versions) else 0

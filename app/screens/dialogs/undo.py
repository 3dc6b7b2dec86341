"""The question which state of a worktree to bring back."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from app.screens.dialogs.dialogs import Dialog
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import age, counted
from harness.views.undo_views import UndoPoint

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Consequence:
    """What going back to a point means."""

    calls: int
    names: int
    left_out: int
    yours: int


def first_choice(points: list[UndoPoint]) -> int:
    """The newest call that changed something which is still there; else the newest state that is kept."""
    fits = (i for i, p in enumerate(points) if p.tool != "undo" and p.changed and not p.undone and not p.expired)
    return next(fits, next((i for i, p in enumerate(points) if not p.expired), 0))


def consequence(points: list[UndoPoint], chosen: int) -> Consequence:
    """What is taken back: the chosen call and all that came after it and is still in the worktree."""
    gone = [p for p in points[: chosen + 1] if not p.undone]
    calls = sum(p.tool != "undo" for p in gone)
    return Consequence(calls, sum(p.changed for p in gone), points[chosen].left_out, sum(p.yours for p in gone))


class UndoDialog(Dialog[str]):
    """Choose a state with the arrows, bring it back with the chord.

    The result is the id of the call before which the state was.
    """

    DEFAULT_CSS = """
    UndoDialog OptionList {
        text-wrap: nowrap; text-overflow: ellipsis; height: auto; max-height: 40vh;
        border: tall $border-blurred; background: $background;
    }
    UndoDialog OptionList:focus { border: tall $border; }
    UndoDialog #means { height: auto; }
    """

    def __init__(self, name: str, points: list[UndoPoint], now: float) -> None:
        text = (
            "The worktree and its git state become what they were just before the call you choose. This is recorded,"
            " and can itself be undone."
        )
        super().__init__("Undo in", name, text, submit="undo")
        self._points = points[:_SHOWN]
        self._now = now

    def fields(self) -> list[Widget]:
        options = [Option(self._line(point), id=str(index)) for index, point in enumerate(self._points)]
        return [OptionList(*options, id="field", markup=False), Static("", id="means")]

    def on_mount(self) -> None:
        super().on_mount()
        found = self.query_one(OptionList)
        found.highlighted = first_choice(self._points)
        found.focus()

    def on_option_list_option_highlighted(self) -> None:
        self.complain("")
        self.query_one("#means", Static).update(self._means())

    @property
    def _chosen(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def _line(self, point: UndoPoint) -> Content:
        known = f"{point.changed:,} changed"
        if point.expired:
            known = "no longer kept"
        elif point.undone:
            known = "undone"
        style = "$text-muted" if point.expired or point.undone or not point.changed else "$foreground"
        words = to_display(point.title or point.tool, limit=200)
        return Content.styled(
            f"{age(point.ts, self._now):>4}  {known:>14}  {to_display(point.call_id, limit=20):<10} {words}",
            style,
        )

    def _means(self) -> Content:
        point = self._points[self._chosen]
        if point.expired:
            return Content.styled("This state is no longer kept.", "bold $warning")
        what = consequence(self._points, self._chosen)
        calls = counted(what.calls, "call")
        parts: list[str | tuple[str, str] | Content] = [
            (f"Takes back {calls} that changed {counted(what.names, 'name')}. ", "bold $warning")
        ]
        if what.yours:
            parts.append(("Takes what you committed after it off the branch as well. ", "$error"))
        if what.left_out:
            parts.append((f"Too large to be kept, so left as it is: {counted(what.left_out, 'name')}.", "$error"))
        return Content.assemble(*parts)

    def result(self) -> str:
        point = self._points[self._chosen]
        if point.expired:
            raise ValueError("that state is no longer kept; choose a newer one")
        return point.call_id

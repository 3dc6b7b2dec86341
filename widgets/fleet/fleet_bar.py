"""One line of totals, and the banner that says when the supervisor does not answer."""

from __future__ import annotations

import time

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from harness.domain import endpoints
from harness.domain.states import State
from harness.domain.text import formatting
from harness.views.session_views import FleetView
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.lines import PaintedLines
from widgets.base.palette import palette
from widgets.base.spend_rate import Burn

_WITH_RATE = 70


class FleetBar(PaintedLines):
    """Spent today against the cap and how fast, who needs you and for how long, what runs and what is to be reviewed;
    what is wrong with the fleet or the sandbox when anything is.
    """

    DEFAULT_CSS = """
    FleetBar {
        height: 1;
        background: $panel;
    }
    """

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._fleet = FleetView()
        self._live = False
        self._phrase = ""
        self._oldest = ""
        self._waited = ""
        self._burn = Burn()
        self._rate = ""

    def tick(self, now: float) -> None:
        """Repaint when the words of a trouble, the oldest wait or the rate of spending changed."""
        if self._live:
            self._burn.note(self._fleet.spent_today_nano - self._fleet.unknown_today_nano, now)
        said = (trouble_phrase(self._fleet, now), formatting.age(self._oldest, now), rate(self._burn, now))
        if said != (self._phrase, self._waited, self._rate):
            self._phrase, self._waited, self._rate = said
            self.refresh()

    def set_oldest(self, ts: str) -> None:
        """Since when the oldest item of the queue waits; empty: there is none."""
        self._oldest = ts
        self.tick(time.time())

    def set_fleet(self, fleet: FleetView, *, live: bool) -> None:
        """Take new totals; ``live`` is False while they are not being updated."""
        if (fleet, live) != (self._fleet, self._live):
            self._fleet = fleet
            self._live = live
            self.tick(time.time())
            self.refresh()

    def _style(self, role: str) -> Style:
        return palette(self)[role]

    def render_line(self, y: int) -> Strip:
        f = self._fleet
        quiet = self._style("quiet")
        text = self._style("text")
        phrase = self._phrase if self._live else ""
        line = Line(self.size.width)
        if not phrase or self.size.width >= 100:
            line.left(" watchfloor ", self._style("heading"))
        sandbox, ok = sandbox_text(f.sandbox)
        if not self._live:
            line.right(" not connected ", self._style("alarm"))
        elif phrase:
            line.right(f" {cells.safe(phrase, self.size.width // 2)} ", self._style("call"))
        elif not ok:
            line.right(f" {cells.clip(sandbox, self.size.width // 3)} ", self._style("alarm"))
        line.left(" ", text).left(formatting.spend_cell(f.spent_today_nano, f.unknown_today_nano), text)
        line.left(" today", quiet)
        if f.day_cap_nano is not None:
            line.left(f" of {formatting.cap_text(f.day_cap_nano)} ", quiet)
            used, rest = cells.bar(f.spent_today_nano + f.reserved_today_nano, f.day_cap_nano, 8)
            if self.size.width >= 90:
                line.left(used, self._style("meter")).left(rest + " ", quiet)
        if self._rate and self.size.width >= _WITH_RATE:
            line.left(f" {self._rate}", quiet)
        for said, role in self._counts():
            if cell_len(said) + 2 > line.room:
                break  # nothing that matters less may stand where this had no room
            line.left("  ", text).left(said, self._style(role))
        return line.strip(self.rich_style)

    def _counts(self) -> list[tuple[str, str]]:
        """(words, colour role), what matters most first."""
        f = self._fleet
        waited = f", {self._waited}" if self._waited else ""
        said = [(f"◆ {f.needs_you} need{'s' if f.needs_you == 1 else ''} you{waited}", "call")] * bool(f.needs_you)
        said += [(f"✗ {formatting.counted(f.errors, 'error')}", "alarm")] * bool(f.errors)
        said.append((f"● {f.running} running", "good" if f.running else "quiet"))
        said += [(f"{cells.mark(State.PARKED)} {f.parked} parked", "quiet")] * bool(f.parked)
        said += [(f"✓ {f.review} to review", "text")] * bool(f.review)
        return said + [(f"■ {f.done} done", "quiet")] * bool(f.done)


def rate(burn: Burn, now: float) -> str:
    """Dollars an hour, and the last minutes as bars; empty while nobody can say, or nothing is spent."""
    nano = burn.per_hour(now)
    return f"{formatting.money(nano)}/h {burn.spark(now)}".rstrip() if nano else ""


def trouble_phrase(fleet: FleetView, now: float) -> str:
    """The worst trouble of the fleet in one short phrase (untrusted); empty when there is none."""
    for at in fleet.endpoints:
        age = formatting.age(at.since, now)
        left = formatting.due(at.next_try, now)
        tried = f", next try {left}" if left else ""
        if at.asking:
            tried = ", asked again now"
        return f"{_ENDPOINT.get(at.state, at.state)}{f' for {age}' if age else ''}{tried}"
    return next((found.headline for found in fleet.troubles), "")


_ENDPOINT = {
    endpoints.DOWN: "endpoint down",
    endpoints.LIMITED: "endpoint limits us",
    endpoints.PERSON: "endpoint needs you",
}


def sandbox_text(sandbox: str) -> tuple[str, bool]:
    """(words, fine) for the sandbox's self-test result."""
    if not sandbox:
        return "sandbox not tested yet", False
    if sandbox.lower().startswith(("ok", "full")):
        return "sandbox ok", True
    return f"sandbox: {cells.safe(sandbox, 40)}", False


class Banner(Widget):
    """A full-width line for what stands above everything else; takes no room when empty."""

    DEFAULT_CSS = """
    Banner { height: 1; display: none; background: $error; color: $background; text-style: bold; }
    Banner.-calm { background: $warning; }
    Banner.-on { display: block; }
    Banner:ansi { background: ansi_red; color: ansi_bright_white; }
    """

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._text = ""

    @property
    def text(self) -> str:
        """What the banner says now; empty when hidden."""
        return self._text

    def say(self, text: str, *, calm: bool = False) -> None:
        """Show a sentence; empty text hides the banner."""
        if text != self._text:
            self._text = text
            self.set_class(bool(text), "-on")
            self.refresh()
        self.set_class(calm, "-calm")

    def render_line(self, y: int) -> Strip:
        return (
            Line(self.size.width)
            .left(" " + cells.safe(self._text, self.size.width - 2), Style.null())
            .strip(self.rich_style)
        )

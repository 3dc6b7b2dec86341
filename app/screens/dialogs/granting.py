"""The form that makes a rule of a request: what it says, what it would have covered, and how far it goes.

Nothing is sent before the supervisor has said what exactly these fields mean.
"""

from __future__ import annotations

import time

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from app.client import requests
from app.screens.dialogs.dialogs import Dialog
from app.screens.dialogs.given_line import HearsLines, given_in, given_line
from app.screens.typing_rest import TypingRest
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import age, counted
from harness.protocol.client import SupervisorError, Unreachable
from harness.views.grant_views import Granted, GrantPreview, GrantPreviewed, PastRequest
from harness.views.session_views import ApprovalView

_SHOWN = 12
_FIELDS = {
    "scope": ("For this", "session", ""),
    "expires": ("Ends after", "24h", "up to 30d"),
    "count": ("Or after calls", "20", "so many calls"),
    "free": ("May differ", "", "nothing; 2 = words after the 2nd; /dir = files below"),
    "typed": ("Type its name", "", "critical: the session's name"),
}
_CHOICES = {"scope": ("session", "repository", "fleet")}


class GrantDialog(HearsLines, Dialog[dict[str, object]]):
    """Fields above, and below them the pattern and its past, as the supervisor tells them."""

    def __init__(self, view: ApprovalView) -> None:
        self._view = view
        self._sending = False
        self.looked_at: dict[str, object] = {}
        """The wish whose preview is on screen."""
        self._rest = TypingRest(self, _FIELDS, self._look)
        super().__init__(
            "A rule from a request of",
            view.session_name,
            "What is exactly like this runs without asking, and each use is on record.",
            submit="make the rule",
        )

    def fields(self) -> list[Widget]:
        lines = [given_line(name, *field, _CHOICES.get(name, ())) for name, field in _FIELDS.items()]
        return [*lines, VerticalScroll(Static("looking …", id="preview"), id="past")]

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#of-typed").display = False
        self.query_one("#scope").focus()
        self._look()

    def entries(self) -> list[tuple[str, str, str]]:
        return self.entries_of_fields()

    def moved(self, name: str, value: str) -> None:
        if self._rest.changed(name, value) and name != "typed":
            self.looked_at = {}
            self._rest.look_soon()

    # -- what it would be --------------------------------------------------------------------------

    def _look(self) -> None:
        try:
            wish = self.result()
        except ValueError as exc:
            self.complain(str(exc))
            return
        self.complain("")
        self.host.run_beside(self._preview(wish))

    async def _preview(self, wish: dict[str, object]) -> None:
        said: GrantPreview | str
        try:
            said = (await self.host.feed.reply(GrantPreviewed, "grant_preview", **wish)).preview
        except (SupervisorError, Unreachable) as exc:
            said = str(exc)
        if not self.is_open:
            return
        if isinstance(said, str):
            self.complain(said)
            return
        self.looked_at = {} if said.problem else _known(wish)
        self.complain(said.problem)
        self.query_one("#of-typed").display = said.critical
        self.query_one("#preview", Static).update(preview(said, time.time()))

    # -- making it ---------------------------------------------------------------------------------

    def submit(self) -> None:
        if self._sending:
            return
        try:
            wish = self.result()
        except ValueError as exc:
            self.complain(str(exc))
            return
        if self.looked_at != _known(wish):
            self.complain("look at what this covers first; it is being looked up")
            return
        self._sending = True
        self.host.run_beside(self._send(wish))

    async def _send(self, wish: dict[str, object]) -> None:
        said = ""
        decided = 0
        name = ""
        try:
            made = await self.host.feed.reply(Granted, "grant", **wish)
            decided = made.decided
            name = made.grant.grant
        except SupervisorError as exc:
            said = str(exc)
        except Unreachable as exc:
            said = f"{exc.message}; see what stands: watchfloor grants"
        self._sending = False
        done = f"rule {name} stands; it decided {decided} open now ({self.host.keys.shown('go.rules')} lists rules)"
        self.close_with(said, self._view.session_name, done)

    def result(self) -> dict[str, object]:
        """The arguments of ``grant``. Raises ValueError."""
        typed = {name: given_in(self, name) for name in _FIELDS}
        free = typed["free"]
        counted = not free.startswith("/")
        try:
            return requests.grant(
                self._view,
                scope=typed["scope"],
                expires=typed["expires"],
                count=typed["count"],
                first=free if counted else "",
                under="" if counted else free,
                typed=typed["typed"],
            )
        except requests.Unusable as exc:
            field = "free" if exc.field in ("first", "under") else exc.field
            self.query_one(f"#{field}").focus()
            raise ValueError(f"{_FIELDS[field][0]}: {exc}") from exc


def _known(wish: dict[str, object]) -> dict[str, object]:
    """What of a wish decides what it covers."""
    return {name: value for name, value in wish.items() if name != "typed"}


def preview(said: GrantPreview, now: float) -> Content:
    """The pattern, and the past requests that it would have covered."""
    parts = [Content.styled("It covers what is exactly so:", "bold")]
    parts += [Content("  " + to_display(line, limit=300)) for line in said.words]
    if said.critical:
        parts.append(Content.styled("Critical: no rule covers this unless its session's name is typed.", "bold $error"))
    if said.problem:
        return Content("\n").join(parts)
    waiting = sum(one.decision == "open" for one in said.past)
    of = counted(said.looked_at, "request")
    now_run = "1 waits and runs now" if waiting == 1 else f"{waiting} wait and run now"
    parts.append(Content.styled(f"Of {of} it would have covered {len(said.past)}; {now_run}:", "bold"))
    parts += [_row(one, now) for one in said.past[:_SHOWN]]
    if len(said.past) > _SHOWN:
        parts.append(Content.styled(f"  and {len(said.past) - _SHOWN} more", "$text-muted"))
    return Content("\n").join(parts)


def _row(one: PastRequest, now: float) -> Content:
    style = "$warning" if one.decision in ("open", "deny", "stop") else "$text-muted"
    return Content.assemble(
        (f"  {age(one.ts, now):>5} ", "$text-muted"),
        (f"{to_display(one.decision, limit=12):9}", style),
        (f" {to_display(one.session, limit=24)} ", "$text-muted"),
        to_display(one.title, limit=120),
    )

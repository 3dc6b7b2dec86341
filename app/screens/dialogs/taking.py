"""The questions of taking a session's work: into which branch and how, and from where another session goes on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual.app import App
from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from app.client import requests
from app.framework.application import Host
from app.review.comments import touches_told
from app.screens.dialogs.dialogs import Dialog
from app.screens.dialogs.form import R
from app.screens.dialogs.given_line import given_in, given_line
from harness.domain import outcomes
from harness.domain.steered import Steered
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import age, counted
from harness.events.work import merge_events as m
from harness.projections.state.merging import MergeLook, named
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.config import config as configuration
from harness.views.checkpoint_views import CheckpointList, CheckpointView
from harness.views.merge_views import HandedBack, Merged, MergeLooked
from harness.views.replies import ForkBegun
from harness.views.session_views import SessionRow

_PATIENCE_S = 6 * 3600.0
"""Longest wait for a merge: every check of the session may run on the result."""
_KEPT_S = 900.0
"""Longest wait for a fork: a large tree may have to be kept first."""
_FAILURES = (SupervisorError, Unreachable, configuration.ConfigError)
_SHOWN = 200
_YES = "yes"
_NO = "no"
YES_NO = (_YES, _NO)


class Taking(Dialog[R]):
    """Fields that are sent with the chord; it closes when the supervisor is done, and says here what it refuses."""

    FIELDS: ClassVar[dict[str, tuple[str, str, str]]] = {}
    """By id: title, what stands in it at first, what may."""
    CHOICES: ClassVar[dict[str, tuple[str, ...]]] = {}
    """The words of which one is chosen, for the fields that take nothing else."""

    def __init__(self, row: SessionRow, title: str, text: str, submit: str) -> None:
        super().__init__(title, row.name, text, submit=submit)
        self._row = row
        self._sending = False

    def fields(self) -> list[Widget]:
        return [given_line(name, *field, self.CHOICES.get(name, ())) for name, field in self.FIELDS.items()]

    def entries(self) -> list[tuple[str, str, str]]:
        return self.entries_of_fields()

    def typed(self, name: str) -> str:
        """What stands in a field."""
        return given_in(self, name)

    def yes(self, name: str) -> bool:
        """Whether a field that takes yes or no says yes."""
        return self.typed(name) == _YES

    def submit(self) -> None:
        if self._sending:
            return
        try:
            asked = self.result()
        except ValueError as exc:
            self.complain(str(exc))
            return
        self._sending = True
        self.host.run_beside(self._send(asked))

    async def _send(self, asked: R) -> None:
        done = ""
        try:
            said, done = await self.carry_out(asked)
        except (SupervisorError, Unreachable, configuration.ConfigError) as exc:
            said = str(exc)
        self._sending = False
        self.close_with(said, self._row.name, done)

    async def carry_out(self, asked: R) -> tuple[str, str]:
        """Why it was not done, else empty, and what to say when it was. Raises as `Feed.call`, ConfigError."""
        raise NotImplementedError


# -- merging -------------------------------------------------------------------------------------------

_RESOLVE = "resolve"
_WAYS = (m.MERGE, m.SQUASH, m.REBASE, _RESOLVE)


class MergeDialog(Taking[dict[str, object]]):
    """The result is made beside everything and checked first; while that goes on the question may be closed."""

    FIELDS: ClassVar[dict[str, tuple[str, str, str]]] = {
        "how": ("How", m.MERGE, ""),
        "into": ("Into", "", "the branch that your checkout shows"),
        "message": ("Message", "", "from its goal; resolve: your words"),
        "checks": ("Check first", _YES, "its checks, on the result"),
        "commit": ("Commit rest", _NO, "what it left in no commit"),
    }
    CHOICES: ClassVar[dict[str, tuple[str, ...]]] = {"how": _WAYS, "checks": YES_NO, "commit": YES_NO}

    def __init__(self, row: SessionRow, seen: str = "", touches: Sequence[Steered] = ()) -> None:
        """``seen``: what of the work was on screen, as the supervisor named it; nothing else is merged then."""
        self._seen = seen
        self._touches = touches_told(touches)
        text = (
            f"{row.detail[:200] + '. ' if row.detail else ''}Nothing moves when a check fails on the result, both sides"
            " changed the same lines, or your checkout holds changes. With resolve its agent settles what did not fit."
        )
        super().__init__(row, "Merge", text, "merge")

    def fields(self) -> list[Widget]:
        kept = self.host.comments_kept(self._row.sid)
        unsent = f"{counted(kept, 'comment')} of yours not sent back" if kept else ""
        looks = [Static("looking at your checkout …", id="where"), Static(unsent, id="unsent")]
        touches = [Static(Content.styled(self._touches, "$warning"), id="touches")] if self._touches else []
        return [*(looks if unsent else looks[:1]), *touches, *super().fields()]

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#how").focus()
        self.host.run_beside(self._look())

    async def _look(self) -> None:
        """Say into which branch of which checkout it would go, and what is in the way there."""
        try:
            shown = where((await self.host.feed.reply(MergeLooked, "merge_look", sid=self._row.sid)).merge)
        except _FAILURES as exc:
            shown = Content.styled(to_display(f"where it would go is not known: {exc}", limit=_SHOWN), "$warning")
        if self.is_open:
            self.query_one("#where", Static).update(shown)

    def result(self) -> dict[str, object]:
        how = self.typed("how")
        asked = {"sid": self._row.sid, "how": how, "into": self.typed("into"), "message": self.typed("message")}
        asked |= {"seen": self._seen} if self._seen and how != _RESOLVE else {}
        return asked | {name: self.yes(name) for name in ("checks", "commit")}

    async def carry_out(self, asked: dict[str, object]) -> tuple[str, str]:
        name = self._row.name
        if asked["how"] == _RESOLVE:
            wish = requests.resolve(self.host.folders, self._row.sid, self.typed("message"))
            back = await self.host.feed.reply(HandedBack, "resolve", **wish)
            return "", f"{name} goes on: it brings {back.into} into its work; then merge again"
        self.complain("merging, its checks run on the result; this may be closed, it goes on")
        ended = await self.host.feed.reply_within(_PATIENCE_S, Merged, "merge", **asked)
        return (not_merged(ended), "") if ended.outcome != m.MERGED else ("", merged(name, ended))


def where(look: MergeLook) -> Content:
    """Into which branch of which checkout it would go now, or why not."""
    repo = to_display(look.repo, limit=_SHOWN)
    into = (
        ("branch ", (to_display(look.into, limit=_SHOWN), "bold"))
        if look.into
        else ("no branch (its HEAD is detached)",)
    )
    said = Content.assemble("Your checkout ", repo, " is on ", *into, f"; {counted(look.commits, 'commit')} to bring. ")
    if not look.no:
        return said
    hint = f"; {look.hint}" if look.hint else ""
    return said + Content.styled(f"Not now: {to_display(look.no + hint, limit=2 * _SHOWN)}", "bold $warning")


def merged(name: str, ended: m.MergeEnded) -> str:
    """That the work is in its branch now, and what its checks showed."""
    said = "; ".join(filter(None, (outcomes.on_result([one.outcome for one in ended.checked]), ended.why)))
    return f"{name}: merged into {ended.into}, which is at {ended.commit[:12]}; {said}"


def not_merged(ended: m.MergeEnded) -> str:
    """Why nothing was moved, and what to do."""
    why = f"both sides changed {named(ended.conflicts)}" if ended.outcome == m.CONFLICTS else ended.why
    mend = "; choose resolve, and its agent settles it" if ended.outcome in (m.CONFLICTS, m.CHECKS_FAILED) else ""
    return f"not merged into {ended.into}, {ended.outcome}: {why[:200]}{mend}"


# -- another session from here -------------------------------------------------------------------------


class ForkDialog(Taking[dict[str, object]]):
    """Choose a checkpoint with the arrows; goal and name may stay empty."""

    FIELDS: ClassVar[dict[str, tuple[str, str, str]]] = {
        "goal": ("Goal", "", "as it is"),
        "name": ("Name", "", "made of its name"),
    }

    def __init__(self, row: SessionRow, points: list[CheckpointView], now: float) -> None:
        text = "Another session goes on from there, beside this one, with the files as they were."
        super().__init__(row, "Fork", text, "fork")
        self._points = points[:_SHOWN]
        self._now = now

    def fields(self) -> list[Widget]:
        here = Option("as it is now", id="0")
        options = [Option(self._line(point), id=str(at)) for at, point in enumerate(self._points, 1)]
        return [OptionList(here, *options, id="from", markup=False), *super().fields()]

    def on_mount(self) -> None:
        super().on_mount()
        found = self.query_one(OptionList)
        found.highlighted = 0
        found.focus()

    def _line(self, point: CheckpointView) -> Content:
        words = to_display(point.label or point.why, limit=200)
        return Content(f"{age(point.ts, self._now):>4}  {to_display(point.id, limit=20):<6} {words}")

    def result(self) -> dict[str, object]:
        at = self.query_one(OptionList).highlighted or 0
        chosen = self._points[at - 1].id if at else ""
        return {"sid": self._row.sid, "checkpoint": chosen, "goal": self.typed("goal"), "name": self.typed("name")}

    async def carry_out(self, asked: dict[str, object]) -> tuple[str, str]:
        self.complain("forking; this may be closed, it goes on")
        made = await self.host.feed.reply_within(_KEPT_S, ForkBegun, "fork", **asked)
        more = "".join(f"; {text}" for text in made.warnings)
        return "", f"{made.name} goes on from checkpoint {made.checkpoint_id} of {self._row.name}{more}"


async def ask_fork(app: App[object], host: Host, row: SessionRow) -> None:
    """Show from where it can go on."""
    above = app.screen
    try:
        points = (await host.feed.reply(CheckpointList, "checkpoints", sid=row.sid)).checkpoints
    except _FAILURES as exc:
        host.tell(f"{row.name}: {exc}", bad=True)
        return
    if app.screen is above:  # not above a question that was opened meanwhile
        app.push_screen(ForkDialog(row, points, time.time()))

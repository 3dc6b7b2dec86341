"""Where one can go: the places of the application, each shown directly above the floor so that going back is short."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from textual.app import App
from textual.screen import Screen

from app.framework.handlers import Handler, Handlers
from app.screens.base import WatchScreen

if TYPE_CHECKING:
    from app.review.comments import Review
    from app.screens.fleet import FleetScreen

_Result = TypeVar("_Result")


class Opening(NamedTuple):
    """What is shown above the floor at the start: a session, and what happened while somebody was ``away``."""

    session: str | None = None
    away: bool = False


FLOOR = Opening()
"""Nothing: the floor itself."""


class Places:
    """Opens screens, each loaded when it is first gone to; ``leave`` is the key that detaches, as people write it, and
    ``forget`` takes away what was said in passing about the screen that is left. ``state`` gives the fleet's folder.
    """

    def __init__(
        self, app: App[int], state: Callable[[], Path], leave: Callable[[], str], forget: Callable[[], None]
    ) -> None:
        self._app = app
        self._state = state
        self._leave = leave
        self._forget = forget
        self._reviews: dict[str, Review] = {}
        self._table: FleetScreen | None = None

    def handlers(self) -> Handlers:
        """What brings one there, and why not when one is there already."""
        return {
            "go.floor": Handler(self._to_floor, self._at_floor),
            "go.queue": Handler(lambda: self.queue(""), self._at("queue", "this is the queue")),
            "go.costs": Handler(self._costs, self._at("costs", "these are the costs")),
            "go.fleet": Handler(self._fleet, self._at("fleet", "this is the fleet")),
            "go.memory": Handler(self._memory, self._at("memory", "this is the memory")),
            "go.rules": Handler(self._rules, self._at("rules", "these are the rules")),
            "go.back": Handler(self._back, self._at_floor),
            "go.brief": Handler(lambda: self.look_back("brief")),
            "go.history": Handler(lambda: self.look_back("history")),
            "session.launch": Handler(self._launch),
        }

    def _at(self, scope: str, words: str) -> Callable[[], str]:
        """Says so where the screen in front is that place."""

        def there() -> str:
            screen = self._app.screen
            return words if isinstance(screen, WatchScreen) and scope in screen.SCOPES else ""

        return there

    def _at_floor(self) -> str:
        # A dialog lies above the screen that asks; it is not a place to come back from.
        if sum(1 for screen in self._app.screen_stack if not screen.is_modal) > 1:
            return ""
        return f"this is the floor; {self._leave()} detaches"

    def _to_floor(self) -> None:
        self._forget()
        while len(self._app.screen_stack) > 1:
            self._app.pop_screen()

    def _back(self) -> None:
        self._forget()
        if len(self._app.screen_stack) > 1:
            self._app.pop_screen()

    def _only(self, screen: Screen[object]) -> None:
        self._to_floor()
        self._show(screen)

    def _show(self, screen: Screen[_Result]) -> None:
        self._forget()
        self._app.push_screen(screen)

    def _costs(self) -> None:
        from app.screens.costs import CostsScreen

        self._only(CostsScreen())

    def _fleet(self) -> None:
        """Show the table, as it was left."""
        from app.screens.fleet import FleetScreen, Left

        self._table = FleetScreen(self._table.left if self._table is not None else Left())
        self._only(self._table)

    def _memory(self) -> None:
        from app.screens.memory import MemoryScreen

        self._only(MemoryScreen())

    def _rules(self) -> None:
        from app.screens.rules import RulesScreen

        self._only(RulesScreen())

    def _launch(self) -> None:
        from app.screens.launch import LaunchForm

        self._show(LaunchForm())

    def look_back(self, tab: str) -> None:
        """Show what happened, as a briefing or as what became of requests."""
        from app.screens.look_back import BackScreen

        self._show(BackScreen(tab))

    def queue(self, approval_id: str) -> None:
        """Show the queue, on this request when one is named."""
        from app.screens.queue import QueueScreen

        screen = self._app.screen
        if isinstance(screen, QueueScreen):
            screen.choose(approval_id)
        else:
            self._only(QueueScreen(approval_id))

    def session(self, sid: str, tab: str) -> None:
        """Show one session."""
        from app.screens.session import SessionScreen

        self._show(SessionScreen(sid, tab))

    def comments_kept(self, sid: str) -> int:
        """How many comments on the work of one session were not sent back to it."""
        return len(self._review(sid).comments)

    def _review(self, sid: str) -> Review:
        from app.review import review_store

        if sid not in self._reviews:
            self._reviews[sid] = review_store.load(self._state(), sid)
        return self._reviews[sid]

    def review(self, sid: str) -> None:
        """Show the work of one session, with what was viewed and said of it before."""
        from app.screens.review import ReviewScreen

        self._show(ReviewScreen(sid, self._review(sid)))

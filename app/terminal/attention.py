"""Whether somebody is in front of this screen, and who calls them when something waits and nobody is: we, or the
supervisor where we cannot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping

from app.client.feed import Feed
from app.input.typing_pace import Pace
from app.terminal.bell import AWAY_S, Calling
from app.terminal.terminal_title import TerminalTitle
from app.terminal.tmux_viewers import Viewers
from harness.protocol.config.sections import NotifyConfig


class Attention:
    """``in_focus``: what the terminal says of its focus; ``beside`` runs what must not hold up the screen."""

    def __init__(
        self,
        feed: Feed,
        pace: Pace,
        notify: NotifyConfig,
        environ: Mapping[str, str],
        *,
        to_terminal: Callable[[str], None],
        in_focus: Callable[[], bool],
        beside: Callable[[Coroutine[object, object, object]], None],
    ) -> None:
        self._feed = feed
        self._pace = pace
        self._in_focus = in_focus
        self._beside = beside
        self._title = TerminalTitle(to_terminal, on=notify.title)
        self._viewers = Viewers(environ)
        self._opened = time.monotonic()
        self.calling = Calling(notify, to_terminal)

    @property
    def watched(self) -> bool:
        """Somebody is in front of this screen, as far as its terminal and the last key tell."""
        quiet = time.monotonic() - max(self._opened, self._pace.pressed)
        return self._in_focus() and quiet < AWAY_S and not self._viewers.none_since(self._pace.pressed)

    def look(self, now: float) -> None:
        """Once a second, while the supervisor is there."""
        waiting = [view for view in self._feed.snapshot.needs() if view.deferred is None]
        self._title.show(len(waiting))
        self.calling.look(waiting, now, watched=self.watched)
        if waiting and self._in_focus() and self._viewers.due(self._pace.pressed):
            self._beside(self._viewers.ask())
        in_sight = not self._viewers.none_since(self._pace.pressed)
        reached = self.watched or (in_sight and self.calling.notifies)
        if reached != self._feed.told_watched:
            self._beside(self._feed.tell_watched(reached))

    def leave(self) -> None:
        """Give the terminal its title back."""
        self._title.give_back()

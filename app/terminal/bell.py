"""Calls a person whose screen is open and not watched: the terminal's bell, and its own desktop notice where one is
asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from app.terminal.clipboard import passed_through
from harness.domain.text.display_safe import to_display
from harness.protocol.config.sections import NotifyConfig
from harness.views import notifications
from harness.views.notifications import Memory, Notice, Pacing, Want
from harness.views.session_views import ApprovalView

AWAY_S = 300.0
"""Seconds without a key or a click after which nobody watches, whatever the terminal says of its focus."""
_NAME = 40
_NOTICES = ("osc9", "osc777")
_BELL = "\a"


class Calling:
    """Decides once a second and writes to the terminal; the bell of a multiplexer marks its window, too."""

    def __init__(self, set_to: NotifyConfig, write: Callable[[str], None]) -> None:
        self._set_to = set_to
        self._write = write
        self._memory = Memory()
        self._pacing = Pacing(set_to.dwell, set_to.cool_down, set_to.again)

    @property
    def notifies(self) -> bool:
        """Its terminal gives the notice itself, where it can be reached."""
        return self._set_to.screen in _NOTICES

    def look(self, waiting: Iterable[ApprovalView], now: float, *, watched: bool) -> None:
        """``waiting`` is the queue, ``now`` in seconds since the epoch."""
        if self._set_to.screen == "off":
            return
        self._memory, notice = notifications.decide(self._memory, map(_want, waiting), now, watched, self._pacing)
        if notice is not None:
            self._write(escapes(self._set_to.screen, notice, in_tmux="TMUX" in os.environ))


def _want(view: ApprovalView) -> Want:
    from harness.domain.text import (
        secret_scan,  # its patterns are made when something waits, not before the first paint
    )

    name = view.sid if secret_scan.found(view.session_name) else to_display(view.session_name, limit=_NAME)
    return Want(view.approval_id, name, view.kind, view.risk, view.deferred is not None)


def escapes(kind: str, notice: Notice, *, in_tmux: bool) -> str:
    """What rings: the bell, and for ``osc9`` and ``osc777`` the terminal's notice, which tmux hands on where it may."""
    title = notifications.title(notice)
    body = ", ".join(notifications.lines(notice)).replace(";", ",")
    if kind == "osc9":
        text = f"\x1b]9;{title}: {body}\a"
    elif kind == "osc777":
        text = f"\x1b]777;notify;{title};{body}\a"
    else:
        return _BELL
    if in_tmux:
        text = passed_through(text)
    return _BELL + text

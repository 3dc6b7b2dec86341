"""Shows the number of waiting requests in the terminal's title; in tmux this is the title of the pane."""

from __future__ import annotations

from collections.abc import Callable

# Push and pop the terminal's own stack of titles, so that the earlier title returns at exit.
_KEEP = "\x1b[22;2t"
_GIVE_BACK = "\x1b[23;2t"


class TerminalTitle:
    """Writes to the terminal when the title changes; ``on``: whether we may set it."""

    def __init__(self, write: Callable[[str], None], *, on: bool) -> None:
        self._write = write
        self._on = on
        self._shown = ""

    def show(self, needs_you: int) -> None:
        """Set the title to show how many things need the person."""
        title = f"◆ {needs_you} · Watchfloor" if needs_you else "Watchfloor"
        if not self._on or title == self._shown:
            return
        self._write(f"{'' if self._shown else _KEEP}\x1b]2;{title}\a")
        self._shown = title

    def give_back(self) -> None:
        """Bring back the title that was there before."""
        if self._shown:
            self._write(_GIVE_BACK)
            self._shown = ""

"""Whether anybody's terminal shows our window of tmux, asked of tmux itself: it tells programs of the focus only where
a person has it do so, and never that its last client has left.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping

ASK_S = 5.0
"""Seconds between two questions, and after a key before the first: who presses keys is there."""
_END_S = 2.0


class Viewers:
    """``environ``: that of the screen; outside tmux nothing is ever asked, and nobody is taken to be away."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._pane = environ.get("TMUX_PANE", "") if environ.get("TMUX") else ""
        self._asked = float("-inf")
        self._nobody = False

    def due(self, pressed: float) -> bool:
        """It is time to ask; ``pressed`` is when the newest key was made (seconds, monotonic)."""
        return bool(self._pane) and time.monotonic() - max(self._asked, pressed) >= ASK_S

    def none_since(self, pressed: float) -> bool:
        """No client of tmux showed our window when it was asked, and no key was pressed since."""
        return self._nobody and pressed < self._asked

    async def ask(self) -> None:
        """Ask how many clients show the window; without an answer somebody is taken to be there."""
        self._asked = time.monotonic()
        self._nobody = await self._count() == "0"

    async def _count(self) -> str:
        command = ("tmux", "display-message", "-p", "-t", self._pane, "#{window_active_clients}")
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError:
            return ""
        try:
            async with asyncio.timeout(_END_S):
                return (await process.communicate())[0].decode(errors="replace").strip()
        except TimeoutError:
            return ""
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

"""What is wrong right now, in words: with the fleet itself, and with each session that something holds up."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from harness.domain import problems as trouble
from harness.supervisor.base.threads import at_home
from harness.supervisor.fleet.session import Session
from harness.views.session_views import TroubleView

SCARCE = 64 << 20
"""Free bytes below which the disk of the state folder is called almost full."""
_LOOK_S = 5.0


def fleet(problems: Mapping[str, str]) -> tuple[TroubleView, ...]:
    """Troubles of the fleet by kind (`trouble.FLEET`) and cause, in the order of that table, which begins with the
    worst; empty causes are none.
    """
    found = []
    for kind in sorted(problems, key=_rank):
        if problems[kind]:
            words = trouble.FLEET.get(kind, trouble.FLEET["warning"])
            found.append(_view("the fleet", words, problems[kind]))
    return tuple(found)


def sessions(all_of_them: Iterable[Session]) -> list[TroubleView]:
    """Every session that something holds up, those that wait for a person first."""
    found = []
    for session in all_of_them:
        if session.trouble:
            words = trouble.held(session.trouble) if session.held else session.trouble.words
            found.append(_view(session.name, words, session.trouble.cause, session.sid))
        found.extend(_view(session.name, told.words, told.cause, session.sid) for told in session.blocks.values())
    return sorted(found, key=lambda view: (not view.person, view.about))


def _rank(kind: str) -> int:
    order = list(trouble.FLEET)
    return order.index(kind) if kind in order else len(order)


def _view(about: str, words: trouble.Words, cause: str, sid: str = "") -> TroubleView:
    said = {name: getattr(words, name).replace("{sid}", sid) for name in ("headline", "next", "do", "command")}
    return TroubleView(about=about, cause=cause, person=words.person, sid=sid, **said)


def room(folder: Path) -> str:
    """What is wrong with the disk that holds ``folder`` (blocking); empty when there is room on it."""
    try:
        at = os.statvfs(folder)
    except OSError as exc:
        return f"{folder} cannot be examined: {exc.strerror or exc}"
    free = at.f_bavail * at.f_frsize
    return f"{free >> 20} MiB free on the disk of {folder}" if free < SCARCE else ""


class Disk:
    """The disk of the state folder, looked at every few seconds off the loop; ``problem`` says what is wrong with
    it.
    """

    def __init__(self, folder: Path, changed: Callable[[], None]) -> None:
        self._folder = folder
        self._changed = changed
        self.problem = ""

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            found = await at_home(room, self._folder)
            if bool(found) != bool(self.problem):
                self.problem = found
                self._changed()
            self.problem = found
            await asyncio.sleep(_LOOK_S)

"""Calls a person who does not watch, by a command of the person's own, by Apprise, or by the desktop's ``notify-send``:
no shell, a fixed command line, an end in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness.domain.states import Desired
from harness.domain.text import secret_scan
from harness.domain.text.display_safe import to_display
from harness.linux import own_file
from harness.linux.durable import write_file
from harness.protocol.config.sections import NotifyConfig
from harness.supervisor.base.threads import at_home
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.views import attention, notifications
from harness.views.notifications import Memory, Notice, Pacing, Want
from harness.views.session_views import SessionRow

_LOOK_S = 1.0
_ALL_AGAIN = 30
"""Looks after which every session is asked, not only those that said they changed: a gate may hold one up silently."""
_END_S = 15.0
_NAME = 40
_PROBLEM = "notify"
_SENT = frozenset(
    (
        *("HOME", "USER", "PATH", "LANG", "LC_ALL", "TZ", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
        *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    )
)
"""Variables that such a program gets: those that lead to the desktop and to its own settings, so that no key can be
among them.
"""


class NotSent(Exception):
    """A notice did not go out; the message says why."""


class Notifying:
    """``watched`` says whether somebody follows the fleet, ``keys`` are the secrets that we hold; what cannot be sent
    is in ``problems``. What was said is kept in ``file``, so that a new supervisor does not say it again.
    """

    def __init__(
        self,
        fleet: Fleet,
        settings: Callable[[], NotifyConfig],
        watched: Callable[[], bool],
        keys: Callable[[], tuple[str, ...]],
        problems: dict[str, str],
        file: Path,
    ) -> None:
        self._fleet = fleet
        self._settings = settings
        self._watched = watched
        self._keys = keys
        self._problems = problems
        self._file = file
        self._changed: set[str] = set()
        self._waiting: dict[str, tuple[Want, ...]] = {}
        fleet.observe(lambda session: self._changed.add(session.sid))

    async def run(self) -> None:
        """Look, until cancelled."""
        memory = self._remembered()
        for look in itertools.count():
            self._ask(everyone=look % _ALL_AGAIN == 0)
            set_to = self._settings()
            pacing = Pacing(set_to.dwell, set_to.cool_down, set_to.again)
            before = memory
            memory, notice = notifications.decide(memory, self._wants(), time.time(), self._watched(), pacing)
            if _told(memory) != _told(before):
                await at_home(self._remember, memory)  # before it is said: a lost notice is better than a second one
            if notice is not None:
                await self._say(notice, set_to)
            await asyncio.sleep(_LOOK_S)

    # -- what waits --------------------------------------------------------------------------------

    def _ask(self, *, everyone: bool) -> None:
        sessions = self._fleet.sessions
        keys = self._keys()
        for sid in list(sessions) if everyone else self._changed & sessions.keys():
            self._waiting[sid] = tuple(_wants(sessions[sid], self._fleet.row(sessions[sid]), keys))
        for sid in self._waiting.keys() - sessions.keys():
            del self._waiting[sid]
        self._changed.clear()

    def _wants(self) -> Iterator[Want]:
        return itertools.chain.from_iterable(self._waiting.values())

    # -- what was said -----------------------------------------------------------------------------

    def _remembered(self) -> Memory:
        try:
            return msgspec.json.decode(own_file.read(self._file), type=Memory)
        except (OSError, msgspec.DecodeError):
            return Memory()  # at worst something is said twice

    def _remember(self, memory: Memory) -> None:
        with contextlib.suppress(OSError):
            write_file(self._file, msgspec.json.encode(memory))

    # -- saying it ---------------------------------------------------------------------------------

    async def _say(self, notice: Notice, set_to: NotifyConfig) -> None:
        try:
            argv, text = message(notice, set_to)
            if not argv:
                return
            await send(argv, text, urgent=notice.urgent)
        except NotSent as exc:
            self._problems[_PROBLEM] = f"a notice was not sent: {exc}; see [notify] in the configuration"
        else:
            self._problems.pop(_PROBLEM, None)


def _wants(session: Session, row: SessionRow, keys: tuple[str, ...]) -> Iterator[Want]:
    """What a session wants of a person: its open requests, or that it hangs."""
    name = _shown(session, row.name, keys)
    if not (session.finished or session.foreign or session.damaged or session.state.desired == Desired.STOPPED):
        for asked in session.state.approvals.values():
            yield Want(asked.approval_id, name, asked.kind, asked.risk, asked.deferred is not None)
    if (item := attention.held(row)) is not None:
        yield Want(item.approval_id, name, item.kind, put_off=item.deferred is not None)


def _told(memory: Memory) -> dict[str, int]:
    return {ident: told.times for ident, told in memory.items.items() if told.times}


def _shown(session: Session, name: str, keys: tuple[str, ...]) -> str:
    """Its name as it may appear outside; a name that looks like a secret is left out."""
    return session.sid if secret_scan.found(name, keys) else to_display(name, limit=_NAME)


def message(notice: Notice, set_to: NotifyConfig) -> tuple[list[str], str]:
    """The command line, and what it gets on its input; no command line when nothing is to be called. Raises NotSent."""
    title = notifications.title(notice)
    lines = notifications.lines(notice)
    if set_to.command:
        return list(set_to.command), "\n".join([title, *lines]) + "\n"
    if set_to.apprise:
        # its targets stay in its file: on a command line every user of the machine would read their keys
        kind = "warning" if notice.urgent else "info"
        options = ["--config", set_to.apprise, "--title", title, "--notification-type", kind, "--input-format", "text"]
        return [_apprise(), *options], "\n".join(lines) + "\n"
    program = shutil.which("notify-send") if set_to.desktop else None
    if program is None:
        return [], ""
    # The desktop reads the body as markup, and some versions of the program read backslashes.
    import html  # its table of names takes a quarter of a megabyte

    body = html.escape("\n".join(lines), quote=False).replace("\\", "/")
    urgency = "critical" if notice.urgent else "normal"
    return [program, "--app-name=Watchfloor", f"--urgency={urgency}", "--", title, body], ""


def _apprise() -> str:
    """The program of the optional dependency, beside the interpreter that it was installed for. Raises NotSent."""
    program = shutil.which("apprise", path=str(Path(sys.executable).parent))
    if program is None:
        raise NotSent("Apprise is not installed here: pip install 'watchfloor[apprise]'")
    return program


async def send(argv: list[str], text: str, *, urgent: bool) -> None:
    """Run a command with ``text`` on its input and wait for its end, a quarter of a minute at most. Raises NotSent."""
    env = {name: value for name, value in os.environ.items() if name in _SENT}
    env["WATCHFLOOR_URGENCY"] = "critical" if urgent else "normal"
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env=env,
            start_new_session=True,
        )
    except (OSError, ValueError) as exc:
        raise NotSent(f"{argv[0]} cannot be started: {getattr(exc, 'strerror', None) or exc}") from exc
    try:
        async with asyncio.timeout(_END_S):
            await process.communicate(text.encode())
    except TimeoutError:
        raise NotSent(f"{argv[0]} did not end within {_END_S:.0f} s and was ended") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise NotSent(f"{argv[0]} ended with {process.returncode}")

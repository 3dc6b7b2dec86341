"""The blocking client of the supervisor, and starting the supervisor when nobody answers. Standard library only."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from harness.linux import proc
from harness.protocol import identity, locks, stop_mark, supervisor_words
from harness.protocol.connection import frames
from harness.protocol.connection.blocking import Connection
from harness.protocol.connection.exchange import JSON, Broken, Codec, Ended, Exchange, Silent, refusal
from harness.protocol.connection.read_only import LOOKING
from harness.protocol.connection.transport import Transport, UnixSocket
from harness.protocol.paths import FolderError, Folders, ensure_private

if TYPE_CHECKING:
    from harness.protocol.config.credential import Credential


class Hinted(Exception):
    """What is wrong, and what to do about it; both in one line as text."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint

    @property
    def lines(self) -> str:
        """The hint on a line of its own."""
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class SupervisorError(Hinted):
    """The supervisor refused: ``code`` for programs, the message (and ``hint``) for people."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


class Unreachable(Hinted):
    """No supervisor answers at the socket; the message says what was tried."""


class Mute(Unreachable):
    """Somebody holds the socket and does not answer: a frozen or very busy supervisor."""


class OtherFleet(Unreachable):
    """Who answers at our socket drives another state folder."""


def yes(reply: dict[str, object]) -> dict[str, object]:
    """The reply when it is one of success. Raises SupervisorError."""
    no = refusal(reply, "the supervisor refused without a reason")
    if no is not None:
        raise SupervisorError(no.code, no.message, no.hint)
    return reply


_PERHAPS = "what it was asked for may be done, or be finished as soon as it is back: look before you ask again"


def unreachable(end: Ended, op: str = "hello") -> Unreachable:
    """The end of a connection to the supervisor in words, while an ``op`` was awaited."""
    perhaps = "" if op in LOOKING else _PERHAPS
    if isinstance(end, Silent):
        return Mute("the supervisor did not answer in time", perhaps)
    if isinstance(end, Broken):
        return Unreachable(f"the connection to the supervisor broke: {end.why}", perhaps)
    return Unreachable("the supervisor closed the connection", perhaps)


class Client:
    """One blocking connection. Not thread-safe. Use as a context manager.

    ``timeout`` is how long the greeting may take, and each reply after it, in seconds. Raises Unreachable (Mute when
    somebody listens and is silent), SupervisorError when it refuses the greeting.
    """

    def __init__(self, transport: Transport, *, name: str = "cli", timeout: float = 30.0, codec: Codec = JSON) -> None:
        self.transport = transport
        self._timeout = timeout
        try:
            self._connection = Connection(transport.open(timeout), codec)
        except TimeoutError as exc:
            raise Mute(f"the supervisor at {transport} takes no connection") from exc
        except OSError as exc:
            raise Unreachable(f"no supervisor answers at {transport}: {exc.strerror or exc}") from exc
        try:
            self.hello = self.call("hello", proto=frames.PROTOCOL, client=name)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def release(self) -> tuple[socket.socket, Exchange, list[dict[str, object]]]:
        """Give the connection away, as it stands; this client must not be used any more."""
        return self._connection.release()

    def wait_up_to(self, seconds: float) -> None:
        """How long each of the next replies may take."""
        self._timeout = seconds

    def call(self, op: str, **arguments: object) -> dict[str, object]:
        """Send one request and wait for its reply. Raises SupervisorError or Unreachable."""
        try:
            return yes(self._connection.call(op, self._timeout, arguments))
        except Ended as exc:
            raise unreachable(exc, op) from exc

    def pushes(self) -> Iterator[dict[str, object]]:
        """Iterate over pushed messages for ever (after ``subscribe``). Raises Unreachable, Mute between two of them."""
        waiting = self._connection.pushes
        while True:
            while not waiting:
                try:
                    if not self._connection.read(self._timeout):
                        raise Mute("the supervisor did not answer in time")
                except Ended as exc:
                    raise unreachable(exc) from exc
            yield waiting.popleft()


def alive(folders: Folders, timeout: float = 2.0) -> bool:
    """True when a supervisor answers a hello."""
    try:
        Client(UnixSocket(folders.supervisor_socket), timeout=timeout).close()
    except (Unreachable, SupervisorError):
        return False
    return True


def abandoned(folders: Folders) -> bool:
    """True when no supervisor lives, none is being started, and the last one was not asked to stop: nobody else will
    start one.
    """
    return not _lives(folders) and not stop_mark.names_last(folders.runtime)


def at_rest(folders: Folders) -> bool:
    """True when no supervisor lives, none is being started, and the last one was asked to stop."""
    return not _lives(folders) and stop_mark.names_last(folders.runtime)


def _lives(folders: Folders) -> bool:
    return locks.held(folders.supervisor_lock) or locks.held(folders.guardian_lock)


_LOG_BYTES = 4 * 1024 * 1024
"""A supervisor's log larger than this is put aside (one old one is kept) when the next guardian starts."""
_SCRUB = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY")


class GivenAtStart(NamedTuple):
    """What a supervisor that is started does not get from the environment, and the key it gets instead."""

    drop: tuple[str, ...] = ()
    key: Credential | None = None


def spawn_guardian(folders: Folders, drop: tuple[str, ...] = (), key: Credential | None = None) -> int:
    """Start the guardian (parent of the supervisor) detached from this terminal; its pid.

    No key is in its environment: ``key`` goes into memory that it holds for the supervisor.
    """
    if why := identity.bereft(folders):
        raise FolderError(why)
    for folder in (folders.state, folders.runtime):
        ensure_private(folder)
    env = {k: v for k, v in os.environ.items() if k not in _SCRUB and k not in drop}
    env |= {
        "WATCHFLOOR_STATE": str(folders.state),
        "WATCHFLOOR_RUNTIME": str(folders.runtime),
        "WATCHFLOOR_CONFIG": str(folders.config),
    }
    try:
        if folders.supervisor_log.exists() and folders.supervisor_log.stat().st_size > _LOG_BYTES:
            folders.supervisor_log.replace(folders.supervisor_log.with_suffix(".log.1"))
        log = os.open(
            folders.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
    except OSError as exc:
        raise FolderError(f"cannot write {folders.supervisor_log}: {exc.strerror}") from exc
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    memory = _memory(key) if key is not None else -1
    command = [sys.executable, "-P", "-s", "-m", "harness.supervisor.guardian"]
    actions: list[tuple[int, int, int]] = [
        (os.POSIX_SPAWN_DUP2, null, 0),
        (os.POSIX_SPAWN_DUP2, log, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]
    if memory >= 0:
        command += ["--credentials-fd", str(_KEY_FD)]
        actions.append((os.POSIX_SPAWN_DUP2, memory, _KEY_FD))
    try:
        return os.posix_spawn(sys.executable, command, env, file_actions=actions, setsid=True)
    finally:
        for fd in (log, null, memory):
            if fd >= 0:
                os.close(fd)


_KEY_FD = 3


def _memory(key: Credential) -> int:
    """Memory without a name that holds the key, as `Credentials` reads it; a descriptor beyond the one it is given
    as.
    """
    made = os.memfd_create("watchfloor-credentials", os.MFD_CLOEXEC)
    try:
        os.write(made, json.dumps([{"base_url": key.base_url, "key": key.key}]).encode())
        return fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, _KEY_FD + 1)
    finally:
        os.close(made)


START_S = 60.0
"""Seconds that a supervisor gets to come up: it takes half of one, and a busy machine makes that many."""


def ensure_supervisor(
    folders: Folders,
    *,
    name: str = "cli",
    timeout: float = 15.0,
    starting: float = START_S,
    given: Callable[[], GivenAtStart] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Client:
    """A connection to the running supervisor, starting it first when nobody answers; ``given`` says what the one that
    is started gets, and is asked only then.

    ``tell`` hears within a few seconds why it takes longer. Raises ForeignState for a state folder that must not be
    driven, Unreachable with the supervisor's own reason when it does not come up, FolderError on unusable folders.
    """
    if (foreign := identity.look(folders.state)) is not None:
        raise identity.ForeignState(foreign)
    return _reach(folders, name, timeout, tell, _Start(folders, given, starting))


def reach(folders: Folders, *, name: str = "cli", tell: Callable[[str], None] | None = None) -> Client:
    """A connection to the supervisor of this state folder, never starting one.

    Raises Unreachable: Mute when one is there and does not answer.
    """
    return _reach(folders, name, 15.0, tell, None)


HELLO_S = 3.0
"""Seconds after which a greeting without an answer is a reason to look what is the matter."""


class _Start:
    """One attempt to start a supervisor, and what became of it."""

    def __init__(self, folders: Folders, given: Callable[[], GivenAtStart] | None, patience: float) -> None:
        self._folders = folders
        self._given = given
        self.patience = patience
        self._guardian = 0
        self._offset = 0

    @property
    def begun(self) -> bool:
        return self._guardian != 0

    def go_on(self) -> None:
        """Start the guardian once. Raises Unreachable once it is certain that nothing comes up."""
        if not self._guardian:
            log = self._folders.supervisor_log
            self._offset = log.stat().st_size if log.exists() else 0
            self._guardian = spawn_guardian(
                self._folders, *(self._given() if self._given is not None else GivenAtStart())
            )
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._guardian, os.WNOHANG)
        if reason := supervisor_words.refusal(self._folders, self._offset):
            raise Unreachable(reason)

    @property
    def last_words(self) -> str:
        return supervisor_words.last(self._folders, self._offset) or supervisor_words.pause(self._folders)


def _reach(
    folders: Folders, name: str, timeout: float, tell: Callable[[str], None] | None, start: _Start | None
) -> Client:
    begun = time.monotonic()
    told = False
    while True:
        what = ""
        try:
            client = Client(UnixSocket(folders.supervisor_socket), name=name, timeout=HELLO_S)
        except Mute:
            what, hopeless = _state_of_holder(folders)
            if hopeless:
                raise Mute(what) from None
        except Unreachable:
            if start is None:
                raise
            start.go_on()
        else:
            return _of_this_fleet(client, folders)
        waited = time.monotonic() - begun
        limit = start.patience if start is not None and start.begun and not what else timeout
        if waited > limit:
            words = start.last_words if start is not None else ""
            why = what or f"the supervisor did not start within {limit:.0f} s" + (
                f": {words}" if words else f"; see {folders.supervisor_log}"
            )
            raise Mute(why) if what else Unreachable(why)
        if waited > HELLO_S and not told and tell is not None:
            told = True
            tell(
                what
                or _state_of_holder(folders)[0]
                or supervisor_words.pause(folders)
                or f"the supervisor is starting; its log is {folders.supervisor_log}"
            )
        time.sleep(0.02)


def _of_this_fleet(client: Client, folders: Folders) -> Client:
    """What answers must drive our state folder. Raises Unreachable otherwise: nothing is asked of another fleet."""
    if other := identity.other_fleet(client.hello.get("state"), folders.state):
        client.close()
        raise OtherFleet(
            identity.replaced(client.hello.get("state"), folders)
            or f"the supervisor at {folders.supervisor_socket} drives {other}, not {folders.state}; each fleet needs a"
            " runtime folder of its own (WATCHFLOOR_RUNTIME, or leave it unset)"
        )
    client.wait_up_to(_REPLY_S)
    return client


_REPLY_S = 30.0


def _state_of_holder(folders: Folders) -> tuple[str, bool]:
    """(what the process that holds the supervisor's lock is doing, in words with what to do; whether waiting is in
    vain). Empty when nobody does.
    """
    if not (pid := locks.holder(folders.supervisor_lock)):
        return "", False
    if (fields := proc.stat(pid)) is None:
        return "", False
    state = fields[0]
    ending = f"or end it with kill -9 {pid}: sessions live on, and the next command starts a new one"
    if state in "Tt":
        return (
            (
                f"the supervisor (process {pid}) is stopped by a signal or a debugger and answers nobody; after a"
                f" minute another one takes its place by itself; wake it with kill -CONT {pid}, {ending}"
            ),
            True,
        )
    if state == "D":
        return (
            (
                f"the supervisor (process {pid}) waits for a disk or a network file system; see whether {folders.state}"
                f" answers, {ending}"
            ),
            False,
        )
    return f"the supervisor (process {pid}) is starting or busy and has not answered yet; wait, {ending}", False

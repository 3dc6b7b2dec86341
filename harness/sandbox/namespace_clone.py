"""Starting a sandboxed call without building its sandbox anew and without starting an interpreter: bubblewrap builds
all mounts once, and each call is a fork that is born into a copy of them and into namespaces of its own. Standard
library only.

Who is who: the *warden* (a fork of the caller) has bubblewrap build the sandbox, joins it, and ends bubblewrap; from
then on it only forks. Its forks are *inmates*: each the first process of a process namespace of its own, with mounts of
its own (`harness.sandbox.private_mounts`) and no capability. An inmate waits for its call, and all of that needs
nothing of the call, so it can be done before there is one. It is a child of the caller, puts the last walls around
itself and then does the work, or starts the program and ends with its exit code. The kernel ends everything else in
its namespace with it, and it with the caller.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from harness.linux import forked, kernel, namespaces, proc
from harness.sandbox import bubblewrap, fork_exec, private_mounts

WARDEN = b"wf-warden"
INMATE = b"wf-inmate"
"""What the processes are called that wait for calls, and the first process of each call."""
FAILED = 125
"""Exit code of a call whose sandbox could not be built or entered; nothing ran."""
FIRST_COPY = 10
_WAITING = ["/bin/sh", "-c", "printf .; read _"]
"""What bubblewrap runs: it says that the sandbox stands, and waits until it was joined."""
_PATIENCE_S = 20.0
"""Seconds for bubblewrap to build a sandbox on a machine that is very busy."""
_LOOK_S = 0.2
"""Seconds between two looks at one that does not answer."""
_WORDS = 1 << 14
_PLACES = 8
"""Descriptors below this number are the call's own (see `harness.executor.spawn`)."""
_ASKED = 16
_STATUS_FD = 3
_HIGH = 100
_NS_GET_USERNS = 0xB701
_SHARED = ("cgroup", "uts", "mnt")
"""Namespaces of the sandbox that its calls have in common; of the mounts each gets a copy."""


class StandsStill(ConnectionError):
    """Somebody stopped the process that keeps the sandbox; nothing was begun in the place that it was asked for."""


class Place(NamedTuple):
    """A place in a sandbox, which waits for a call or is about to; ``warden`` keeps the sandbox."""

    channel: socket.socket
    warden: int

    def pid(self) -> int:
        """The process that waits there; a child of ours. Raises OSError when the sandbox is gone."""
        return int(self._said(socket.MSG_PEEK))

    def begin(self, fds: dict[int, int]) -> int:
        """Start the call with exactly the descriptors ``{number: ours}``; the pid to wait for, whose exit code is the
        call's. Raises OSError when the sandbox is gone, StandsStill before anything was begun.
        """
        with self.channel:
            pid = int(self._said(0))
            socket.send_fds(self.channel, [bytes(fds)], list(fds.values()))
        return pid

    def _said(self, flags: int) -> bytes:
        deadline = time.monotonic() + _PATIENCE_S
        self.channel.settimeout(_LOOK_S)
        while True:
            try:
                said = self.channel.recv(_ASKED, flags)
            except TimeoutError:
                if proc.stopped(self.warden):
                    raise StandsStill("the process that keeps the sandbox is stopped") from None
                if time.monotonic() > deadline:
                    raise
            else:
                if not said:
                    raise ConnectionError("the process that keeps the sandbox has ended")
                return said


class Sandbox(NamedTuple):
    """A sandbox that stands or is being built; it ends when its channel is closed, but not the calls in it."""

    pid: int
    """Of the warden, a child of ours."""
    channel: socket.socket

    def place(self) -> Place:
        """Have a place for one more call. Raises OSError when the sandbox is gone."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                socket.send_fds(self.channel, [b"?"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return Place(ours, self.pid)


def build(argv: list[str], inmate: Callable[[], object]) -> Sandbox:
    """Begin to build the sandbox of a bubblewrap command line that ends in ``--``.

    ``inmate`` is what runs inside once a call begins and must not return. The caller must be able to fork: one thread,
    or none that holds a lock. Raises OSError when there can be no process.
    """
    return Sandbox(*forked.begin(lambda line, caller: _warden(caller, argv, line.detach(), inmate)))


def spawn(argv: list[str], fds: dict[int, int], inmate: Callable[[], object]) -> int:
    """Start a call in a sandbox of its own; the pid to wait for. Raises OSError when there can be no process."""
    sandbox = build(argv, inmate)
    try:
        with sandbox.channel:
            return sandbox.place().begin(fds)
    finally:
        os.kill(sandbox.pid, signal.SIGKILL)  # the call goes on, and one that is stopped would never end by itself
        os.waitpid(sandbox.pid, 0)


# -- the warden --------------------------------------------------------------------------------------


class _Unbuilt(Exception):
    """Bubblewrap built no sandbox; the message is its own words."""


class _Entrance(NamedTuple):
    """How an inmate is born: the namespaces it gets, what it makes there, and who it becomes."""

    namespaces: int
    make: Callable[[], None]
    identity: int
    """The user namespace to join at last, when it is not that of the mounts; else -1."""


def _warden(caller: int, argv: list[str], channel: int, inmate: Callable[[], object]) -> NoReturn:
    try:
        gc.disable()  # objects of the caller believe that they own descriptors, whose numbers are others' now
        _die_with(caller)
        (channel,) = _alone([channel])
        kernel.prctl(kernel.PR_SET_NAME, WARDEN)
        try:
            entrance = _enter_sandbox(argv)
            _die_with(caller)  # joining undid it
            kernel.bound_capabilities()
        except (_Unbuilt, OSError, ValueError, LookupError) as exc:
            entrance = _no_entrance(exc)
        _serve(channel, entrance, inmate)
    finally:
        os._exit(FAILED)


def _serve(channel: int, entrance: _Entrance, inmate: Callable[[], object]) -> None:
    """Fork an inmate for each place that is asked for, until nobody can ask any more."""
    with socket.socket(fileno=channel) as asks:
        while True:
            asked, received, _, _ = socket.recv_fds(asks, _ASKED, 1)
            if not asked:
                os._exit(0)
            pid = namespaces.sibling(entrance.namespaces)
            if pid == 0:
                _inmate(received[0], entrance, inmate)
            with socket.socket(fileno=received[0]) as place, contextlib.suppress(OSError):  # given up meanwhile
                place.send(b"%d" % pid)


def _no_entrance(exc: Exception) -> _Entrance:
    def complain() -> None:
        raise exc

    return _Entrance(0, complain, -1)


def _die_with(caller: int) -> None:
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != caller:
        os._exit(FAILED)


def _alone(kept: list[int]) -> list[int]:
    """Nothing of the caller but its memory and these descriptors, whose new numbers are returned: own session, signals
    as they come; the numbers of a call's own are free.
    """
    os.setsid()
    signal.set_wakeup_fd(-1)
    for sig in fork_exec.DEFAULTS:
        signal.signal(sig, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    copies = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for fd in kept]
    moved = [os.dup2(copy, number, inheritable=False) for number, copy in enumerate(copies, _PLACES)]
    os.closerange(0, _PLACES)
    os.closerange(_PLACES + len(moved), os.sysconf("SC_OPEN_MAX"))
    for number in range(_PLACES):
        os.dup2(moved[0], number, inheritable=False)  # so that nothing else gets one of them meanwhile
    os.environ.clear()
    return moved


def _enter_sandbox(argv: list[str]) -> _Entrance:
    """Have bubblewrap build the sandbox, and join it. Raises _Unbuilt, OSError."""
    tickets, gives = os.pipe2(os.O_CLOEXEC)
    waits, hold = os.pipe2(os.O_CLOEXEC)
    status = os.memfd_create("status", os.MFD_CLOEXEC)
    words = os.memfd_create("words", os.MFD_CLOEXEC)
    built, copies = bubblewrap.with_copies(argv, FIRST_COPY)
    told = [*built[:-1], "--json-status-fd", str(_STATUS_FD), *built[-1:], *_WAITING]
    builder = fork_exec.spawn(told, {}, {0: waits, 1: gives, 2: words, _STATUS_FD: status, **copies})
    for fd in (gives, waits, *copies.values()):
        os.close(fd)
    try:
        if not select.select([tickets], [], [], _PATIENCE_S)[0] or not os.read(tickets, 1):
            said = os.pread(words, _WORDS, 0).decode("utf-8", "replace").rstrip()
            raise _Unbuilt(said or "bubblewrap ended without a word")
        first = int(json.loads(os.pread(status, _WORDS, 0).split(b"\n")[0])["child-pid"])
        identity = _join(first)
    finally:
        for fd in (tickets, hold, status, words):
            os.close(fd)
        os.kill(builder, signal.SIGKILL)  # what it made lives on in us
        os.waitpid(builder, 0)
    wanted = private_mounts.of(argv)
    return _Entrance(wanted.namespaces, wanted.make, identity)


def _join(first: int) -> int:
    """Enter the namespaces of the process ``first`` that its calls share; the user namespace that is left to join.

    The sandbox's mounts may belong to an outer user namespace than its processes: bubblewrap makes a second one when it
    needed to be root in the first. Raises OSError.
    """
    opened = {name: _namespace(first, name) for name in (*_SHARED, "user")}
    others = [name for name in _SHARED if os.stat(f"/proc/self/ns/{name}").st_ino != _number(opened[name])]
    owner = fcntl.ioctl(opened["mnt"], _NS_GET_USERNS)
    kernel.setns(owner)
    for name in others:
        kernel.setns(opened[name])
    identity = opened.pop("user") if _number(owner) != _number(opened["user"]) else -1
    for fd in (owner, *opened.values()):
        os.close(fd)
    return identity


def _number(namespace: int) -> int:
    return os.fstat(namespace).st_ino


def _namespace(pid: int, name: str) -> int:
    return os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)


# -- an inmate ---------------------------------------------------------------------------------------


def _inmate(channel: int, entrance: _Entrance, inmate: Callable[[], object]) -> NoReturn:
    """Inside: make what is its own, wait for the call, then run it."""
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # a caller that died before that leaves an end of stream
        kernel.prctl(kernel.PR_SET_NAME, INMATE)
        os.setsid()
        trouble = _settled(entrance)
        _take(channel)
        if trouble is None:
            kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else what is ours in /proc belongs to somebody else
            inmate()
        else:
            _complain(trouble)
    except BaseException as exc:
        _complain(exc)
    finally:
        os._exit(FAILED)


def _settled(entrance: _Entrance) -> Exception | None:
    """Make what is its own and give up every capability; what went wrong is for the call to hear."""
    try:
        entrance.make()
        if entrance.identity >= 0:
            kernel.setns(entrance.identity)  # whoever joins a user namespace is bounded by nothing there
        kernel.without_capabilities(bounded=entrance.identity < 0)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # joining undid it
    except Exception as exc:
        return exc
    return None


def _take(channel: int) -> None:
    """Wait for the call, and have its descriptors under their numbers and nothing else open; ends when no call comes.

    Raises OSError.
    """
    os.closerange(0, channel)
    os.closerange(channel + 1, os.sysconf("SC_OPEN_MAX"))
    with socket.socket(fileno=channel) as waits:
        asked, received, _, _ = socket.recv_fds(waits, _ASKED, _PLACES)
        if not asked:
            os._exit(FAILED)
        copies = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for fd in received]
        waits.detach()
    os.closerange(0, _HIGH)
    for number, copy in zip(asked, copies, strict=True):
        os.dup2(copy, number)
    os.closerange(_HIGH, os.sysconf("SC_OPEN_MAX"))


def _complain(exc: BaseException) -> None:
    """Say on the call's output why it did not begin."""
    why = str(exc) if isinstance(exc, _Unbuilt) else f"the sandbox could not be entered: {type(exc).__name__}: {exc}"
    os.write(2, f"{why}\n".encode("utf-8", "replace"))

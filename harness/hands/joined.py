"""Starting a fenced call without starting an interpreter: bubblewrap builds the fence around a shell that only waits,
and a fork of this process enters it and goes on as the runner. Standard library only.

An interpreter that begins inside the fence costs four times what the fence itself costs, and every call pays for it.
The fork has everything loaded. Who is who, from the outside in: the *warden* (a fork of the caller, in its namespaces)
joins the namespaces that bubblewrap made, gives up every capability that joining gave it, and forks the *inmate*, which
is in the process namespace too, waits for its call and becomes the tool. All of that needs nothing of the call, so it
can be done before there is one. The caller waits for the warden, which ends with the tool's exit code when nothing of
the fence is left. When the caller dies, the warden is killed, and with it bubblewrap, the namespaces' first process and
all that runs in them.
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
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from harness.hands import children, seccomp
from harness.hands import fence as walls
from harness.linux import kernel

TICKETS = 4096
"""How many calls one fence can take; a page, so that whoever prints them never waits."""
WAITING = ["/bin/sh", "-c", f"printf %{TICKETS}s; read _"]
"""What bubblewrap runs: it says that the fence stands, and waits until nobody holds it any more."""
_WORDS = 1 << 14
FAILED = 125
"""Exit code of a call whose fence could not be built or entered; nothing ran."""
_PLACES = 8
"""Descriptors below this number are the call's own (see `harness.hands.spawn`)."""
_SHARED = b"\xff"
_ASKED = 16
_STATUS_FD = 3
_FILTER_FD = 4
FIRST_COPY = 10
_HIGH = 100
_NS_GET_USERNS = 0xB701
_NAMESPACES = ("cgroup", "ipc", "uts", "net", "pid", "mnt")


class Fence(NamedTuple):
    """A fence that bubblewrap builds, or has built, around a waiting shell."""

    builder: int
    """Pid of bubblewrap; the fence and all in it end with it, and it with the process that started it."""
    tickets: int
    """Gives one byte to each who enters, as soon as the fence stands; ends when it could not be built."""
    status: int
    """A file in which bubblewrap tells the pid of the first process inside."""
    words: int
    """A file that takes what bubblewrap complains of."""
    hold: int
    """The fence stands while anybody has this open."""

    def stands(self) -> bool:
        """True once it is built (or could not be); until then it ends by itself when nobody holds it."""
        return bool(select.select([self.tickets], [], [], 0)[0])

    def close(self) -> None:
        """Close our descriptors: the fence goes, unless a call in it still holds it."""
        for fd in self[1:]:
            os.close(fd)


def build(fence: list[str]) -> Fence:
    """Begin to build the fence of a bubblewrap command line that ends in ``--``. Raises OSError."""
    tickets, gives = _pipe()
    waits, hold = _pipe()
    status = os.memfd_create("status", os.MFD_CLOEXEC)
    words = os.memfd_create("words", os.MFD_CLOEXEC)
    filtered = os.memfd_create("filter", os.MFD_CLOEXEC)
    copies: dict[int, int] = {}
    try:
        # what waits inside has the walls of a call too: it must be worth nothing to whoever gets hold of it
        os.pwrite(filtered, seccomp.assembled(network="--unshare-net" not in fence), 0)
        own = ["--json-status-fd", str(_STATUS_FD), "--seccomp", str(_FILTER_FD)]
        built, copies = walls.with_copies(fence, FIRST_COPY)
        argv = [*built[:-1], *own, *built[-1:], *WAITING]
        fds = {0: waits, 1: gives, 2: words, _STATUS_FD: status, _FILTER_FD: filtered, **copies}
        return Fence(children.spawn(argv, {}, fds), tickets, status, words, hold)
    except OSError:
        for fd in (tickets, status, words, hold):
            os.close(fd)
        raise
    finally:
        for fd in (gives, waits, filtered, *copies.values()):
            os.close(fd)


class Warden(NamedTuple):
    """A call's place in a fence, which waits for the call."""

    pid: int
    """To wait for; its exit code is the call's."""
    channel: socket.socket

    def begin(self, fds: dict[int, int], *, shared: bool = False) -> int:
        """Start the call with exactly the descriptors ``{number: ours}``; the pid to wait for.

        The fence ends with the call unless it is ``shared``, which only an inmate may do that runs nobody's program and
        leaves nothing. Raises OSError when the warden is gone.
        """
        with self.channel:
            mark = _SHARED if shared else b""
            socket.send_fds(self.channel, [bytes(fds) + mark], list(fds.values()))
            if shared:
                self.channel.send(mark)  # the first message goes to the inmate, this one stays for the warden
        return self.pid


def stand(fence: list[str] | Fence, inmate: Callable[[], object]) -> Warden:
    """Have a place for one call in a fence that stands or is being built, or in one of its own, which is built from a
    bubblewrap command line. Whoever closes the channel instead of beginning a call ends it.

    ``inmate`` is what runs inside once the call begins and must not return. The caller must be able to fork: one
    thread, or none that holds a lock. Raises OSError when there can be no process.
    """
    caller = os.getpid()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            raise
        if pid == 0:
            _warden(caller, fence, theirs.detach(), inmate)
    return Warden(pid, ours)


def spawn(argv: list[str], fds: dict[int, int], inmate: Callable[[], object]) -> int:
    """Start a call in a fence of its own; the pid to wait for. Raises OSError when there can be no process."""
    return stand(argv, inmate).begin(fds)


def _warden(caller: int, fence: list[str] | Fence, channel: int, inmate: Callable[[], object]) -> NoReturn:
    try:
        gc.disable()  # objects of the caller believe that they own descriptors, whose numbers are others' now
        _die_with(caller)
        channel, *kept = _alone([channel, *(fence[1:] if isinstance(fence, Fence) else ())])
        try:
            own = Fence(fence.builder, *kept) if isinstance(fence, Fence) else build(fence)
            os._exit(_guard(caller, own, channel, inmate))
        except BaseException as exc:
            _take(channel)
            _complain(exc)
    finally:
        os._exit(FAILED)


def _die_with(caller: int) -> None:
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != caller:
        os._exit(FAILED)


def _complain(exc: BaseException) -> None:
    """Say on the call's output why it did not begin."""
    why = str(exc) if isinstance(exc, _Unbuilt) else f"the fence could not be entered: {type(exc).__name__}: {exc}"
    os.write(2, f"{why}\n".encode("utf-8", "replace"))


def _alone(kept: list[int]) -> list[int]:
    """Nothing of the caller but its memory and these descriptors, whose new numbers are returned: own session, signals
    as they come; the numbers of a call's own are free.
    """
    os.setsid()
    signal.set_wakeup_fd(-1)
    for sig in children.DEFAULTS:
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


def _take(channel: int) -> None:
    """Wait for the call, and have its descriptors under their numbers and nothing else open; ends when no call comes.

    Raises OSError.
    """
    with socket.socket(fileno=channel) as waits:
        asked, received, _, _ = socket.recv_fds(waits, _ASKED, _PLACES)
        if not asked:
            os._exit(FAILED)
        copies = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for fd in received]
        waits.detach()
    os.closerange(0, _HIGH)
    for number, copy in zip(asked.removesuffix(_SHARED), copies, strict=True):
        os.dup2(copy, number)
    os.closerange(_HIGH, os.sysconf("SC_OPEN_MAX"))


class _Unbuilt(Exception):
    """Bubblewrap built no fence; the message is its own words."""


def _guard(caller: int, fence: Fence, channel: int, inmate: Callable[[], object]) -> int:
    """Enter the fence, have a call run in it, see that nothing of it is left; its exit code.

    Raises _Unbuilt, OSError: then nothing ran.
    """
    gone = _high(os.pidfd_open(fence.builder))
    if not os.read(fence.tickets, 1):
        words = os.pread(fence.words, _WORDS, 0).decode("utf-8", "replace").rstrip()
        raise _Unbuilt(words or "bubblewrap ended without a word")
    first = int(json.loads(os.pread(fence.status, _WORDS, 0).split(b"\n")[0])["child-pid"])
    _join(first)
    kernel.without_capabilities()
    _die_with(caller)  # joining may have undone it
    child = 0

    def stop(_number: int, _frame: object) -> None:
        if child and _is_shared(channel):
            _end_group(child)
        else:
            _end(first)

    signal.signal(signal.SIGTERM, stop)
    child = os.fork()
    if child == 0:
        _enter(channel, inmate)
    _, ended = os.waitpid(child, 0)
    if not _is_shared(channel):
        _end(first)
        poller = select.poll()
        poller.register(gone, select.POLLIN)
        poller.poll()
    code = os.waitstatus_to_exitcode(ended)
    return code if code >= 0 else 128 - code


def _is_shared(channel: int) -> bool:
    """True when the call that began was told to leave the fence to others."""
    told = socket.socket(fileno=channel)
    try:
        return told.recv(_ASKED, socket.MSG_DONTWAIT | socket.MSG_PEEK).endswith(_SHARED)
    except BlockingIOError:
        return False
    finally:
        told.detach()


def _end(first: int) -> None:
    """End everything in a process namespace: the kernel does that with its first process."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(first, signal.SIGKILL)


def _end_group(inmate: int) -> None:
    """End an inmate of a shared fence and what it started, which never leaves its group."""
    try:
        os.killpg(inmate, signal.SIGKILL)
    except ProcessLookupError:  # it does not lead a group yet
        _end(inmate)


def _pipe() -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    return _high(read), _high(write)


def _high(fd: int) -> int:
    """The same descriptor above the call's own."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    finally:
        os.close(fd)


def _join(first: int) -> None:
    """Enter the namespaces of the process ``first``; children of ours are born in its process namespace.

    The fence's mounts may belong to an outer user namespace than its processes: bubblewrap makes a second one when it
    needed to be root in the first. Raises OSError.
    """
    opened = {name: _namespace(first, name) for name in (*_NAMESPACES, "user")}
    others = [name for name in _NAMESPACES if os.stat(f"/proc/self/ns/{name}").st_ino != _number(opened[name])]
    owner = fcntl.ioctl(opened["mnt"], _NS_GET_USERNS)
    kernel.setns(owner)
    for name in others:
        kernel.setns(opened[name])
    if _number(owner) != _number(opened["user"]):
        kernel.setns(opened["user"])
    for fd in (owner, *opened.values()):
        os.close(fd)


def _number(namespace: int) -> int:
    return os.fstat(namespace).st_ino


def _namespace(pid: int, name: str) -> int:
    return _high(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC))


def _enter(channel: int, inmate: Callable[[], object]) -> NoReturn:
    """Inside: wait for the call, then run it."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        _take(channel)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else what is ours in /proc belongs to somebody else
        inmate()
    except BaseException as exc:
        _complain(exc)
    finally:
        os._exit(FAILED)

"""Starting a fenced call without starting an interpreter: bubblewrap builds the fence around a shell that only waits,
and a fork of this process enters it and goes on as the runner. Standard library only.

An interpreter that begins inside the fence costs four times what the fence itself costs, and every call pays for it.
The fork has everything loaded. Who is who, from the outside in: the *warden* (a fork of the caller, in its namespaces)
starts bubblewrap, joins the namespaces that it made and forks the *inmate*, which is in the process namespace too,
gives up every capability that joining gave it, and becomes the tool. The caller waits for the warden, which ends with
the tool's exit code when nothing of the fence is left. When the caller dies, the warden is killed, and with it
bubblewrap, the namespaces' first process and all that runs in them.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import select
import signal
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
_STATUS_FD = 3
_FILTER_FD = 4
_FIRST_COPY = 10
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
        built, copies = walls.with_copies(fence, _FIRST_COPY)
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


def spawn(fence: list[str] | Fence, fds: dict[int, int], inmate: Callable[[], object], *, shared: bool = False) -> int:
    """Start a call in a fence that stands already, or in one of its own, which is built from a bubblewrap command line;
    returns the warden's pid, whose exit code is the call's.

    ``inmate`` is what runs inside, with only the descriptors ``{number: ours}`` open, and must not return. A fence ends
    with the call unless it is ``shared``, which only an inmate may do that runs nobody's program and leaves nothing.
    The caller must be able to fork: one thread, or none that holds a lock. Raises OSError when there can be no process.
    """
    caller = os.getpid()
    pid = os.fork()
    if pid == 0:
        _warden(caller, fence, fds, inmate, shared)
    return pid


def _warden(
    caller: int, fence: list[str] | Fence, fds: dict[int, int], inmate: Callable[[], object], shared: bool
) -> NoReturn:
    try:
        gc.disable()  # objects of the caller believe that they own descriptors, whose numbers are others' now
        _die_with(caller)
        fence = _alone(fds, fence)
        own = fence if isinstance(fence, Fence) else build(fence)
        os._exit(_guard(caller, own, inmate, shared))
    except BaseException as exc:
        _complain(exc)
    finally:
        os._exit(FAILED)


def _die_with(caller: int) -> None:
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != caller:
        os._exit(FAILED)


def _complain(exc: BaseException) -> None:
    os.write(2, f"the fence could not be entered: {type(exc).__name__}: {exc}\n".encode("utf-8", "replace"))


def _alone(fds: dict[int, int], fence: list[str] | Fence) -> list[str] | Fence:
    """Nothing of the caller but its memory: own session, signals as they come, and exactly these descriptors; the
    fence, with those of its own moved.
    """
    os.setsid()
    signal.set_wakeup_fd(-1)
    for sig in children.DEFAULTS:
        signal.signal(sig, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    kept = fence[1:] if isinstance(fence, Fence) else ()
    wanted = {**fds, **dict(zip(range(_PLACES, _PLACES + len(kept)), kept, strict=True))}
    copies = {number: fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, _HIGH) for number, ours in wanted.items()}
    for number, copy in copies.items():
        os.dup2(copy, number, inheritable=number < _PLACES)
    for number in range(_PLACES):
        if number not in fds:
            os.closerange(number, number + 1)
    os.closerange(_PLACES + len(kept), os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    return Fence(fence.builder, *range(_PLACES, _PLACES + len(kept))) if isinstance(fence, Fence) else fence


def _guard(caller: int, fence: Fence, inmate: Callable[[], object], shared: bool) -> int:
    """Enter the fence, run the call in it, see that nothing of it is left; its exit code."""
    gone = os.pidfd_open(fence.builder)
    if not os.read(fence.tickets, 1):
        os.write(2, os.pread(fence.words, _WORDS, 0) or b"bubblewrap ended without a word")
        return FAILED
    first = int(json.loads(os.pread(fence.status, _WORDS, 0).split(b"\n")[0])["child-pid"])
    _join(first)
    _die_with(caller)  # joining may have undone it
    signal.signal(signal.SIGTERM, lambda _number, _frame: _end(first))
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        fence.close()
        os.close(gone)
        _enter(inmate)
    _, ended = os.waitpid(child, 0)
    if not shared:
        _end(first)
        poller = select.poll()
        poller.register(gone, select.POLLIN)
        poller.poll()
    code = os.waitstatus_to_exitcode(ended)
    return code if code >= 0 else 128 - code


def _end(first: int) -> None:
    """End everything in a process namespace: the kernel does that with its first process."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(first, signal.SIGKILL)


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


def _enter(inmate: Callable[[], object]) -> NoReturn:
    """Inside: give up what joining brought, then run."""
    try:
        os.setsid()
        kernel.without_capabilities()
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else what is ours in /proc belongs to somebody else
        inmate()
    except BaseException as exc:
        _complain(exc)
    finally:
        os._exit(FAILED)

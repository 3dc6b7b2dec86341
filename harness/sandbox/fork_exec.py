"""Starting children with exactly the file descriptors they shall have, and reading short answers from them. Standard
library only.

`os.posix_spawn` rather than ``subprocess``: the keeper lives on a few megabytes and must not fork its own pages.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import time

from harness.linux.proc import descendants

DEFAULTS = (
    signal.SIGPIPE,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGCHLD,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXFSZ,
)
"""Signals that a child of ours finds as any program expects them, whatever we ignore or handle."""
_HIGH = 100  # descriptors are first copied up here, so that no dup2 overwrites one that is still needed


def spawn(argv: list[str], env: dict[str, str], fds: dict[int, int], *, session: bool = True) -> int:
    """Start ``argv[0]`` (a path) with only the descriptors ``{number in the child: ours}`` open; returns its pid.

    ``session`` makes it leader of a new session. Signals are unblocked and at their defaults. Ours stay open in the
    caller. Descriptors that somebody above us left inheritable are closed in it. Raises OSError when the program cannot
    be started.
    """
    copies: list[int] = []
    actions: list[tuple[int, int, int] | tuple[int, int]] = [
        (os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable() if fd not in fds
    ]
    try:
        for number, ours in fds.items():
            copy = fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, _HIGH)
            copies.append(copy)
            actions.append((os.POSIX_SPAWN_DUP2, copy, number))
        return os.posix_spawn(
            argv[0], argv, env, file_actions=actions, setsid=session, setsigmask=[], setsigdef=DEFAULTS
        )
    finally:
        for copy in copies:
            os.close(copy)


def _inheritable() -> list[int]:
    """Our descriptors above the standard ones that an exec would keep."""
    found: list[int] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:  # the descriptor that listed the folder is gone again
            continue
    return found


def capture(
    argv: list[str], env: dict[str, str], timeout_s: float, *, limit: int = 1 << 20, errors: bool = True
) -> tuple[int, bytes]:
    """Run a short command; (exit code as ``waitstatus_to_exitcode``, its output, with ``errors`` its errors too, at
    most ``limit`` bytes).

    A child that is not done after ``timeout_s`` is killed and counts as exit code -9. Raises OSError when it cannot
    start.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    try:
        pid = spawn(argv, env, {0: null, 1: write_end, 2: write_end if errors else null})
    except OSError:
        os.close(read_end)
        raise
    finally:
        os.close(null)
        os.close(write_end)
    output = bytearray()
    end = time.monotonic() + timeout_s
    waiter = select.poll()
    waiter.register(read_end, select.POLLIN)
    try:
        while waiter.poll(max(0.0, end - time.monotonic()) * 1000):
            chunk = os.read(read_end, 65536)
            if not chunk:
                break
            if len(output) < limit:
                output += chunk[: limit - len(output)]
        else:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(read_end)
    return os.waitstatus_to_exitcode(status), bytes(output)


def kill_below(pid: int, *, rounds: int = 50) -> int:
    """SIGKILL every descendant of ``pid`` until none is left; returns how many were still seen in the last round.

    ``pid`` must be a child subreaper for this to reach processes that double-forked.
    """
    left: list[int] = []
    for _ in range(rounds):
        left = descendants(pid)
        if not left:
            return 0
        for child in left:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.002)  # gives the kernel a moment between rounds; the loop itself waits for the empty list
    return len(left)

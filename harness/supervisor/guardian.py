"""The supervisor's parent: one per state folder, restarts it, ends one that hangs, reaps orphans, holds the memory
of the credentials.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections import deque
from pathlib import Path

from harness.linux import groups, kernel
from harness.protocol import locks, standby, stop_mark
from harness.protocol.paths import FolderError, ensure_private, resolve
from harness.supervisor import sign_of_life

EXIT_ASKED = 0
EXIT_BROKEN = 1
EXIT_REFUSED = 3
EXIT_OTHER_LIVES = 4
_FIRST = 0.1
_LONGEST = 10.0
_PENALTY = 60.0
_WINDOW = 60.0
_LIMIT = 10
_STOP_GRACE = 30.0
_LOCK_WAIT = 2.0


def say(text: str) -> None:
    """One dated line in the supervisor's log."""
    print(
        f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} guardian {os.getpid()}: {text}",
        file=sys.stderr,
        flush=True,
    )


def delay(deaths: deque[float], now: float, jitter: float) -> float:
    """Seconds to wait before the next start: 0.1 s doubling to 10 s (jitter 0..1 takes up to half off), a minute beyond
    ten deaths a minute.
    """
    while deaths and now - deaths[0] > _WINDOW:
        deaths.popleft()
    if len(deaths) >= _LIMIT:
        return _PENALTY
    doubled: float = _FIRST * 2 ** max(0, len(deaths) - 1)
    return min(_LONGEST, doubled) * (1 - jitter / 2)


def _reap(child: int) -> int | None:
    """Reap everything that ended; the wait status of ``child`` when it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = status


def _spawn(credentials: int, sign: int) -> int:
    given = ["--credentials-fd", str(credentials), "--sign-fd", str(sign)]
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-s", "-m", "harness.supervisor.main", *given],
        os.environ,
        setsigmask=[],
        setsigdef=[signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD],
    )


def _wait(child: int, signals: set[signal.Signals], seconds: float) -> tuple[int | None, bool]:
    """Wait for the child's end or for a request to stop: (wait status, asked to stop)."""
    deadline = time.monotonic() + seconds
    while True:
        if (status := _reap(child)) is not None:
            return status, False
        left = deadline - time.monotonic()
        if left <= 0:
            return None, False
        got = signal.sigtimedwait(signals, left)
        if got is not None and got.si_signo in (signal.SIGTERM, signal.SIGINT):
            return None, True


class Standby:
    """Who takes over when this process and the supervisor are killed together."""

    def __init__(self, credentials: int) -> None:
        self._credentials = credentials
        self._pipe = -1

    def keep(self) -> None:
        """Have one wait; one that cannot be started now is tried again the next time."""
        if self._pipe >= 0 and standby.gone(self._pipe):
            os.close(self._pipe)
            self._pipe = -1
        if self._pipe < 0:
            with contextlib.suppress(OSError):
                self._pipe = standby.start(self._credentials)

    def leave(self) -> None:
        """It is not needed any more: this process ends in order."""
        if self._pipe >= 0:
            with contextlib.suppress(OSError):
                os.write(self._pipe, standby.LEAVES)


def _watch(child: int, signals: set[signal.Signals], sign: int, successor: Standby) -> tuple[int | None, bool]:
    """As `_wait`, for as long as it takes; a child that hangs is killed."""
    watched = sign_of_life.Watched(child, sign)
    while True:
        successor.keep()
        status, asked = _wait(child, signals, sign_of_life.LOOK_S)
        if status is not None or asked:
            return status, asked
        if why := watched.hangs():
            say(f"the supervisor {why} and is killed; sessions live on")
            os.kill(child, signal.SIGKILL)


def run(runtime: Path, credentials: int, successor: Standby) -> int:
    """Keep one supervisor alive until it is asked to stop; returns the exit code."""
    signals = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    deaths: deque[float] = deque()
    sign = os.eventfd(0, os.EFD_NONBLOCK)
    os.set_inheritable(sign, True)
    while True:
        child = _spawn(credentials, sign)
        status, asked = _watch(child, signals, sign, successor)
        if asked:
            with contextlib.suppress(OSError):
                stop_mark.write(runtime, child)  # so that neither an open screen nor a standby starts another one
            os.kill(child, signal.SIGTERM)
            status, _ = _wait(child, signals - {signal.SIGTERM, signal.SIGINT}, _STOP_GRACE)
            if status is None:
                say("the supervisor did not stop in time and is killed; sessions live on")
                os.kill(child, signal.SIGKILL)
            return EXIT_ASKED
        code = os.waitstatus_to_exitcode(status or 0)
        if code in (EXIT_ASKED, EXIT_REFUSED, EXIT_OTHER_LIVES):
            return code
        if stop_mark.names(runtime, child):
            say("the supervisor was killed while it was stopping; it stays stopped")
            return EXIT_ASKED
        deaths.append(time.monotonic())
        pause = delay(deaths, time.monotonic(), random.random())
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        say(
            f"the supervisor ended ({how}); it starts again in {pause:.1f} s"
            + (f" ({_LIMIT} ends within {_WINDOW:.0f} s)" if pause == _PENALTY else "")
        )
        if _wait(0, signals, pause)[1]:
            return EXIT_ASKED


def main() -> int:
    """Entry point; folders come through ``WATCHFLOOR_STATE`` and its siblings, or the user's defaults."""
    from harness.supervisor.base.stderr import say_without_fail

    os.umask(0o077)
    say_without_fail()
    os.chdir("/")
    folders = resolve()
    try:
        ensure_private(folders.state)
        succeeds = standby.SUCCEEDS in sys.argv
        if locks.take(folders.guardian_lock, 0.0 if succeeds else _LOCK_WAIT) is None:
            return EXIT_ASKED
        if succeeds and stop_mark.names_last(folders.runtime):
            return EXIT_ASKED
    except (FolderError, OSError) as exc:
        print(f"refused: {exc}", file=sys.stderr, flush=True)
        return EXIT_REFUSED
    groups.lower_ours()
    kernel.hide_memory()
    kernel.adopt_orphans()
    given = sys.argv[sys.argv.index("--credentials-fd") + 1] if "--credentials-fd" in sys.argv else ""
    credentials = int(given) if given else os.memfd_create("watchfloor-credentials", os.MFD_CLOEXEC)
    os.set_inheritable(credentials, True)
    successor = Standby(credentials)
    code = run(folders.runtime, credentials, successor)
    successor.leave()
    return code


if __name__ == "__main__":
    sys.exit(main())

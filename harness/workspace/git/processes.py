"""Children that may meet what an agent made: bounded in time and output, ended as a whole group, none left when we
leave.

A worker's piece of work has a `Limit`; every child it starts gets what is left of it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

MAX_OUTPUT = 1 << 30
MAX_ERRORS = 1 << 20
_CHUNK = 1 << 16
_worker = threading.local()
_lock = threading.Lock()
_running: set[int] = set()
_over = threading.Event()


class Overdue(Exception):
    """The child did not end in the ``seconds`` it was given and was killed with all of its group; 0: there was no time
    left to begin.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"did not end within {seconds:.0f} s" if seconds else "was not done: the time for this work is over"
        )


class TooMuch(Exception):
    """The child wrote more than ``MAX_OUTPUT`` bytes and was killed."""


class Done(NamedTuple):
    """How a child ended. ``cut``: its output reached the limit, and it was ended there."""

    status: int
    out: bytes
    err: bytes
    cut: bool


class Limit:
    """The time that one piece of work has, and the children it started; `interrupt` may be called from any thread."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.groups: set[int] = set()

    def interrupt(self) -> None:
        """Its time is over: its children are killed, and no further one gets any."""
        self.end = 0.0
        _kill(self.groups)


@contextlib.contextmanager
def within(limit: Limit) -> Iterator[None]:
    """What this thread does inside must be over in that time: children that run then are killed."""
    _worker.limit = limit
    try:
        yield
    finally:
        _worker.limit = None


def _limit() -> Limit | None:
    found: Limit | None = getattr(_worker, "limit", None)
    return found


def left(most: float) -> float:
    """Seconds that something may take now: ``most``, or what is left of this thread's time."""
    limit = _limit()
    return most if limit is None else max(0.0, min(most, limit.end - time.monotonic()))


def end_all() -> None:
    """Kill every child of this kind that runs, and each that is started from now on.

    For the very end of this process.
    """
    _over.set()
    _kill(_running)


def _kill(groups: set[int]) -> None:
    with _lock:
        for group in groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    stdin: bytes | int,
    timeout: float,
    limit: int | None = None,
    umask: int = -1,
) -> Done:
    """Run one child in a process group of its own; ``stdin`` is bytes or an open file. ``limit`` ends it after that
    many bytes of output. ``umask`` -1: ours.

    Raises Overdue, TooMuch, and OSError when it cannot be started.
    """
    limit_here = _limit()
    seconds = left(timeout)
    if not seconds:
        raise Overdue(seconds)
    end = time.monotonic() + seconds
    process = subprocess.Popen(
        argv,
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        umask=umask,
    )
    try:
        with _lock:
            _running.add(process.pid)
            if limit_here is not None:
                limit_here.groups.add(process.pid)
        if _over.is_set() or not left(timeout):
            raise Overdue(0.0)
        return _Talk(
            process,
            stdin if isinstance(stdin, bytes) else b"",
            MAX_OUTPUT if limit is None else limit,
            limit is not None,
        ).until(end, seconds)
    finally:
        with _lock:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            _running.discard(process.pid)
            if limit_here is not None:
                limit_here.groups.discard(process.pid)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was meant for a child that is gone
                    pipe.close()


class _Talk:
    """Feeding a child and reading both of its outputs until it ends, its time is over or it said enough."""

    def __init__(self, process: subprocess.Popen[bytes], given: bytes, most: int, may_cut: bool) -> None:
        self._process = process
        self._given = memoryview(given)
        self._most = most
        self._may_cut = may_cut
        self._out = bytearray()
        self._err = bytearray()

    def until(self, end: float, seconds: float) -> Done:
        process = self._process
        assert process.stdout is not None
        assert process.stderr is not None
        with selectors.DefaultSelector() as selector:
            for pipe, into in ((process.stdout, self._out), (process.stderr, self._err)):
                selector.register(pipe, selectors.EVENT_READ, into)
            if process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                selector.register(process.stdin, selectors.EVENT_WRITE)
            while selector.get_map():
                ready = selector.select(max(0.0, end - time.monotonic()))
                if not ready:
                    raise Overdue(seconds)
                for key, _ in ready:
                    open_still = self._feed(key.fd) if key.data is None else self._take(key.fd, key.data)
                    if not open_still:
                        selector.unregister(key.fileobj)
                        if key.data is None and process.stdin is not None:
                            process.stdin.close()
                if len(self._out) > self._most:
                    if not self._may_cut:
                        raise TooMuch(f"wrote more than {self._most} bytes")
                    return Done(0, bytes(self._out[: self._most]), bytes(self._err), True)
        try:
            return Done(process.wait(max(0.0, end - time.monotonic())), bytes(self._out), bytes(self._err), False)
        except subprocess.TimeoutExpired as exc:
            raise Overdue(seconds) from exc

    def _feed(self, fd: int) -> bool:
        try:
            self._given = self._given[os.write(fd, self._given[:_CHUNK]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return bool(self._given)

    def _take(self, fd: int, into: bytearray) -> bool:
        chunk = os.read(fd, _CHUNK)
        if into is not self._err or len(into) < MAX_ERRORS:
            into += chunk
        return bool(chunk)

"""Blocking work off the loop, in small pools that never share a thread: what one session lets stand still stops nobody
else.

The threads are daemons: the supervisor's exit waits for none of them, whatever they wait for.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar, cast

from harness.workspace.git import processes
from harness.workspace.git.errors import WorkspaceError

T = TypeVar("T")
GRACE_S = 2.0
"""After its time is over a job's children are killed; a job that has not come back this much later stands still."""
IDLE_S = 20.0
_DAY_S = 24 * 3600.0


class StandsStill(WorkspaceError):
    """The work did not come back in time, or there is no thread left that could begin it.

    The message names the pool and the work.
    """

    code = "stands_still"


class _Job:
    """One piece of work: begun by a thread, waited for in a loop."""

    __slots__ = ("_loop", "began", "dropped", "future", "lasting", "limit", "limit_s", "what", "work")

    def __init__(
        self, what: str, limit_s: float, work: Callable[[], object], lasting: bool, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.what = what
        self.limit_s = limit_s
        self.work = work
        self.lasting = lasting
        self.limit: processes.Limit | None = None
        self.began = 0.0
        self.dropped = False
        self.future: asyncio.Future[object] = loop.create_future()
        self._loop = loop

    def do(self) -> None:
        """In the thread: the work, and word of how it ended."""
        self.limit = processes.Limit(self.limit_s)
        try:
            with processes.within(self.limit):
                result = self.work()
        except BaseException as exc:
            self._tell(None, exc)
        else:
            self._tell(result, None)

    def _tell(self, result: object, failed: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._ended, result, failed)

    def _ended(self, result: object, failed: BaseException | None) -> None:
        if self.future.done():
            return
        if failed is None:
            self.future.set_result(result)
        elif isinstance(failed, StopIteration):  # a future takes none
            self.future.set_exception(RuntimeError(f"{self.what}: StopIteration"))
        else:
            self.future.set_exception(failed)


class Threads:
    """At most ``most`` daemon threads, made when there is work and gone when there is none for a while.

    ``name`` goes into messages.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._change = threading.Condition()
        self._waiting: deque[_Job] = deque()
        self._running: set[_Job] = set()
        self._threads = 0
        self._idle = 0

    def still(self) -> list[str]:
        """What stands still: work whose time and grace are over and whose thread has not come back."""
        now = time.monotonic()
        with self._change:
            return sorted(job.what for job in self._running if job.began and now > job.began + job.limit_s + GRACE_S)

    def interrupt(self) -> None:
        """End the children of what is at work now, unless it is lasting: it fails at its next look at git, and its
        thread is free.
        """
        with self._change:
            limits = [job.limit for job in self._running if job.limit is not None and not job.lasting]
        for limit in limits:
            limit.interrupt()

    async def run(self, what: str, limit_s: float, work: Callable[[], T], *, lasting: bool = False) -> T:
        """The result of ``work`` (or what it raises), done in one of the threads within ``limit_s`` seconds.

        The time counts from its beginning, and so does waiting for a free thread. Raises StandsStill when either is
        over, and at once while every thread stands still; ``what`` says in words what is done, for the message.
        ``lasting``: `interrupt` lets it end.
        """
        still = self.still()
        if len(still) >= self._most:
            raise StandsStill(f"{self._name}: {what} cannot begin while this stands still: {'; '.join(still)}")
        loop = asyncio.get_running_loop()
        job = _Job(what, limit_s, work, lasting, loop)
        self._submit(job)
        late = loop.call_later(limit_s, self._late, job)
        try:
            return cast(T, await job.future)
        finally:
            late.cancel()
            self._drop(job)

    def _late(self, job: _Job) -> None:
        """Its time is over: who waits is told, once the grace of work that has begun is over too."""
        if job.future.done():
            return
        if not self._drop(job):
            at_work = "; ".join(self._at_work()) or "nothing"
            told = f"did not begin within {job.limit_s:.0f} s; at work: {at_work}"
        elif (left := job.began + job.limit_s + GRACE_S - time.monotonic()) > 0:
            asyncio.get_running_loop().call_later(left, self._late, job)
            return
        else:
            told = f"did not end within {job.limit_s:.0f} s; something there cannot be read"
        job.future.set_exception(StandsStill(f"{self._name}: {job.what} {told}"))

    def _drop(self, job: _Job) -> bool:
        """Nobody waits for it any more: unless it has begun it never does. True when it has."""
        with self._change:
            job.dropped = True
            return job.began > 0

    async def call(self, work: Callable[..., T], *args: object) -> T:
        """``work(*args)`` in one of the threads, however long it takes. For what only we write."""
        return await self.run(getattr(work, "__name__", "work"), _DAY_S, lambda: work(*args))

    def _at_work(self) -> list[str]:
        with self._change:
            return sorted(job.what for job in self._running)

    def _submit(self, job: _Job) -> None:
        with self._change:
            self._waiting.append(job)
            if self._idle >= len(self._waiting):
                self._change.notify()
                return
            if self._threads >= self._most:
                return
            self._threads += 1
        try:
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        except BaseException:
            with self._change:
                self._threads -= 1
            raise

    def _next(self) -> _Job | None:
        with self._change:
            while True:
                if not self._waiting:
                    self._idle += 1
                    self._change.wait(IDLE_S)
                    self._idle -= 1
                if not self._waiting:
                    self._threads -= 1
                    return None
                job = self._waiting.popleft()
                if not job.dropped:
                    job.began = time.monotonic()
                    self._running.add(job)
                    return job

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            job.do()
            with self._change:
                self._running.discard(job)
            del job


at_home = Threads("the supervisor", 8).call
"""For what belongs to no session's worktree: its folders, logs, processes.

Nothing that an agent can write is touched there.
"""

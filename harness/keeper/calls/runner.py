"""Running one call: start it, spool its output within limits, end it in time, make its result durable.

Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from harness.domain.actions.action import FileAction, PushAction
from harness.domain.calls.call_states import CallEnd
from harness.eventlog import blobs
from harness.eventlog.writer import NoSpace
from harness.executor import spawn
from harness.executor.files import SHOWN_BYTES
from harness.executor.warm_sandbox import Ready
from harness.keeper.calls import process_trees, spool, watch
from harness.keeper.calls.watchers import Watcher, Watchers
from harness.keeper.loop.fault_points import Faults
from harness.keeper.loop.timers import Timer, Turns
from harness.linux import proc
from harness.linux.scarce import scarce
from harness.protocol.paths import SessionFolder
from harness.sandbox.limits import Over

PREVIEW_BYTES = SHOWN_BYTES
_HEAD = 6 * 1024
_TAIL = 2 * 1024
_CHUNK = 256 * 1024
_RESULT_BYTES = 1024 * 1024
_FORCE_AFTER_S = 2.0
_DRAIN_S = 2.0
_STRAYS_S = 5.0
_RETRY_S = 1.0
_SHARED_S = 2.0
"""Seconds that the end of a call by SIGTERM waits for the keeper's own: who ends a machine or a scheduler's step sends
one to every process, in no order.
"""
_LOOK_S = 0.05
_NEARLY = 0.9
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Around(NamedTuple):
    """What every call of one keeper runs in."""

    turns: Turns
    folder: SessionFolder
    faults: Faults
    watchers: Watchers
    ready: Ready


class Prepared(NamedTuple):
    """A call that may be started: its files are at ``base``, its output goes to the descriptor ``output``."""

    call_id: str
    spec: spawn.Spawn
    base: Path
    output: int


class RunningCall:
    """One call from its start to its durable result; ``on_end(data)`` gets the fields of ``tool.ended`` and may raise
    NoSpace to be asked again.
    """

    def __init__(
        self,
        around: Around,
        call: Prepared,
        on_end: Callable[[dict[str, object]], None],
        spare: Callable[[], set[int]],
    ) -> None:
        """Start it; its output's descriptor becomes ours. ``spare()`` are children of ours that are no tool.

        Raises OSError when it cannot be started; then nothing is left behind.
        """
        self.call_id = call.call_id
        self._loop = around.turns
        self._folder = around.folder
        self._faults = around.faults
        self._ready = around.ready
        self._spec = call.spec
        self._on_end = on_end
        self._spare = spare
        self._base = call.base
        self._began = time.monotonic()
        self._ms = 0
        self._why = ""
        self._asked_late = ""
        self._over: Over | None = None
        self._full: Over | None = None
        self._largest = 0
        self._watchers = around.watchers
        self._watcher: Watcher | None = None
        self._status: int | None = None
        self._data: dict[str, object] | None = None
        self._kept = 0
        self._dropped = 0
        self._result = bytearray()
        self._timers: list[Timer] = []
        self._exited_at = 0.0
        self._done = False
        self._file = call.output
        self._open: set[int] = set()
        self._pid = self._start()
        self._await_exit()
        if (who := proc.identify(self._pid)) is not None:
            with contextlib.suppress(OSError):
                spool.note_leader(self._base, who)
        self._after(call.spec.timeout_s, lambda: self.stop("timeout"))
        self._after(0.0 if around.watchers.known is None else watch.BEGIN_AFTER_S, self._watch)

    def _watch(self) -> None:
        """Look from now on what the call takes; until then what the kernel limits must do."""
        if self._status is not None:
            return
        try:
            self._watcher = self._watchers.begin(self._spec, self._pid, self._hear)
        except OSError as exc:
            print(f"keeper: call {self.call_id} is not watched for its limits: {exc}", file=sys.stderr, flush=True)

    def _hear(self, what: str, over: Over) -> None:
        if what == "full":
            self._full = over
        elif not self._why and self._status is None:
            self._over = over
            self.stop("error")

    def _let_go(self) -> None:
        """The watcher holds nothing of it any more."""
        self._watcher = None
        self._settle()

    def _start(self) -> int:
        """Its pid.

        All that can fail comes before the start or cannot fail after it: what is refused here never runs.
        """
        written: list[int] = []
        ours = [self._spec.action_fd]
        try:
            self._pipe(written, self._take_output)
            self._pipe(written, self._take_result)
            output, results = written
            ours.clear()
            return spawn.start(self._spec, output, results, self._ready)
        except OSError:
            for fd in ours:
                os.close(fd)
            for fd in list(self._open):
                self._drop(fd)
            os.close(self._file)
            raise
        finally:
            for fd in written:
                os.close(fd)

    def _pipe(self, written: list[int], take: Callable[[bytes], None]) -> int:
        """A pipe whose reading end is watched; the other goes to ``written``. Raises OSError."""
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        written.append(theirs)
        os.set_blocking(ours, False)
        try:
            self._loop.watch(ours, lambda: self._read(ours, take))
        except OSError:
            os.close(ours)
            raise
        self._open.add(ours)
        return ours

    def _await_exit(self) -> None:
        """Hear of its end by a descriptor; when there is none to be had, look every now and then."""
        self._pidfd = -1
        try:
            self._pidfd = os.pidfd_open(self._pid)
            self._loop.watch(self._pidfd, self._exited)
        except OSError as exc:
            print(
                f"keeper: call {self.call_id} has no descriptor to wait on, so it is looked at now and then: {exc}",
                file=sys.stderr,
                flush=True,
            )
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1
            self._loop.call_later(_LOOK_S, self._look_for_exit)

    def _look_for_exit(self) -> None:
        if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            self._exited()
        else:
            self._loop.call_later(_LOOK_S, self._look_for_exit)

    def _after(self, seconds: float, run: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(seconds, run))

    # -- while it runs -----------------------------------------------------------------------------

    @property
    def reads(self) -> bool:
        """It changes nothing."""
        return self._spec.reads

    @property
    def pids(self) -> tuple[int, ...]:
        """The children that are its own as long as it runs."""
        return (self._pid,) if self._status is None else ()

    @property
    def sandbox(self) -> list[str]:
        """Command line of its sandbox when that is the session's own and nothing more; empty otherwise."""
        return self._spec.argv if self._spec.plain else []

    def stop(self, why: str) -> None:
        """End it before its time (``cancelled``, ``timeout``, or ``error`` for a limit): its whole tree, now. One that
        a SIGTERM ended shortly before was ended by the same hand.
        """
        if self._why or self._done:
            return
        if self._status is not None:
            self._asked_late = why
            self._settle()
            return
        self._why = why
        self._end()

    def _end(self) -> None:
        spawn.stop(self._spec, self._pid)
        self._after(_FORCE_AFTER_S, self._force)

    def _force(self) -> None:
        if self._status is None:
            spawn.stop(self._spec, self._pid, force=True)
            self._after(_FORCE_AFTER_S, self._force)

    def _read(self, fd: int, take: Callable[[bytes], None]) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if data:
            take(data)
            return
        self._drop(fd)
        self._settle()

    def _drop(self, fd: int) -> None:
        self._open.discard(fd)
        self._loop.unwatch(fd)
        os.close(fd)

    def _take_output(self, data: bytes) -> None:
        room = max(0, self._spec.output_bytes - self._kept)
        kept = 0
        try:
            kept = os.write(self._file, data[:room]) if room else 0
        except OSError as exc:
            if exc.errno not in _FULL:
                raise
        self._kept += kept
        self._dropped += len(data) - kept
        self._faults.hit("keeper.tool_running")

    def _take_result(self, data: bytes) -> None:
        self._result += data[: max(0, _RESULT_BYTES - len(self._result))]

    # -- its end -----------------------------------------------------------------------------------

    def _exited(self) -> None:
        if self._pidfd >= 0:
            self._loop.unwatch(self._pidfd)
            os.close(self._pidfd)
        _, self._status, used = os.wait4(self._pid, 0)
        self._largest = used.ru_maxrss << 10
        self._ms = round((time.monotonic() - self._began) * 1000)
        for timer in self._timers:
            timer.cancel()
        self._exited_at = time.monotonic()
        self._after(_DRAIN_S, self._stop_draining)
        if self._watcher is None:
            self._settle()
        else:
            self._watcher.end(self._let_go)

    def _stop_draining(self) -> None:
        for fd in list(self._open):
            self._drop(fd)
        self._settle()

    def _settle(self) -> None:
        """Go on once the process, everything below it and both pipes are at their end, and no watcher holds anything
        of it.
        """
        if self._status is None or self._done or self._watcher is not None:
            return
        try:
            alone, largest = process_trees.reap(self._spare())
        except OSError as exc:
            if not scarce(exc):
                raise
            self._after(_LOOK_S, self._settle)  # whom it left behind is seen once there is a file to read it from
            return
        self._largest = max(self._largest, largest)
        if not alone:
            if time.monotonic() < self._exited_at + _STRAYS_S:
                process_trees.kill_below_us(self._spare())
                self._after(0.01, self._settle)
                return
            print(
                f"keeper: call {self.call_id} left processes behind that cannot be killed", file=sys.stderr, flush=True
            )
        if self._open:
            return
        if not self._why and self._terminated():
            self._why = self._asked_late
            if not self._why and (left := self._exited_at + _SHARED_S - time.monotonic()) > 0:
                with contextlib.suppress(OSError, NoSpace):  # so that its end is known should this keeper die meanwhile
                    spool.put_result(self._base, self._describe())
                self._after(left, self._settle)
                return
        self._done = True
        for timer in self._timers:
            timer.cancel()
        self._finish()

    def _terminated(self) -> bool:
        """A SIGTERM ended it, whoever sent it."""
        return self._outcome().exit_code == 128 + signal.SIGTERM

    def _outcome(self) -> spawn.CallOutcome:
        assert self._status is not None
        return spawn.outcome(self._spec, self._status, bytes(self._result))

    def _finish(self) -> None:
        """Spool the result, then report it; without space both wait until there is some."""
        try:
            if self._data is None:
                self._data = self._describe()
                spool.put_result(self._base, self._data)
                self._faults.hit("keeper.after_spool")
            self._on_end(self._data)
        except NoSpace:
            if self._data is not None:
                with contextlib.suppress(OSError):  # tried again with the record
                    spool.keep_result(self._base, self._data)
            self._loop.call_later(_RETRY_S, self._finish)
            return
        except OSError as exc:
            if exc.errno not in _FULL and not scarce(exc):
                raise
            self._data = None
            self._loop.call_later(_RETRY_S, self._finish)
            return
        os.close(self._file)
        if self._spec.group is not None:
            self._spec.group.remove()

    def _describe(self) -> dict[str, object]:
        outcome = self._outcome()
        status, over = self._ended_by(outcome)
        preview = self._preview(outcome.note, over)
        data: dict[str, object] = {"call_id": self.call_id, "status": status, "preview": preview, "ms": self._ms}
        if over is not None:
            data["limit"] = over.limit
        if outcome.exit_code is not None:
            data["exit_code"] = outcome.exit_code
        if outcome.files_changed:
            data["files_changed"] = outcome.files_changed
        if self._dropped:
            data["truncated"] = True
        if self._kept > PREVIEW_BYTES:
            sha, size = blobs.put(self._folder.blobs, os.pread(self._file, self._kept, 0))
            data["output"] = {"sha": sha, "bytes": size, "media": "text/plain"}
        return data

    def _ended_by(self, outcome: spawn.CallOutcome) -> tuple[str, Over | None]:
        """Its status on record, and the limit that ended it or most likely made it fail."""
        status = outcome.status
        if self._why and not (self._spec.kind in (FileAction.KIND, PushAction.KIND) and status == CallEnd.OK):
            status = self._why
        over = self._over if status != CallEnd.OK else None
        if over is None and status == CallEnd.ERROR:
            over = self._guess(outcome.exit_code)
        return status, over

    def _guess(self, exit_code: int | None) -> Over | None:
        """The limit by which the kernel most likely made this call fail, when it was not ended by us."""
        limits = self._spec.limits
        group = self._spec.group
        together = limits.together()
        each = limits.each()
        if group is not None and together is not None and group.out_of_memory():
            return Over("memory", group.number("memory.peak") or together, together)
        if group is not None and group.out_of_processes():
            return Over("processes", limits.processes, limits.processes)
        if exit_code == 128 + signal.SIGXFSZ and limits.file is not None:
            return Over("file", limits.file, limits.file)
        if group is None and self._spec.sandboxed and each is not None and self._largest >= each * _NEARLY:
            return Over("process_memory", self._largest, each)
        return self._full

    def _preview(self, note: str, over: Over | None) -> str:
        if self._kept <= PREVIEW_BYTES:
            text = os.pread(self._file, PREVIEW_BYTES, 0).decode("utf-8", "replace")
        else:
            head = os.pread(self._file, _HEAD, 0).decode("utf-8", "replace")
            tail = os.pread(self._file, _TAIL, self._kept - _TAIL).decode("utf-8", "replace")
            text = f"{head}\n[… {self._kept - _HEAD - _TAIL} bytes left out here …]\n{tail}"
        if self._dropped:
            text += f"\n[the output was cut: {self._dropped} more bytes were not kept]"
        if self._why == "timeout":
            text += f"\n[stopped after its time limit of {self._spec.timeout_s} s]"
        if over is not None:
            text += f"\n[{'ended by a limit' if self._over is not None else 'a limit was reached'}: {over.text()}]"
        if note and note not in text:
            text += f"\n[{note}]" if text else note
        return text

"""The process beside a job: it starts the job in its sandbox, keeps its output, ends it in time and says how it ended.
Standard library only.

A child of the keeper and a process of its own, because a job prints without end and leaves processes behind while the
calls of its session go on: what is below this process is the job's and nothing else is. It dies with its keeper, and
the job with it. Both speak JSON lines over a socketpair. To here: ``{"stop": why}``, ``{"until": {"call", "pattern",
"since"}}`` and ``{"forget": call}``. From here: ``{"running": true}`` once the effect begins, ``{"line": {"call",
"text", "end"}}`` for the first line that fits, ``{"ended": {…}}``.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from harness.domain.text.output_lines import Lines, Pattern, newest
from harness.eventlog import blobs
from harness.eventlog.writer import LogError
from harness.executor import job_log, spawn
from harness.executor.warm_sandbox import Ready
from harness.keeper.calls.runner import Around, Prepared, RunningCall
from harness.keeper.calls.watch import KnownDisk
from harness.keeper.calls.watchers import Watchers
from harness.keeper.loop.fault_points import Faults
from harness.keeper.loop.timers import Turns
from harness.linux import kernel
from harness.linux.proc import descendants
from harness.protocol.paths import SessionFolder

_WHOLE_MOST = 64 << 20
_TAIL = 4 * 1024
_OF_THE_CHILD = (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)


@dataclass(frozen=True, slots=True)
class JobOrder:
    """One job to run: ``base`` begins the names of its files, ``grace_s`` is how long it has to end when asked to."""

    job: str
    call_id: str
    spec: spawn.Spawn
    folder: SessionFolder
    base: Path
    grace_s: float


def begin(order: JobOrder) -> tuple[int, socket.socket]:
    """Start the process beside a job; (its pid, our end of the line to it). Raises OSError."""
    ours, theirs = socket.socketpair()
    keeper = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        _child(order, theirs.detach(), keeper)
    theirs.close()
    ours.setblocking(False)
    return pid, ours


def _child(order: JobOrder, channel: int, keeper: int) -> NoReturn:
    try:
        gc.freeze()  # objects of the keeper believe that they own descriptors, whose numbers are others' now
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in _OF_THE_CHILD:
            signal.signal(number, signal.SIG_IGN)  # the keeper says when the job is to end
        os.setsid()
        if os.getppid() == keeper:
            _only((channel, order.spec.action_fd))
            kernel.adopt_orphans()
            Host(order, socket.socket(fileno=channel)).run()
    except BaseException as exc:  # whatever it is: this process must never go on as a second keeper
        with contextlib.suppress(Exception):
            print(f"process beside job {order.job}: {type(exc).__name__}: {exc}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)


def _only(kept: tuple[int, ...]) -> None:
    """Close every descriptor beyond the standard ones but these."""
    first = 3
    for fd in sorted(kept):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


class Host:
    """Between one job and the keeper."""

    def __init__(self, order: JobOrder, channel: socket.socket) -> None:
        self._order = order
        self._channel = channel
        self._turns = Turns()
        self._asked = bytearray()
        channel.setblocking(False)
        self._turns.watch(channel.fileno(), self._hear)
        self._log = job_log.Writer(order.base, order.spec.output_bytes)
        self._job = HostedJob(self._turns, order, self._log, self)

    def run(self) -> None:
        self._turns.run()

    def say(self, **fields: object) -> None:
        """One line to the keeper; without a keeper there is nobody left to run for."""
        self._channel.setblocking(True)
        try:
            self._channel.sendall(json.dumps(fields).encode() + b"\n")
        finally:
            self._channel.setblocking(False)

    def ended(self, data: dict[str, object]) -> None:
        self.say(ended=data)
        self._turns.stopping = True

    def _hear(self) -> None:
        data = self._channel.recv(1 << 16)
        if not data:
            os._exit(0)  # the keeper is gone, and the job goes with us
        self._asked += data
        *lines, rest = bytes(self._asked).split(b"\n")
        self._asked = bytearray(rest)
        for line in lines:
            for what, value in json.loads(line).items():
                match what:
                    case "stop":
                        self._job.stop(str(value))
                    case "until":
                        self._job.expect(str(value["call"]), Pattern.of(str(value["pattern"])), int(value["since"]))
                    case "forget":
                        self._job.forget(str(value))


class HostedJob(RunningCall):
    """A call that outlives its call: its output is kept in pieces, and it is asked to end before it is ended."""

    def __init__(self, turns: Turns, order: JobOrder, log: job_log.Writer, host: Host) -> None:
        """Raises OSError when it cannot be started."""
        self._host = host
        self._order = order
        self._log = log
        self._lines = Lines()
        self._until: dict[str, Pattern] = {}
        watchers = Watchers(turns, KnownDisk(order.folder))
        around = Around(turns, order.folder, Faults(""), watchers, Ready())
        nowhere = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        call = Prepared(order.call_id, order.spec, order.base, nowhere)
        super().__init__(around, call, host.ended, lambda: set(watchers.pids))

    # -- while it runs -----------------------------------------------------------------------------

    def expect(self, call_id: str, pattern: Pattern, since: int) -> None:
        """Say the first line that fits and ends behind byte ``since`` of the output."""
        at = since
        lines = Lines()
        while (part := job_log.read(self._order.base, at, job_log.PIECE)).data:
            at = part.end
            for line in lines.feed(part.data):
                if pattern.fits(line):
                    self._fits(call_id, line)
                    return
        self._until[call_id] = pattern
        self._lines = lines

    def forget(self, call_id: str) -> None:
        self._until.pop(call_id, None)

    def _fits(self, call_id: str, line: bytes) -> None:
        self._until.pop(call_id, None)
        self._host.say(line={"call": call_id, "text": line.decode("utf-8", "replace"), "end": self._log.total})

    def _take_output(self, data: bytes) -> None:
        self._log.append(data)
        for line in self._lines.feed(data) if self._until else ():
            for call_id in [call_id for call_id, pattern in self._until.items() if pattern.fits(line)]:
                self._fits(call_id, line)

    def _take_result(self, data: bytes) -> None:
        if b'"running"' in data:
            self._host.say(running=True)
        super()._take_result(data)

    def _end(self) -> None:
        """Ask what it started to end, which is what a program expects of its terminal or its machine; what is left
        after the grace is killed. One that takes too much of the machine has no grace.
        """
        if self._over is not None:
            super()._end()
            return
        for pid in descendants(self._pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        self._after(self._order.grace_s, super()._end)

    # -- its end -----------------------------------------------------------------------------------

    def _describe(self) -> dict[str, object]:
        outcome = self._outcome()
        status, over = self._ended_by(outcome)
        data: dict[str, object] = {
            "call_id": self.call_id,
            "job": self._order.job,
            "status": status,
            "ms": self._ms,
            "last": newest(job_log.tail(self._order.base, _TAIL).data),
            "printed": self._log.total,
        }
        notes = [over.text()] if over is not None else []
        if outcome.note and status != "ok":
            notes.append(outcome.note)
        if self._log.lost:
            notes.append(f"the disk was full, and {self._log.lost} bytes of its output are lost")
        if outcome.exit_code is not None:
            data["exit_code"] = outcome.exit_code
        if self._log.total:
            try:
                sha, size = blobs.put(self._folder.blobs, job_log.whole(self._order.base)[:_WHOLE_MOST])
                data["output"] = {"sha": sha, "bytes": size, "media": "text/plain"}
            except (LogError, OSError) as exc:
                notes.append(f"its output could not be kept: {exc}")
        if notes:
            data["note"] = "; ".join(notes)[:2000]
        return data


__all__ = ["JobOrder", "begin"]

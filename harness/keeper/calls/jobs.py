"""The jobs of one session: commands that outlive their call, each with a process of its own beside it.

Standard library only. What the keeper writes of them: ``job.started`` with the end of the call that started it,
``job.ended`` once nothing of it is left. A job runs at most once: one whose process is gone without a word is ``lost``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness.domain.actions.action import Action, command_of
from harness.domain.calls.call_states import CallEnd
from harness.domain.calls.job_words import JobEnd
from harness.domain.text import formatting
from harness.domain.text.formatting import stretch
from harness.domain.text.output_lines import newest
from harness.eventlog.writer import NoSpace, Poisoned
from harness.executor import job_log, spawn
from harness.keeper.calls import job_host, process_trees, spool
from harness.keeper.loop.errors import OpError
from harness.keeper.loop.timers import Turns
from harness.protocol.connection.op import reader
from harness.protocol.paths import SessionFolder

_end = reader(JobEnd)
_RETRY_S = 1.0
_LEFTOVERS_S = 1.0
_WHAT = 300
Write = Callable[[str, dict[str, object]], None]
EndCall = Callable[[dict[str, object]], None]


def what(action: Action) -> str:
    """What a job runs, on one short line."""
    return formatting.line(command_of(action) or action.tool, _WHAT)


def base(folder: SessionFolder, job: str) -> Path:
    """Beginning of the names of a job's files."""
    return folder.jobs / job


class Job:
    """One that is being started or runs."""

    def __init__(self, name: str, action: Action, order: job_host.JobOrder, pid: int, channel: socket.socket) -> None:
        self.name = name
        self.action = action
        self.order = order
        self.pid = pid
        self.channel = channel
        self.pidfd = -1
        self.running = False
        self.stopping = ""
        self.heard = bytearray()
        self.began = time.monotonic()
        self.ended: dict[str, object] | None = None
        self.shown = 0
        """Bytes of its output that the agent has been shown the end of."""

    @property
    def what(self) -> str:
        """What it runs, on one short line."""
        return what(self.action)

    def say(self, **fields: object) -> None:
        """One line to the process beside it; one that is gone is heard of in another way."""
        with contextlib.suppress(OSError):
            self.channel.sendall(json.dumps(fields).encode() + b"\n")

    def stop(self, why: str) -> None:
        if not self.stopping:
            self.stopping = why
            self.say(stop=why)


class Jobs:
    """All of one session. ``tells``, ``on_ended`` and ``on_line`` are set by whoever has calls that wait for jobs."""

    def __init__(
        self,
        loop: Turns,
        folder: SessionFolder,
        write: Write,
        on_over: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._folder = folder
        self._write = write
        self.tells: Callable[[Job], str] = lambda _job: ""
        """The call whose result tells the agent of a job's end; empty: none."""
        self.on_ended: Callable[[Job, JobEnd], None] = lambda _job, _data: None
        """Told of an end on record."""
        self.on_line: Callable[[Job, str, str, int], None] = lambda _job, _call, _text, _end: None
        """Told of the line that a call waits for, and where in the output that was."""
        self._on_over = on_over
        self.now: dict[str, Job] = {}
        """By name, those that are being started too."""
        self._calls: dict[str, EndCall] = {}
        """By name of a job that is being started: who ends the call that starts it."""

    @property
    def pids(self) -> frozenset[int]:
        """Children of the keeper that are processes beside jobs."""
        return frozenset(job.pid for job in self.now.values())

    @property
    def beginning(self) -> list[str]:
        """The calls that start one right now."""
        return [self.now[name].order.call_id for name in self._calls]

    @property
    def running(self) -> list[Job]:
        """In the order in which they were started."""
        return [job for job in self.now.values() if job.running]

    def begin(self, name: str, action: Action, spec: spawn.Spawn, grace_s: float, end_call: EndCall) -> None:
        """Start a job; ``end_call(data)`` is told how its call ended, and may raise NoSpace to be asked again.

        Raises OSError when there can be no process; then nothing runs.
        """
        try:
            self._folder.jobs.mkdir(mode=0o700, exist_ok=True)
            order = job_host.JobOrder(name, spec.call, spec, self._folder, base(self._folder, name), grace_s)
            room = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)  # what is opened of it once it runs cannot fail
            try:
                pid, channel = job_host.begin(order)
            finally:
                os.close(room)
        finally:
            os.close(spec.action_fd)
        job = Job(name, action, order, pid, channel)
        self.now[name] = job
        self._calls[name] = end_call
        job.pidfd = os.pidfd_open(pid)
        self._loop.watch(channel.fileno(), functools.partial(self._hear, job))
        self._loop.watch(job.pidfd, functools.partial(self._gone, job))

    @property
    def writers(self) -> tuple[int, ...]:
        """The processes that jobs are below."""
        return tuple(job.pid for job in self.now.values())

    def stop_all(self, why: str) -> None:
        for job in self.now.values():
            job.stop(why)

    # -- what is heard of it -----------------------------------------------------------------------

    def _hear(self, job: Job) -> None:
        try:
            data = job.channel.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.unwatch(job.channel.fileno())
            job.channel.close()
            return
        job.heard += data
        *lines, rest = bytes(job.heard).split(b"\n")
        job.heard = bytearray(rest)
        for line in lines:
            for kind, value in json.loads(line).items():
                match kind:
                    case "running":
                        self.durably(functools.partial(self._begun, job))
                    case "line":
                        self.on_line(job, str(value["call"]), str(value["text"]), int(value["end"]))
                    case "ended":
                        job.ended = value

    def _begun(self, job: Job) -> None:
        """It runs: that is on record first, then the call is over that started it. Raises NoSpace."""
        if job.name not in self._calls:
            return
        if not job.running:
            started: dict[str, object] = {
                "job": job.name,
                "call_id": job.order.call_id,
                "what": job.what,
                "limit_s": job.order.spec.timeout_s,
                "grace_s": job.order.grace_s,
                "log_bytes": job.order.spec.output_bytes,
                "clock": job.began,
            }
            self._put("job.started", started)
            job.running = True
        limit = stretch(job.order.spec.timeout_s)
        text = (
            f"job {job.name} runs: {job.what}\n[it is ended after {limit}; job {{action: wait}} waits for it at no"
            f" cost, read_output with call {job.name} reads what it printed]"
        )
        self._end_call(job, {"call_id": job.order.call_id, "status": CallEnd.OK, "preview": text, "ms": 0})

    def _end_call(self, job: Job, data: dict[str, object]) -> None:
        """The call that starts it is over, and the next may begin. Raises NoSpace: then it is not."""
        end = self._calls.pop(job.name)
        try:
            end(data)
        except NoSpace:
            self._calls[job.name] = end
            raise

    def _gone(self, job: Job) -> None:
        """The process beside it ended: with its last words the job is over, without them it is lost."""
        self._loop.unwatch(job.pidfd)
        os.close(job.pidfd)
        if job.channel.fileno() >= 0:
            job.channel.setblocking(False)
            while job.channel.fileno() >= 0 and self._readable(job):
                self._hear(job)
        with contextlib.suppress(ChildProcessError):  # collected with what a call left
            os.waitpid(job.pid, 0)
        if job.ended is None:
            self._clear_away(job)
        if job.channel.fileno() >= 0:
            self._loop.unwatch(job.channel.fileno())
            job.channel.close()
        self.durably(functools.partial(self._over, job))

    @staticmethod
    def _readable(job: Job) -> bool:
        try:
            job.channel.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def _clear_away(self, job: Job) -> None:
        """Leave nothing of a job whose own process cannot see to that any more."""
        leader = spool.leader(job.order.base)
        if leader is not None and not process_trees.kill_session(leader, _LEFTOVERS_S):
            print(f"keeper: job {job.name} left processes behind that cannot be killed", file=sys.stderr, flush=True)

    def _over(self, job: Job) -> None:
        """Its end on record. Raises NoSpace."""
        ended: dict[str, object] | None = None
        self._begun_late(job)
        if job.name in self._calls:
            end = _end({"job": job.name, "status": "", **(job.ended or {})})
            note = f"[nothing was run: {end.note or 'the process beside it ended before anything ran'}]"
            preview = "\n".join(part for part in (end.last, note) if part)
            self._end_call(job, {"call_id": job.order.call_id, "status": CallEnd.REFUSED, "preview": preview})
        else:
            data = end_of(job.name, job.ended, round((time.monotonic() - job.began) * 1000))
            if job.stopping and job.stopping != "cancelled":
                data["note"] = "; ".join(part for part in (job.stopping, _end(data).note) if part)
                data["status"] = CallEnd.CANCELLED if data["status"] != CallEnd.OK else CallEnd.OK
            if told := self.tells(job):
                data["told"] = told
            self._put("job.ended", data)
            ended = data
        self.now.pop(job.name, None)
        with contextlib.suppress(OSError):  # what stays is removed when the next keeper starts
            tidy(self._folder, set(self.now))
        if ended is not None:
            self.on_ended(job, _end(ended))
        self._on_over()

    def _begun_late(self, job: Job) -> None:
        """One that ran and ended while its beginning had to wait for room on the disk."""
        if job.name in self._calls and job.ended is not None and job.ended["status"] != CallEnd.REFUSED:
            self._begun(job)

    def durably(self, step: Callable[[], None]) -> None:
        """Do what ends in a record, again and again while the disk is full."""
        try:
            step()
        except NoSpace:
            self._loop.call_later(_RETRY_S, lambda: self.durably(step))

    def _put(self, kind: str, data: dict[str, object]) -> None:
        try:
            self._write(kind, data)
        except (OpError, Poisoned) as exc:
            print(f"keeper: {kind} of {data['job']} cannot be recorded: {exc}", file=sys.stderr, flush=True)


def end_of(job: str, result: dict[str, object] | None, ms: int) -> dict[str, object]:
    """The fields of ``job.ended``, from the job's own result or from there being none."""
    if result is None:
        note = "the process that watched over it ended without a word; whatever it had begun may be half done"
        return {"job": job, "status": "lost", "ms": ms, "note": note}
    names = ("status", "ms", "exit_code", "output", "last", "printed", "note")
    return {"job": job, **{name: result[name] for name in names if name in result}}


def after_a_keeper(folder: SessionFolder, job: str) -> dict[str, object]:
    """The fields of ``job.ended`` for one that a keeper left behind that is gone; what may be left of it is killed."""
    where = base(folder, job)
    leader = spool.leader(where)
    if leader is not None:
        process_trees.kill_session(leader, _LEFTOVERS_S)
    if (result := spool.result(where)) is not None:
        return end_of(job, result, 0)
    tail = job_log.tail(where, 4096)
    note = "the keeper of this session ended while the job ran, and the job with it; it may have done part of its work"
    return {"job": job, "status": "lost", "ms": 0, "note": note, "last": newest(tail.data), "printed": tail.end}


def tidy(folder: SessionFolder, running: set[str]) -> None:
    """Remove the files of jobs that do not run; what they printed is a blob. Raises OSError."""
    try:
        names = os.listdir(folder.jobs)
    except FileNotFoundError:
        return
    for name in names:
        if name.partition(".")[0] not in running:
            (folder.jobs / name).unlink(missing_ok=True)


__all__ = ["Job", "Jobs", "after_a_keeper", "base", "end_of", "tidy", "what"]

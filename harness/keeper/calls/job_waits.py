"""The tool ``job``: how an agent looks at its jobs, ends one, and waits for one without thinking meanwhile. Carried out
by the keeper itself. Standard library only.

A wait is a call that stays open, so nobody thinks for the session until it ends: with the job, with a line that the job
prints, with a time, or because a person said something. Reading is all its effect, so one that a dead keeper left open
begins again.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.domain.calls import job_words
from harness.domain.calls.call_states import CallEnd
from harness.domain.calls.job_words import JobEnd
from harness.domain.text.formatting import instant, stretch
from harness.domain.text.output_lines import Pattern, newest
from harness.executor import job_log
from harness.keeper.calls.jobs import EndCall, Job, Jobs, Write
from harness.keeper.loop.errors import OpError
from harness.keeper.loop.timers import Timer, Turns
from harness.tools.registry import MAX_JOB_S

_TAIL = 4 * 1024
_LOOK_S = 30.0
"""Seconds after which the clock is looked at again: it may be set, and a machine sleeps."""


@dataclass(slots=True)
class _Wait:
    """One open call: for ``job`` (empty: any), until a line comes or a time."""

    call_id: str
    end_call: EndCall
    job: str
    words: str
    began: float
    timer: Timer | None = None


class Waits:
    """The calls of one session that look at its jobs. ``known()`` are the ends of jobs on record, by name."""

    def __init__(self, loop: Turns, jobs: Jobs, write: Write, known: Callable[[], dict[str, JobEnd]]) -> None:
        self._loop = loop
        self._jobs = jobs
        self._write = write
        self._known = known
        self._open: dict[str, _Wait] = {}
        jobs.tells = self.tells
        jobs.on_ended = self.job_ended
        jobs.on_line = self.line_came

    @property
    def open(self) -> list[str]:
        """The calls that wait."""
        return list(self._open)

    def serve(self, call_id: str, given: dict[str, object], end_call: EndCall) -> None:
        """Carry out one call of the tool; its end is told now or later."""
        name = str(given.get("job", ""))
        try:
            match given.get("action"):
                case "status":
                    self._end(call_id, end_call, self._status(name))
                case "cancel":
                    self._cancel(call_id, self._one(name), end_call)
                case _:
                    self._wait(call_id, name, given, end_call)
        except OpError as exc:
            self._end(call_id, end_call, exc.message, status=CallEnd.ERROR)

    def cancel(self, call_id: str, why: str = "cancelled") -> bool:
        """End an open wait before its time; False when there is none of that call."""
        wait = self._open.pop(call_id, None)
        if wait is None:
            return False
        self._close(wait)
        self._end(call_id, wait.end_call, why, status=CallEnd.CANCELLED, ms=_since(wait))
        return True

    def spoken(self) -> None:
        """A person said something: whoever waits shall hear it now."""
        for call_id in self.open:
            self._over(call_id, "the wait is over: a person wrote to you")

    # -- what each does ----------------------------------------------------------------------------

    def _one(self, name: str) -> Job:
        """The job of that name, or the only one. Raises OpError."""
        running = self._jobs.running
        if name:
            found = next((job for job in running if job.name == name), None)
            if found is not None:
                return found
            if (end := self._known().get(name)) is not None:
                raise OpError("not_running", job_words.ended(end))
            raise OpError("not_found", f"there is no job {name[:40]!r}; {self._names()}")
        if len(running) == 1:
            return running[0]
        raise OpError("not_found", f"say which job: {self._names()}")

    def _names(self) -> str:
        running = self._jobs.running
        return f"running: {', '.join(job.name for job in running)}" if running else "no job runs"

    def _status(self, name: str) -> str:
        if name and name in self._known() and name not in self._jobs.now:
            return job_words.ended(self._known()[name])
        jobs = [self._one(name)] if name or len(self._jobs.running) == 1 else self._jobs.running
        if jobs:
            return "\n\n".join(self._told(job) for job in jobs)
        ends = [job_words.ended(end).partition("\n")[0] for end in self._known().values()]
        return "\n".join(["no job runs", *ends])

    def _told(self, job: Job) -> str:
        part = job_log.tail(job.order.base, _TAIL)
        job.shown = max(job.shown, part.end)
        stopping = ", and was told to end" if job.stopping else ""
        left = stretch(job.order.spec.timeout_s - (time.monotonic() - job.began))
        head = f"job {job.name} runs since {stretch(time.monotonic() - job.began)}{stopping} ({left} left): {job.what}"
        return "\n".join([head, *job_words.printed(job.name, newest(part.data), part.end)])

    def _cancel(self, call_id: str, job: Job, end_call: EndCall) -> None:
        self._open[call_id] = _Wait(call_id, end_call, job.name, "", time.monotonic())
        job.stop("cancelled")

    def _wait(self, call_id: str, name: str, given: dict[str, object], end_call: EndCall) -> None:
        until = str(given.get("until", ""))
        after = given.get("after_s")
        at = _time(str(given.get("at", "")))
        known = self._known()
        told = next((end for end in known.values() if end.told == call_id or end.job == name), None)
        if told is not None and (not name or name not in self._jobs.now):
            self._end(call_id, end_call, job_words.ended(told))
            return
        job = self._one(name) if name or until else None
        if job is None and not self._jobs.running and after is None and at is None:
            raise OpError(
                "not_found", f"there is nothing to wait for: {self._names()}; give after_s or at to wait for a time"
            )
        pattern = _pattern(until)
        wait = _Wait(
            call_id,
            end_call,
            job.name if job else "",
            _words(job, until, after, str(given.get("at", ""))),
            time.monotonic(),
        )
        self._write("job.waiting", {"call_id": call_id, "job": wait.job, "words": wait.words})
        self._open[call_id] = wait
        if isinstance(after, int | float):
            wait.timer = self._loop.call_later(
                after, functools.partial(self._over, call_id, f"{stretch(after)} are over")
            )
        if at is not None:
            self._look(call_id, at)
        if pattern is not None and job is not None:
            job.say(until={"call": call_id, "pattern": until, "since": job.shown})

    def _look(self, call_id: str, at: float) -> None:
        """End the wait once the clock says so."""
        wait = self._open.get(call_id)
        if wait is None:
            return
        left = at - time.time()
        if left <= 0:
            self._over(call_id, "the time that you wait for has come")
            return
        wait.timer = self._loop.call_later(min(left, _LOOK_S), functools.partial(self._look, call_id, at))

    # -- what ends a wait --------------------------------------------------------------------------

    def tells(self, job: Job) -> str:
        """The call whose result will tell of the job's end; empty when nobody waits for it."""
        return next((wait.call_id for wait in self._open.values() if wait.job in ("", job.name)), "")

    def job_ended(self, job: Job, end: JobEnd) -> None:
        for wait in [wait for wait in self._open.values() if wait.job in ("", job.name)]:
            self._open.pop(wait.call_id)
            self._close(wait)
            self._end(wait.call_id, wait.end_call, job_words.ended(end), ms=_since(wait))

    def line_came(self, job: Job, call_id: str, text: str, end: int) -> None:
        job.shown = max(job.shown, end)
        self._over(call_id, f"job {job.name} printed the line that you wait for:\n{text[:1000]}")

    def _over(self, call_id: str, why: str) -> None:
        wait = self._open.pop(call_id, None)
        if wait is None:
            return
        self._close(wait)
        running = [job for job in self._jobs.running if wait.job in ("", job.name)]
        text = "\n\n".join([why, *(self._told(job) for job in running)])
        self._end(call_id, wait.end_call, text, ms=_since(wait))

    def _close(self, wait: _Wait) -> None:
        if wait.timer is not None:
            wait.timer.cancel()
        for job in self._jobs.running:
            job.say(forget=wait.call_id)

    def _end(self, call_id: str, end_call: EndCall, text: str, *, status: str = CallEnd.OK, ms: int = 0) -> None:
        data = {"call_id": call_id, "status": status, "preview": text, "ms": ms}
        self._jobs.durably(lambda: end_call(data))


def _since(wait: _Wait) -> int:
    return round((time.monotonic() - wait.began) * 1000)


def _time(at: str) -> float | None:
    """Raises OpError when it is so far away that nobody can have meant to wait for it."""
    when = instant(at)
    if when is not None and when - time.time() > MAX_JOB_S:
        away = f"at {at} is more than {stretch(MAX_JOB_S)} away"
        raise OpError("bad_request", f"{away}, which is the longest wait; give an earlier time")
    return when


def _pattern(until: str) -> Pattern | None:
    """Raises OpError when it asks for nothing that can be found."""
    try:
        return Pattern.of(until) if until else None
    except ValueError as exc:
        raise OpError("bad_request", f"until {exc}") from exc


def _words(job: Job | None, until: str, after: object, at: str) -> str:
    """What is waited for, for a person: ``job j3: make train, or until "epoch 10"``."""
    parts = [f"job {job.name}: {job.what}" if job is not None else "its jobs"]
    if until:
        parts.append(f'until it prints "{until}"')
    if isinstance(after, int | float):
        parts.append(f"for {stretch(after)} at most")
    if at:
        parts.append(f"until {at} at the latest")
    return ", ".join(parts)


__all__ = ["Waits"]

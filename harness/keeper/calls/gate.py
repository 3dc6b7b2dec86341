"""The gate: the only place where a call gets its effect, and only with an allow verdict or an unused decision for
exactly this action.

Standard library only.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections import deque
from collections.abc import Callable

from harness.domain.actions.access import Access
from harness.domain.actions.action import Action, BadAction, from_wire
from harness.domain.calls.call_lifecycle import Call
from harness.domain.text.fields import Wire
from harness.eventlog.writer import NoSpace, Poisoned
from harness.executor import spawn
from harness.keeper.calls import exclusive, jobs, spool, start, undoing
from harness.keeper.calls.job_waits import Waits
from harness.keeper.calls.runner import Around, Prepared, RunningCall
from harness.keeper.calls.standby import Standby
from harness.keeper.calls.start import Answer, Before, Preparing
from harness.keeper.calls.undoing import Undoing
from harness.keeper.calls.vault_client import VaultLink
from harness.keeper.calls.watch import KnownDisk
from harness.keeper.calls.watchers import Watchers
from harness.keeper.log.appender import Appender
from harness.keeper.log.judged_action import JudgedActions
from harness.keeper.loop.errors import OpError
from harness.keeper.loop.event_loop import Loop
from harness.keeper.loop.fault_points import Faults
from harness.keeper.loop.requests import CallBegun, JobLimits, UndoCall
from harness.linux.scarce import scarce
from harness.linux.spares import Spares
from harness.protocol.paths import SessionFolder
from harness.sandbox import limits
from harness.tools import registry
from harness.tools.tool import READ
from harness.vault.vault_ops import KeptRoot, Observe, Take

_SIDE_BY_SIDE = 4
"""Calls that read at the same time: more of them would only take turns on a small machine."""
_AGAIN_S = 1.0
_LATER = "ask again in a moment"
_UNBUILT = (spawn.SpawnError, spawn.SandboxUnavailable, OSError)
"""Why there can be no process for an action."""


class CallGate:
    """Runs the calls of one session one at a time, in the order they were asked for; the rest wait and are checked when
    their turn comes. Calls that only read, inside the sandbox, run side by side.
    """

    def __init__(
        self,
        loop: Loop,
        journal: Appender,
        folder: SessionFolder,
        sid: str,
        faults: Faults,
        write: Callable[[str, dict[str, object]], None],
        on_over: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._journal = journal
        self._folder = folder
        self._faults = faults
        self._write = write
        self._on_over = on_over
        self._now: dict[str, RunningCall] = {}
        self._preparing: Preparing | None = None
        self.lacks = ""
        """For want of what the call that is on record as started has not begun, in words; empty otherwise."""
        self._judged = JudgedActions(journal, folder, sid)
        self._watchers = Watchers(loop, KnownDisk(folder))
        self.limits = limits.DEFAULT
        """What the calls that start from now on may take of this machine."""
        self._queue: deque[tuple[str, Answer]] = deque()
        self.job_limits = JobLimits()
        """How many jobs the session may have at a time, and how long one has to end when asked to."""
        self.vault = VaultLink(loop, folder)
        self._undoing = Undoing(self.vault, faults, write, self._try_write, self._over)
        self._standby = Standby(loop, lambda: self.idle)
        self.ready = self._standby.ready
        self.beside: set[int] = set()
        """Other children of the keeper, which no call's end ends."""
        self.jobs = jobs.Jobs(loop, folder, write, self._over)
        self._spares = Spares()
        self.waits = Waits(loop, self.jobs, write, lambda: journal.memory.job_ends)

    @property
    def running(self) -> list[str]:
        """The calls that run or are about to, or the undo that is being carried out."""
        if self._undoing.now:
            return [self._undoing.now]
        if self._preparing is not None:
            return [self._preparing.call_id]
        return [*self._now, *self.jobs.beginning]

    @property
    def idle(self) -> bool:
        """True when nothing runs and nothing waits."""
        return not self.running and not self._queue

    def execute(self, call_id: str, answer: Answer) -> None:
        """Start a call, or let it wait for the one that runs; ``answer`` is told when it started or why it did not."""
        if call_id in (*self.running, *self.waits.open) or any(call_id == waiting for waiting, _ in self._queue):
            raise OpError("conflict", f"call {call_id} is running or waiting already")
        self._judged.check(call_id)
        self._queue.append((call_id, answer))
        self._next()

    def expect(self) -> None:
        """A call will most likely be asked for in a moment: have its place wait for it."""
        if self.idle:
            self._standby.enter()

    def cancel(self, call_id: str) -> None:
        """End a running call, or take a waiting one out and record it as cancelled.

        Raises OpError when it is neither.
        """
        if (running := self._now.get(call_id)) is not None:
            running.stop("cancelled")
            return
        if self.waits.cancel(call_id):
            return
        if self._preparing is not None and self._preparing.call_id == call_id:
            self._preparing.cancelled = True
            return
        if (job := next((j for j in self.jobs.now.values() if j.order.call_id == call_id), None)) is not None:
            job.stop("cancelled")
            return
        for item in self._queue:
            if item[0] == call_id:
                self._queue.remove(item)
                self._write(
                    "tool.ended", {"call_id": call_id, "status": "cancelled", "preview": "cancelled before it started"}
                )
                item[1](OpError("cancelled", f"call {call_id} was cancelled before it started"))
                return
        raise OpError("not_running", f"call {call_id} is not running")

    def cancel_all(self) -> None:
        for running in list(self._now.values()):
            running.stop("cancelled")
        for call_id in self.waits.open:
            self.waits.cancel(call_id, "this session's keeper was told to end")
        self.jobs.stop_all("this session's keeper was told to end")
        if self._preparing is not None:
            self._preparing.cancelled = True

    def forget_queue(self) -> None:
        """Nothing that waits may start any more: whoever asked for it is gone or the keeper ends."""
        waiting = list(self._queue)
        self._queue = deque()
        if self._preparing is not None and not self._preparing.dropped:
            self._preparing.dropped = True
            waiting.append((self._preparing.call_id, self._preparing.answer))
        for call_id, answer in waiting:
            answer(
                OpError(
                    "not_started",
                    f"call {call_id} was not started: the supervisor that asked for it is gone or this keeper ends",
                )
            )

    def _next(self) -> None:
        while self._queue and self._has_room(self._queue[0][0]):
            call_id, answer = self._queue.popleft()
            self._answering(answer, functools.partial(self._begin, call_id, answer))

    def _has_room(self, call_id: str) -> bool:
        """True when a call may start now: alone, or as one more reader beside readers."""
        if not self.running:
            return True
        busy = self._undoing.now or self._preparing is not None or self.jobs.beginning
        if busy or len(self._now) >= _SIDE_BY_SIDE:
            return False
        return all(running.reads for running in self._now.values()) and self._only_reads(call_id)

    def _only_reads(self, call_id: str) -> bool:
        """True for a call of ours that reads inside the sandbox; what is wrong with another shows when it is alone."""
        try:
            action = from_wire(self._judged.check(call_id)[1])
        except (OpError, BadAction):
            return False
        return spawn.only_reads(action) and action.access == Access.SANDBOX and start.slow(action) is None

    @staticmethod
    def _answering(answer: Answer, step: Callable[[], CallBegun | None]) -> None:
        """Do one step of a call's start; its reply or its refusal is told, None means that another step follows."""
        try:
            reply = step()
        except OpError as exc:
            answer(exc)
        except NoSpace as exc:
            answer(OpError("no_space", exc.what, "free some space, then ask again"))
        except Poisoned as exc:
            answer(OpError("poisoned", str(exc), "check the disk, then restart the session's keeper"))
        else:
            if reply is not None:
                answer(reply)

    def _begin(self, call_id: str, answer: Answer) -> CallBegun | None:
        """The first step: whatever may change files, or was allowed for the world as it was shown, waits for a
        snapshot; what takes long to look at is looked at beside it, so that everybody else is answered meanwhile.
        """
        call, wire = self._judged.check(call_id)
        action = self._read(call_id, wire)
        slow = start.slow(action)
        keep = start.to_be_kept(action)
        if not keep and slow is None:
            return self._start(call_id, None)
        preparing = Preparing(call_id, answer, wire, action)
        self._preparing = preparing
        depends = slow.to_wire() if slow is not None else None
        if keep:
            self.vault.ask(self._state_before(action, depends), lambda reply: self._kept(preparing, reply))
        else:
            self.vault.ask(Observe(depends), lambda reply: self._kept(preparing, reply))
        # what leaves the sandbox is built after the last look
        if action.access == Access.SANDBOX and action.tool != registry.JOB:
            with contextlib.suppress(*_UNBUILT):  # it is built again at its start, which says so
                preparing.ready = self._process(action, call.attempt + 1)
        return None

    def _state_before(self, action: Action, depends: Wire | None) -> Take:
        shown = action.snapshot
        return Take(
            self.vault.roots(action),
            action.call,
            full=shown is not None,
            since=shown,
            only="w/" if shown is not None else None,
            worked=self._journal.memory.snapshot or None,
            action=depends,
            writers=self.jobs.writers,
        )

    def _process(self, action: Action, attempt: int) -> spawn.Spawn:
        """Its process, ready to start; the descriptor of its plan is the caller's. Raises what is in ``_UNBUILT``."""
        base = spool.base(self._folder, action.call, attempt)
        return spawn.command(action, self._folder, base, self.limits)

    def _kept(self, preparing: Preparing, before: Before) -> None:
        """The second step, once the state before the call is kept, or cannot be, and the world was looked at."""
        if self._preparing is not preparing:
            return
        self._preparing = None
        try:
            self._go_on(preparing, before)
        finally:
            preparing.forget()

    def _go_on(self, preparing: Preparing, before: Before) -> None:
        if preparing.cancelled:
            self._try_write(
                "tool.ended",
                {"call_id": preparing.call_id, "status": "cancelled", "preview": "cancelled before it started"},
            )
        if preparing.dropped or preparing.cancelled:
            if not preparing.dropped:
                preparing.answer(OpError("cancelled", f"call {preparing.call_id} was cancelled before it started"))
            self._over()
            return
        self._answering(preparing.answer, lambda: self._start(preparing.call_id, before, preparing))
        self._next()

    def _read(self, call_id: str, wire: Wire) -> Action:
        """The judged action; one that says too little to be run ends its call, and raises OpError ``cannot_start``."""
        try:
            return from_wire(wire)
        except BadAction as exc:
            raise self._refused(call_id, exc) from exc

    def _refused(self, call_id: str, exc: Exception) -> OpError:
        """Record that nothing of the call was run; the error that says so."""
        why = f"nothing was run: {exc}"
        self._write("tool.ended", {"call_id": call_id, "status": "refused", "preview": why})
        return OpError("cannot_start", why)

    def _start(self, call_id: str, before: Before | None, preparing: Preparing | None = None) -> CallBegun:
        """The last step: everything is looked at once more, then the start is on record, then it starts."""
        call, wire = self._judged.check(call_id)
        prepared = preparing if preparing is not None and preparing.wire is wire else None
        action = self._read(call_id, wire) if prepared is None else prepared.action
        if (hindered := start.hindered(action, before)) is not None:
            return hindered
        if action.tool == registry.JOB:
            return self._see_to_jobs(call, action)
        if action.job and len(self.jobs.now) >= self.job_limits.at_once:
            raise self._refused(call_id, BadAction(self._too_many()))
        jobs_now = {job.name: job.action for job in self.jobs.now.values()}
        if why := exclusive.of_jobs(action, jobs_now) or exclusive.of_open_jobs(action, jobs_now):
            raise self._refused(call_id, BadAction(why))
        attempt = call.attempt + 1
        try:
            effect = registry.effect_class(action.tool, action.access)
        except KeyError as exc:
            raise self._refused(call_id, BadAction(f"there is no tool {action.tool!r}")) from exc
        try:
            ready = (prepared.take() if prepared is not None else None) or self._process(action, attempt)
        except _UNBUILT as exc:
            if scarce(exc):
                raise OpError("scarce", f"its process cannot be made: {exc}", _LATER) from exc
            raise self._refused(call_id, exc) from exc
        try:
            output = spool.open_output(self._folder, call_id, attempt)
        except OSError as exc:
            os.close(ready.action_fd)
            code, hint = ("scarce", _LATER) if scarce(exc) else ("no_space", "free some space, then ask again")
            text = f"the spool of {self._folder.root} cannot be written: {exc.strerror}"
            raise OpError(code, text, hint) from exc
        try:
            self._faults.hit("keeper.before_started")
            self._write("tool.started", start.started(call, effect, action.world, before))
        except BaseException:
            os.close(ready.action_fd)
            os.close(output)
            raise
        self._faults.hit("keeper.after_started")
        try:
            self._run(action, attempt, ready, output)
        except OSError as exc:
            if not scarce(exc) or action.access != Access.SANDBOX:
                raise self._refused(call_id, exc) from exc
            self._run_later(Preparing(call_id, lambda _: None, wire, action), attempt, exc)
        return CallBegun(started=True)

    def _run(self, action: Action, attempt: int, ready: spawn.Spawn, output: int) -> None:
        """Give a call that is on record as started its process. Raises OSError: then nothing of it ran."""
        call_id = action.call
        if action.job:
            os.close(output)
            name = f"j{self._journal.memory.job_count + len(self.jobs.beginning) + 1}"
            self.jobs.begin(name, action, ready, self.job_limits.grace_s, self._ended)
            return
        around = Around(self._loop, self._folder, self._faults, self._watchers, self.ready)
        call = Prepared(call_id, ready, spool.base(self._folder, call_id, attempt), output)
        self._now[call_id] = RunningCall(around, call, self._ended, lambda: self._spare(call_id))

    def _run_later(self, waiting: Preparing, attempt: int, why: Exception) -> None:
        """Try again in a moment: the machine has no file, process or memory for it just now."""
        print(f"keeper: call {waiting.call_id} waits to begin: {why}", file=sys.stderr, flush=True)
        self.lacks = f"call {waiting.call_id} waits to begin: {why}"
        self._preparing = waiting
        self._loop.call_later(_AGAIN_S, lambda: self._run_now(waiting, attempt))

    def _run_now(self, waiting: Preparing, attempt: int) -> None:
        self._preparing = None
        self.lacks = ""
        ended = "cancelled" if waiting.cancelled or waiting.dropped else ""
        why = "cancelled before anything of it ran"
        if not ended:
            try:
                ready = self._process(waiting.action, attempt)
                try:
                    output = spool.open_output(self._folder, waiting.call_id, attempt)
                except OSError:
                    os.close(ready.action_fd)
                    raise
                self._run(waiting.action, attempt, ready, output)
                return
            except _UNBUILT as exc:
                if scarce(exc):
                    self._run_later(waiting, attempt, exc)
                    return
                ended = "refused"
                why = f"nothing was run: {exc}"
        self._try_write("tool.ended", {"call_id": waiting.call_id, "status": ended, "preview": why})
        self._over()

    def _see_to_jobs(self, call: Call, action: Action) -> CallBegun:
        """Carry out a call of the tool that looks at jobs: nothing of it runs in the sandbox."""
        started = {"call_id": call.call_id, "action_hash": call.action_hash, "effect": READ}
        self._write("tool.started", {**started, "attempt": call.attempt + 1, "pre": dict(action.world)})
        self.waits.serve(call.call_id, dict(action.input or {}), self._ended)
        return CallBegun(started=True)

    def _too_many(self) -> str:
        names = ", ".join(self.jobs.now)
        return (
            f"{len(self.jobs.now)} jobs run already ({names}), and a session has at most {self.job_limits.at_once} at a"
            " time (a human can raise it: at_once under [jobs] in config.toml)"
        )

    def _spare(self, call_id: str) -> set[int]:
        """Children of ours that are not of this call."""
        others = (pid for name, running in self._now.items() if name != call_id for pid in running.pids)
        return {*self.beside, *self.jobs.pids, self.vault.pid, *self.ready.pids, *self._watchers.pids, *others}

    # -- undo --------------------------------------------------------------------------------------

    def between_calls(self) -> tuple[KeptRoot, ...]:
        """The folders whose present state may be kept now. Raises OpError ``busy``."""
        if not self.idle:
            raise OpError("busy", f"call {self.running[0]} is at work in the worktree", "try again when it has ended")
        return self.vault.roots()

    def undo(self, undo: UndoCall, answer: undoing.Answer) -> None:
        """Bring a kept state back while nothing else runs. Raises OpError."""
        if not self.idle:
            raise OpError(
                "busy", f"call {self.running[0]} is at work in the worktree", "pause the session, then try again"
            )
        if self.jobs.now:
            names = ", ".join(self.jobs.now)
            raise OpError("busy", f"job {names} writes in the worktree", "wait for it, or cancel it, then try again")
        self._undoing.begin(undo, answer)

    def resume(self) -> None:
        """Carry out the undo that an earlier keeper did not finish; nothing else starts before."""
        if (undo := self._journal.memory.undo) is not None:
            self._undoing.resume(undo)

    def _try_write(self, kind: str, data: dict[str, object]) -> None:
        try:
            self._write(kind, data)
        except (OpError, NoSpace, Poisoned) as exc:
            print(f"keeper: {kind} cannot be recorded: {exc}", file=sys.stderr, flush=True)

    def _over(self) -> None:
        if not self.running:
            self._on_over()
        self._next()

    def _tidy(self) -> None:
        spool.clean(self._folder, set(self._journal.memory.calls.open))
        self._spares.used()

    def _ended(self, data: dict[str, object]) -> None:
        """Record the end of the running call. Raises NoSpace: then it stays open and is reported again."""
        try:
            self._write("tool.ended", data)
        except (OpError, Poisoned) as exc:
            print(
                f"keeper: the end of call {data['call_id']} cannot be recorded: {exc}; its result stays in the spool",
                file=sys.stderr,
                flush=True,
            )
        else:
            self._faults.hit("keeper.after_ended")
            self._loop.call_later(0.0, self._tidy)  # behind the pushes: the agent waits for this record
        running = self._now.pop(str(data["call_id"]), None)
        sandbox = running.sandbox if running is not None else []
        self._over()
        if sandbox and self.idle:
            self._standby.keep(sandbox)

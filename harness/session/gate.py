"""The gate: the only place where a call gets its effect, and only with an allow verdict or an unused decision for exactly this action.

Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from harness.events import blobs
from harness.events.action import action_hash
from harness.events.log import LogError, NoSpace, Poisoned
from harness.events.road import Call
from harness.hands import limits, precheck, spawn, tools
from harness.protocol.paths import SessionFolder
from harness.session import spool
from harness.session.errors import OpError
from harness.session.fault import Faults
from harness.session.journal import Journal
from harness.session.loop import Loop
from harness.session.memory import Memory
from harness.session.tools import Running
from harness.session.watch import Memory as DiskMemory

Answer = Callable[[dict[str, Any] | OpError], None]


class Gate:
    """Runs the calls of one session one at a time, in the order they were asked for; the rest wait and are checked when their turn comes."""

    def __init__(
        self,
        loop: Loop,
        journal: Journal,
        folder: SessionFolder,
        sid: str,
        faults: Faults,
        write: Callable[[str, dict[str, Any]], None],
        on_over: Callable[[], None],
    ) -> None:
        self._loop, self._journal, self._folder, self._sid, self._faults = loop, journal, folder, sid, faults
        self._write, self._on_over = write, on_over
        self._now: Running | None = None
        self._disk = DiskMemory(folder)
        self.limits = limits.DEFAULT
        """What the calls that start from now on may take of this machine."""
        self._queue: deque[tuple[str, Answer]] = deque()

    @property
    def running(self) -> list[str]:
        return [self._now.call_id] if self._now is not None else []

    def execute(self, call_id: str, answer: Answer) -> None:
        """Start a call, or let it wait for the one that runs; ``answer`` is told when it started or why it did not."""
        if call_id in self.running or any(call_id == waiting for waiting, _ in self._queue):
            raise OpError("conflict", f"call {call_id} is running or waiting already")
        self._check(call_id)
        self._queue.append((call_id, answer))
        self._next()

    def cancel(self, call_id: str) -> None:
        """End a running call, or take a waiting one out and record it as cancelled. Raises OpError when it is neither."""
        if self._now is not None and self._now.call_id == call_id:
            self._now.stop("cancelled")
            return
        for item in self._queue:
            if item[0] == call_id:
                self._queue.remove(item)
                self._write("tool.ended", {"call_id": call_id, "status": "cancelled", "preview": "cancelled before it started"})
                item[1](OpError("cancelled", f"call {call_id} was cancelled before it started"))
                return
        raise OpError("not_running", f"call {call_id} is not running")

    def cancel_all(self) -> None:
        if self._now is not None:
            self._now.stop("cancelled")

    def forget_queue(self) -> None:
        """Nothing that waits may start any more: whoever asked for it is gone or the keeper ends."""
        waiting, self._queue = self._queue, deque()
        for call_id, answer in waiting:
            answer(OpError("not_started", f"call {call_id} was not started: the supervisor that asked for it is gone or this keeper ends"))

    def _next(self) -> None:
        while self._now is None and self._queue:
            call_id, answer = self._queue.popleft()
            try:
                answer(self._start(call_id))
            except OpError as exc:
                answer(exc)
            except NoSpace as exc:
                answer(OpError("no_space", str(exc), "free some space, then ask again"))
            except Poisoned as exc:
                answer(OpError("poisoned", str(exc), "check the disk, then restart the session's keeper"))

    def _check(self, call_id: str) -> tuple[Call, dict[str, Any]]:
        """The open call and its judged action, when it may have its effect now. Raises OpError."""
        if self._journal.poisoned:
            raise OpError("poisoned", self._journal.poisoned, "check the disk, then restart the session's keeper")
        memory = self._journal.memory
        call = call_of(memory, call_id)
        if call is None or (judged := memory.judged.get(call_id)) is None:
            raise OpError("refused", f"call {call_id[:40]} is not open or was not judged")
        action = self._action(call_id, judged)
        try:
            same = action_hash(action) == call.action_hash
        except (ValueError, TypeError) as exc:
            raise OpError("refused", f"the judged action of {call_id} has no hash: {exc}") from exc
        if not same or action.get("session") != self._sid or action.get("call") != call_id:
            raise OpError("refused", f"the action stored for {call_id} is not the one that was judged for this call", "judge it again")
        if not memory.road.may_start(call, call.action_hash):
            raise OpError("refused", f"call {call_id} has no allow verdict or unused decision for its action")
        return call, action

    def _action(self, call_id: str, judged: dict[str, Any]) -> dict[str, Any]:
        action, ref = judged.get("action"), judged.get("action_blob")
        try:
            if action is None and isinstance(ref, dict):
                action = json.loads(blobs.get(self._folder.blobs, str(ref.get("sha"))))
        except (LogError, OSError, ValueError) as exc:
            raise OpError("refused", f"the judged action of {call_id} cannot be read: {exc}", "judge it again") from exc
        if not isinstance(action, dict):
            raise OpError("refused", f"the judgement of {call_id} holds no action", "judge it again")
        return action

    def _start(self, call_id: str) -> dict[str, Any]:
        call, action = self._check(call_id)
        expected: dict[str, Any] = action.get("pre") or {}
        if difference := precheck.difference(expected, precheck.observe(action)):
            return {"stale": difference}
        attempt = call.attempt + 1
        try:
            effect = tools.effect_class(str(action.get("tool")), str(action.get("access", "fence")))
            ready = spawn.command(action, self._folder, spool.base(self._folder, call_id, attempt), self.limits)
        except (spawn.SpawnError, spawn.FenceUnavailable, KeyError, ValueError, TypeError, OSError) as exc:
            why = f"nothing was run: {exc}" if not isinstance(exc, KeyError) else f"nothing was run: the action lacks or misnames {exc}"
            self._write("tool.ended", {"call_id": call_id, "status": "refused", "preview": why})
            raise OpError("cannot_start", why) from exc
        try:
            output = spool.open_output(self._folder, call_id, attempt)
        except OSError as exc:
            os.close(ready.action_fd)
            raise OpError("no_space", f"the spool of {self._folder.root} cannot be written: {exc.strerror}", "free some space, then ask again") from exc
        try:
            self._faults.hit("keeper.before_started")
            started: dict[str, Any] = {"call_id": call_id, "action_hash": call.action_hash, "effect": effect, "attempt": attempt, "pre": expected}
            if call.allowed_by:
                started["decision_id"] = call.allowed_by
            self._write("tool.started", started)
        except BaseException:
            os.close(ready.action_fd)
            os.close(output)
            raise
        self._faults.hit("keeper.after_started")
        try:
            self._now = Running(self._loop, self._folder, self._faults, call_id, attempt, ready, output, self._ended, self._disk)
        except OSError as exc:
            why = f"nothing was run: {exc}"
            self._write("tool.ended", {"call_id": call_id, "status": "refused", "preview": why})
            raise OpError("cannot_start", why) from exc
        return {"started": True}

    def _ended(self, data: dict[str, Any]) -> None:
        """Record the end of the running call. Raises NoSpace: then it stays open and is reported again."""
        try:
            self._write("tool.ended", data)
        except (OpError, Poisoned) as exc:
            print(f"keeper: the end of call {data['call_id']} cannot be recorded: {exc}; its result stays in the spool", file=sys.stderr, flush=True)
        else:
            self._faults.hit("keeper.after_ended")
            spool.clean(self._folder, set(self._journal.memory.road.calls))
        self._now = None
        self._on_over()
        self._next()


def call_of(memory: Memory, call_id: object) -> Call | None:
    return memory.road.calls.get(call_id) if isinstance(call_id, str) else None

"""Beside a call that runs for longer: a child of the keeper that looks what it takes and says when that is too much.
Standard library only.

A child of its own (`own_child`), because the keeper must never wait for a look into /proc or a walk through an agent's
folders. It speaks in JSON lines: ``{"known": {…}}`` (what a walk found), ``{"full": {…}}`` and ``{"over": {…}}``.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, fields
from typing import Any

from harness.hands import usage
from harness.hands.disk import Known, Meter
from harness.hands.limits import Limits, Over, ram
from harness.hands.spawn import Spawn
from harness.linux import durable
from harness.protocol.paths import SessionFolder
from harness.session import own_child

BEGIN_AFTER_S = 0.1
_EVERY_S = 0.1
_WALKING_S = 0.02
_WALK_BUDGET_S = 0.05
_SHARE = 10  # a look is not repeated before this many times its own processor time has passed
_LONGEST_S = 1.0
_FULL = 0.98
_STRIKES = 20


def pause(cost_s: float, *, walking: bool) -> float:
    """Seconds until the next look when the last one cost ``cost_s`` of processor time: a bomb must not put off its own
    end by making us slow.
    """
    return _WALKING_S if walking else min(_LONGEST_S, max(_EVERY_S, _SHARE * cost_s))


def strikes_needed(taken: int, whole: int) -> int:
    """How many looks in a row must find the machine short of memory before a call that took ``taken`` of ``whole``
    bytes is ended.

    The larger a call, the sooner: so of several the largest goes first, and what it frees saves the others.
    """
    return 1 + round(_STRIKES * (1 - min(1.0, taken / max(1, whole))))


class KnownDisk:
    """What is known of a session's disk use, kept in its folder so that a later keeper goes on from there."""

    def __init__(self, folder: SessionFolder) -> None:
        self._path = folder.root / "disk.json"
        self.known: Known | None = self._load()

    def _load(self) -> Known | None:
        try:
            value = json.loads(self._path.read_bytes())
            return Known(**{field.name: int(value[field.name]) for field in fields(Known)})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def take(self, value: dict[str, Any]) -> None:
        """Remember what a walk found; losing it costs another walk, so a disk that refuses is no trouble."""
        self.known = Known(**value)
        with contextlib.suppress(OSError):
            durable.swap_file(self._path, json.dumps(value).encode())


def begin(spec: Spawn, leader: int, known: Known | None) -> tuple[int, int]:
    """Start watching a call; (pid of the watcher, descriptor to read its lines from). Raises OSError."""
    return own_child.begin(
        f"watch of call {spec.call}", lambda out: Watch(spec, leader, known, out).run(), os.O_NONBLOCK
    )


class Watch:
    """One call, looked at until it is over a limit or the keeper ends this process."""

    def __init__(self, spec: Spawn, leader: int, known: Known | None, out: int) -> None:
        self._limits: Limits = spec.limits
        self._group = spec.group
        self._out = out
        self._tree = usage.Tree(leader, fenced=spec.fenced)
        self._disk = Meter(spec.grows, spec.limits, known, self._tree.deleted)
        self._known = known
        self._strikes = 0
        self._full = ""
        self._behind = not spec.limits.nice
        self._shared_before = usage.machine_shared()

    def run(self) -> None:
        while True:
            began = time.process_time()
            self._behind = self._behind or self._tree.put_behind(self._limits.nice)
            over = self._processes() or self._files()
            if over is not None:
                self._say("over", asdict(over))
                return
            time.sleep(pause(time.process_time() - began, walking=self._disk.walking))

    def _say(self, what: str, value: dict[str, Any]) -> None:
        try:
            os.write(self._out, json.dumps({what: value}).encode() + b"\n")
        except BlockingIOError:  # nobody reads at the moment; only the last word must arrive
            if what == "over":
                os.set_blocking(self._out, True)
                os.write(self._out, json.dumps({what: value}).encode() + b"\n")

    def _files(self) -> Over | None:
        self._disk.look()
        over = self._disk.steps(_WALK_BUDGET_S)
        if self._disk.known is not None and self._disk.known != self._known:
            self._known = self._disk.known
            self._say("known", asdict(self._known))
        return over

    def _processes(self) -> Over | None:
        allowed = self._limits.together()
        seen = self._tree.look(self._limits.processes)
        if seen.tasks >= self._limits.processes:
            return Over("processes", seen.tasks, self._limits.processes)
        if self._group is not None and self._group.out_of_processes():
            return Over("processes", self._limits.processes, self._limits.processes)
        self._look_for_full()
        if allowed is not None:
            hidden = usage.machine_shared() - self._shared_before > allowed // 4
            if seen.memory > allowed or hidden:
                seen = self._tree.exact()
            if seen.memory > allowed:
                return Over("memory", seen.memory, allowed)
        return self._machine(seen.memory, allowed or ram())

    def _machine(self, taken: int, whole: int) -> Over | None:
        floor = self._limits.free_memory()
        left = usage.available()
        self._strikes = self._strikes + 1 if left < floor else 0
        if self._strikes >= strikes_needed(taken, whole):
            return Over("memory_free", left, floor)
        return None

    def _look_for_full(self) -> None:
        """A full /tmp or /dev/shm ends nothing, since the kernel refuses to write more; but a call that fails then
        shall say why.
        """
        full = next((name for name, share in self._tree.filled().items() if share >= _FULL), "")
        if full and full != self._full:
            self._full = full
            allowed = self._limits.tmp if full == "tmp" else self._limits.shm
            self._say("full", asdict(Over(full, allowed, allowed)))

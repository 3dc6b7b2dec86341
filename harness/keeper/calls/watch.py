"""Beside calls that run for longer: a child of the keeper that looks what they take and says when that is too much.
Standard library only.

A child of its own (`own_child`), because the keeper must never wait for a look into /proc or a walk through an agent's
folders. It watches one call at a time, from its `WatchOrder` until `OVER` says that it is over, and holds
nothing of it from then on, which it says. It speaks JSON: ``{"known": {…}}`` (what a walk found), ``{"full": {…}}``,
``{"over": {…}}`` and ``{"let_go": true}``.
"""

from __future__ import annotations

import contextlib
import gc
import json
import select
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.linux import durable, kernel
from harness.linux.spares import Spares
from harness.protocol.connection.op import reader
from harness.protocol.paths import SessionFolder
from harness.sandbox import resource_usage
from harness.sandbox.cgroups import Group
from harness.sandbox.disk_usage import Known, Meter
from harness.sandbox.limits import Limits, Over, ram

BEGIN_AFTER_S = 0.1
_EVERY_S = 0.1
_WALKING_S = 0.02
_WALK_BUDGET_S = 0.05
_SHARE = 10  # a look is not repeated before this many times its own processor time has passed
_LONGEST_S = 1.0
_FULL = 0.98
_STRIKES = 20
_MESSAGE = 1 << 16
NAME = b"wf-watch"
"""What the process is called."""
OVER = b"over"
"""The message that says that the watched call is over."""


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


_known = reader(Known)


class KnownDisk:
    """What is known of a session's disk use, kept in its folder so that a later keeper goes on from there."""

    def __init__(self, folder: SessionFolder) -> None:
        self._path = folder.root / "disk.json"
        self.known: Known | None = self._load()

    def _load(self) -> Known | None:
        try:
            return _known(json.loads(self._path.read_bytes()))
        except (OSError, ValueError, AttributeError):
            return None

    def take(self, value: dict[str, object]) -> None:
        """Remember what a walk found; losing it costs another walk, so a disk that refuses is no trouble."""
        self.known = _known(value)
        with contextlib.suppress(OSError):
            durable.swap_file(self._path, json.dumps(value).encode())


@dataclass(frozen=True, slots=True)
class WatchOrder:
    """What there is to watch: ``leader`` is the process that the keeper started, ``grows`` are the folders that count
    against the session's disk limits, ``known`` is what was last known of them, ``group`` the call's cgroup, if any.
    """

    leader: int
    sandboxed: bool
    limits: Limits
    grows: list[str]
    group: str
    known: Known | None = None

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()


_order = reader(WatchOrder)


def decode(text: bytes) -> WatchOrder:
    """What `WatchOrder.encode` made."""
    return _order(json.loads(text))


def serve(line: socket.socket) -> None:
    """In the child: watch what is ordered, until the keeper ends this process or is gone."""
    kernel.prctl(kernel.PR_SET_NAME, NAME)
    gc.freeze()  # objects of the keeper believe that they own descriptors, whose numbers are others' now
    spares = Spares()
    watch: Watch | None = None
    pause_s: float | None = None
    while True:
        if select.select([line], [], [], pause_s)[0]:
            said = line.recv(_MESSAGE)
            if watch is not None:
                watch.close()
            if not said:
                return
            pause_s = None
            if said == OVER:
                watch = None
                spares.used()
                line.send(json.dumps({"let_go": True}).encode())
                continue
            watch = Watch(decode(said), line)
            if select.select([line], [], [], 0)[0]:
                continue  # it is over already
        assert watch is not None
        pause_s = watch.look()


class Watch:
    """One call, looked at until it is over a limit, or over."""

    def __init__(self, order: WatchOrder, line: socket.socket) -> None:
        self._limits = order.limits
        self._group = Group(Path(order.group)) if order.group else None
        self._line = line
        self._tree = resource_usage.Tree(order.leader, sandboxed=order.sandboxed)
        self._disk = Meter(order.grows, order.limits, order.known, self._tree.deleted)
        self._known = order.known
        self._strikes = 0
        self._full = ""
        self._behind = not order.limits.nice
        self._shared_before = resource_usage.machine_shared()

    def close(self) -> None:
        """Hold nothing of the call any more."""
        self._tree.close()
        self._disk.close()

    def look(self) -> float | None:
        """Look once; the seconds until the next look, None when everything was said."""
        began = time.process_time()
        self._behind = self._behind or self._tree.put_behind(self._limits.nice)
        over = self._processes() or self._files()
        if over is not None:
            self._line.send(json.dumps({"over": asdict(over)}).encode())
            return None
        return pause(time.process_time() - began, walking=self._disk.walking)

    def _say(self, what: str, value: dict[str, object]) -> None:
        with contextlib.suppress(BlockingIOError):  # nobody reads at the moment; only the last word must arrive
            self._line.send(json.dumps({what: value}).encode(), socket.MSG_DONTWAIT)

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
            grown = resource_usage.machine_shared() - self._shared_before
            if seen.memory > allowed or grown > allowed // 4:
                seen = self._tree.exact()
            if (taken := seen.taken(grown)) > allowed:
                return Over("memory", taken, allowed)
        return self._machine(seen.memory, allowed or ram())

    def _machine(self, taken: int, whole: int) -> Over | None:
        floor = self._limits.free_memory()
        left = resource_usage.available()
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

"""What a keeper must know of its own log to enforce the order of calls and the lease: a fold of the few records that
matter to it.

Standard library only. A `KeeperState` is advanced on a copy and put in place when its records are durable, so that a
batch that did not reach the disk leaves no trace.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from harness.events.call_states import CallStage
from harness.events.calls import Call, OpenCalls

CONCERNS = ("tool.", "approval.", "lease.", "undo.", "keeper.", "job.")
_PLACE_OF_TYPE = 96
_ENDS = 16  # ends of jobs that are remembered for whoever asks later
_NAMED = 5  # calls that are named when a reboot may have undone part of them


@dataclass(slots=True)
class KeeperState:
    """``judged`` holds the newest judged action (or its blob) per open call; ``gen`` and ``epoch`` the highest ever
    granted.
    """

    calls: OpenCalls = field(default_factory=OpenCalls)
    judged: dict[str, dict[str, Any]] = field(default_factory=dict)
    gen: int = 0
    epoch: int = 0
    lease: dict[str, Any] | None = None
    undo: dict[str, Any] | None = None
    """An undo that was begun and has not ended."""
    snapshot: str = ""
    """The state before the newest call that had one."""
    boot: str = ""
    """The boot of the machine in which the newest keeper started."""
    changing: int = 0
    """Calls since that boot began for this session that may have changed files; ``newest`` are the last of them."""
    newest: tuple[str, ...] = ()
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """``job.started`` of those that run, by name."""
    job_ends: dict[str, dict[str, Any]] = field(default_factory=dict)
    """``job.ended`` of the newest that ended, by name."""
    job_count: int = 0
    """How many were ever started."""

    def copy(self) -> KeeperState:
        calls = {key: _copy(call) for key, call in self.calls.open.items()}
        return KeeperState(
            OpenCalls(calls, dict(self.calls.approvals), self.calls.last), dict(self.judged), *self._rest()
        )

    def _rest(self) -> tuple[Any, ...]:
        before = (self.gen, self.epoch, self.lease, self.undo, self.snapshot, self.boot, self.changing, self.newest)
        return (*before, dict(self.jobs), dict(self.job_ends), self.job_count)

    def to_wire(self) -> dict[str, Any]:
        """As JSON can hold it; the inverse of `from_wire`."""
        return asdict(self)

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> KeeperState:
        calls = wire["calls"]
        low, high = calls["last"]
        still_open = {key: Call(**{**call, "stage": CallStage(call["stage"])}) for key, call in calls["open"].items()}
        known = OpenCalls(still_open, dict(calls["approvals"]), (low, high))
        return cls(**{**wire, "calls": known, "newest": tuple(wire["newest"])})

    def take(self, kind: str, data: dict[str, Any]) -> None:
        """Advance by one record. Raises KeyError, TypeError or CallError when its data is not what its type needs."""
        if kind == "lease.granted":
            self.gen = int(data["gen"])
            self.epoch = int(data["epoch"])
            self.lease = dict(data)
            return
        if kind == "lease.ended":
            if self.lease is not None and self.lease["gen"] == data["gen"]:
                self.lease = None
            return
        if kind.startswith("undo."):
            self.undo = dict(data) if kind == "undo.started" else None
            return
        if kind.startswith("job."):
            self._job(kind, data)
            return
        if kind == "keeper.started":
            if data["boot"] != self.boot:
                self.boot = str(data["boot"])
                self.changing = 0
                self.newest = ()
            return
        if kind == "tool.started" and data["effect"] != "read":
            self.snapshot = data.get("snapshot") or self.snapshot
            self.changing += 1
            self.newest = (*self.newest, data["call_id"])[-_NAMED:]
        self.calls.apply(kind, data)
        if kind == "tool.judged":
            self.judged[data["call_id"]] = {"action": data.get("action"), "action_blob": data.get("action_blob")}
        elif kind in ("tool.ended", "tool.resolved") and data["call_id"] not in self.calls.open:
            self.judged.pop(data["call_id"], None)

    def _job(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "job.started":
            self.jobs[data["job"]] = dict(data)
            self.job_count += 1
        elif kind == "job.ended":
            self.jobs.pop(data["job"], None)
            self.job_ends[data["job"]] = dict(data)
            for name in list(self.job_ends)[:-_ENDS]:
                del self.job_ends[name]


def _copy(call: Call) -> Call:
    return replace(call, used_decisions=list(call.used_decisions))


def concerns(kind: str) -> bool:
    """True when records of this type change a `KeeperState`."""
    return kind.startswith(CONCERNS)


def kind_of(line: bytes) -> str:
    """The type of a log line, found without parsing it (it stands at a fixed place behind the time)."""
    start = line.find(b',"type":"', 0, _PLACE_OF_TYPE) + 9
    return line[start : line.find(b'"', start)].decode("ascii", "replace") if start > 8 else ""

"""What a keeper must know of its own log to enforce the order of calls and the lease: a fold of the few records that
matter to it.

Standard library only. A `KeeperState` is advanced on a copy and put in place when its records are durable, so that a
batch that did not reach the disk leaves no trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from harness.domain.calls.call_lifecycle import Call, OpenCalls
from harness.domain.calls.job_words import JobEnd
from harness.protocol.connection.op import reader
from harness.tools.tool import READ

CONCERNS = ("tool.", "approval.", "lease.", "undo.", "keeper.", "job.")
_PLACE_OF_TYPE = 96
_ENDS = 16  # ends of jobs that are remembered for whoever asks later
_NAMED = 5  # calls that are named when a reboot may have undone part of them


@dataclass(frozen=True, slots=True)
class Lease:
    """The brain that may write: its generation, the epoch of the supervisor that let it, and its process."""

    gen: int
    epoch: int
    pid: int = 0
    start: int = 0
    boot: str = ""


@dataclass(frozen=True, slots=True)
class BegunUndo:
    """An undo whose intent is on record: ``snapshot`` is to come back, ``before`` is what was there."""

    undo_id: str
    call_id: str
    snapshot: str
    before: str


@dataclass(frozen=True, slots=True)
class JudgedAction:
    """The action of a verdict as its record has it: itself, or (large) the name of its payload."""

    action: dict[str, object] | None
    sha: str


@dataclass(frozen=True, slots=True)
class _Blob:
    sha: str = ""


@dataclass(frozen=True, slots=True)
class _Verdict:
    call_id: str
    action: dict[str, object] | None = None
    action_blob: _Blob = _Blob()


@dataclass(frozen=True, slots=True)
class _OfCall:
    call_id: str
    effect: str = ""
    snapshot: str = ""


@dataclass(frozen=True, slots=True)
class _OfJob:
    job: str
    call_id: str


@dataclass(frozen=True, slots=True)
class _LeaseEnd:
    gen: int


@dataclass(frozen=True, slots=True)
class _Boot:
    boot: str


_lease = reader(Lease)
_lease_end = reader(_LeaseEnd)
_undo = reader(BegunUndo)
_verdict = reader(_Verdict)
_of_call = reader(_OfCall)
_of_job = reader(_OfJob)
_job_end = reader(JobEnd)
_boot = reader(_Boot)


@dataclass(slots=True)
class KeeperState:
    """``judged`` holds the newest judged action per open call; ``gen`` and ``epoch`` the highest ever granted."""

    calls: OpenCalls = field(default_factory=OpenCalls)
    judged: dict[str, JudgedAction] = field(default_factory=dict)
    gen: int = 0
    epoch: int = 0
    lease: Lease | None = None
    undo: BegunUndo | None = None
    """One that was begun and has not ended."""
    snapshot: str = ""
    """The state before the newest call that had one."""
    boot: str = ""
    """The boot of the machine in which the newest keeper started."""
    changing: int = 0
    """Calls since that boot began for this session that may have changed files; ``newest`` are the last of them."""
    newest: tuple[str, ...] = ()
    jobs: dict[str, str] = field(default_factory=dict)
    """Those that run, by name, with the call that started each."""
    job_ends: dict[str, JobEnd] = field(default_factory=dict)
    """The newest that ended, by name."""
    job_count: int = 0
    """How many were ever started."""

    def copy(self) -> KeeperState:
        calls = {key: _copy(call) for key, call in self.calls.open.items()}
        return replace(
            self,
            calls=OpenCalls(calls, dict(self.calls.approvals), self.calls.last),
            judged=dict(self.judged),
            jobs=dict(self.jobs),
            job_ends=dict(self.job_ends),
        )

    def to_wire(self) -> dict[str, object]:
        """As JSON can hold it; the inverse of `from_wire`."""
        return asdict(self)

    def take(self, kind: str, data: Mapping[str, object]) -> None:
        """Advance by one record. Raises BadArgument, KeyError, TypeError or CallError when its data is not what its
        type needs.
        """
        match kind:
            case "lease.granted":
                self.lease = _lease(data)
                self.gen = self.lease.gen
                self.epoch = self.lease.epoch
            case "lease.ended":
                ended = _lease_end(data)
                if self.lease is not None and self.lease.gen == ended.gen:
                    self.lease = None
            case "undo.started":
                self.undo = _undo(data)
            case "undo.ended":
                self.undo = None
            case "job.started":
                started = _of_job(data)
                self.jobs[started.job] = started.call_id
                self.job_count += 1
            case "job.ended":
                self._job_ended(_job_end(data))
            case "job.waiting":
                pass
            case "keeper.started":
                self._booted(_boot(data).boot)
            case _:
                self._call(kind, data)

    def _job_ended(self, end: JobEnd) -> None:
        self.jobs.pop(end.job, None)
        self.job_ends[end.job] = end
        for name in list(self.job_ends)[:-_ENDS]:
            del self.job_ends[name]

    def _booted(self, boot: str) -> None:
        if boot != self.boot:
            self.boot = boot
            self.changing = 0
            self.newest = ()

    def _call(self, kind: str, data: Mapping[str, object]) -> None:
        if kind == "tool.started":
            self._started(_of_call(data))
        self.calls.apply(kind, data)
        if kind == "tool.judged":
            verdict = _verdict(data)
            self.judged[verdict.call_id] = JudgedAction(verdict.action, verdict.action_blob.sha)
        elif kind in ("tool.ended", "tool.resolved") and (call_id := _of_call(data).call_id) not in self.calls.open:
            self.judged.pop(call_id, None)

    def _started(self, call: _OfCall) -> None:
        if call.effect != READ:
            self.snapshot = call.snapshot or self.snapshot
            self.changing += 1
            self.newest = (*self.newest, call.call_id)[-_NAMED:]


def from_wire(wire: Mapping[str, object]) -> KeeperState:
    """What `KeeperState.to_wire` made. Raises BadArgument."""
    return _state(wire)


_state = reader(KeeperState)


def _copy(call: Call) -> Call:
    return replace(call, used_decisions=list(call.used_decisions))


def concerns(kind: str) -> bool:
    """True when records of this type change a `KeeperState`."""
    return kind.startswith(CONCERNS)


def kind_of(line: bytes) -> str:
    """The type of a log line, found without parsing it (it stands at a fixed place behind the time)."""
    start = line.find(b',"type":"', 0, _PLACE_OF_TYPE) + 9
    return line[start : line.find(b'"', start)].decode("ascii", "replace") if start > 8 else ""

"""The one checker of what must stay true, over logs, blobs, ledger and what lives. Reads only; used by ``doctor``
and after process tests.

It keeps its own books instead of asking the stages or the fold, so that it can disagree with them. The invariants:
I1 log, I2 at most once, I3 nothing without permission, I4 requests, I5 money, I6
index, I7 epochs and leases, I8 nothing comes back, I9 restarts, I10 barriers, I13 leftovers.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness.bundle import payloads
from harness.domain.actions.action import action_hash
from harness.domain.calls.approval_kind import Request
from harness.domain.decision import PERMITS, Decision, Ruling
from harness.domain.states import Desired
from harness.eventlog import reader
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.events.body import UNSETTLED
from harness.linux import safe_files
from harness.linux.proc import Identity, alive
from harness.projections.apply import advance
from harness.projections.state import merging, publishing
from harness.projections.state.merging import MergeState
from harness.projections.state.publishing import PullState
from harness.projections.state.session_state import SessionState
from harness.protocol import locks
from harness.protocol.paths import Folders, SessionFolder
from harness.supervisor.upkeep import ledger_invariants
from harness.supervisor.upkeep.ledger_invariants import Sent
from harness.views.session_views import SessionRow

_GRACE_S = 10.0
_SAME = ("name", "branch", "model", "requests", "tool_calls", "checks_passed", "checks_total", "approvals", "cap_nano")


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken invariant: its id, the session (empty for the fleet) and what is wrong where."""

    id: str
    sid: str
    text: str


@dataclass(slots=True)
class _Call:
    hash: str = ""
    permitted: bool = False
    decision: str = ""
    started: int = 0
    may_restart: bool = True
    ended: bool = False


@dataclass(slots=True)
class _Books:
    """What one session's records said so far; every method yields the texts of what they break."""

    sid: str
    calls: dict[str, _Call] = field(default_factory=dict)
    requests: dict[str, tuple[str, str, list[str]]] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    decisions: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    gen: int = 0
    epoch: int = 0
    seq: int = -1
    desired: str = "running"
    ended: str = ""
    quarantined: bool = False
    merging: MergeState = field(default_factory=MergeState)
    pulling: PullState = field(default_factory=PullState)
    brain: Identity | None = None
    keepers: list[Identity] = field(default_factory=list)
    sent: dict[str, list[t.ModelRequest]] = field(default_factory=dict)
    costs: dict[str, tuple[int, str]] = field(default_factory=dict)
    unusable: dict[str, list[int]] = field(default_factory=dict)
    """What attempts without a usable reply count for that nobody had settled when they failed, by request."""
    blobs: set[t.BlobRef] = field(default_factory=set)

    def take(self, r: t.Record) -> Iterator[tuple[str, str]]:
        """Check one record against those before it."""
        b = r.body
        at = f"record {r.seq} ({r.type})"
        if r.seq != self.seq + 1:
            yield "I1", f"{at} follows record {self.seq}"
        self.seq = r.seq
        if r.gen not in (0, self.gen) and not isinstance(b, t.LeaseGranted):
            yield "I7", f"{at} was written under lease {r.gen} while lease {self.gen} holds"
        self.merging = merging.after(self.merging, b)
        self.pulling = publishing.after(self.pulling, b)
        began = isinstance(b, (t.ToolStarted, t.ModelRequest, t.LeaseGranted, t.ToolProposed))
        ordered = merging.checks_result(self.merging, b) or publishing.pushes(self.pulling, b)
        if self.ended and began and not ordered:
            yield "I8", f"{at} after the session ended"
        self.blobs.update(payloads.named(b))
        if isinstance(
            b, (t.LeaseGranted, t.KeeperStarted, t.SessionDesired, t.Quarantined, t.SessionEnded, t.SessionContinued)
        ):
            yield from self._life(r, b, at)
        elif isinstance(b, (t.ApprovalRequested, t.ApprovalDecided, t.ApprovalStale, t.ApprovalWithdrawn)):
            yield from self._approval(b, at)
        elif isinstance(b, (t.ToolProposed, t.ToolJudged, t.ToolStarted, t.ToolEnded, t.ToolInDoubt, t.ToolResolved)):
            yield from self._call(b, at)
        elif isinstance(b, t.ModelRequest):
            self.sent.setdefault(b.request_id, []).append(b)
        elif isinstance(b, (t.ModelMessage, t.ModelSummary)):
            if b.request_id not in self.sent:
                yield "I5", f"{at} answers request {b.request_id}, which was never recorded"
            if b.request_id in self.costs:
                yield "I5", f"{at} is a second answer to request {b.request_id}"
            self.costs[b.request_id] = (b.cost_nano, b.price_source)
        elif isinstance(b, t.ModelFailed):
            if b.price_source == UNSETTLED:
                self.unusable.setdefault(b.request_id, []).append(b.cost_nano)
        elif isinstance(b, t.ModelSettled):
            if self.costs.get(b.request_id) == (b.recorded_nano, UNSETTLED):
                self.costs[b.request_id] = (b.cost_nano, b.price_source)
            elif b.recorded_nano in (failed := self.unusable.get(b.request_id, [])):
                failed.remove(b.recorded_nano)
            else:
                yield "I5", f"{at} settles request {b.request_id}, whose reply left nothing to settle"

    def _life(self, r: t.Record, b: t.Body, at: str) -> Iterator[tuple[str, str]]:
        match b:
            case t.LeaseGranted():
                if b.gen <= self.gen:
                    yield "I7", f"{at} grants lease {b.gen} after lease {self.gen}"
                if b.epoch < self.epoch:
                    yield "I7", f"{at} comes from epoch {b.epoch} after epoch {self.epoch}"
                if self.desired == Desired.STOPPED:
                    yield "I8", f"{at} wakes a session that was told to stop"
                if self.quarantined:
                    yield "I9", f"{at} restarts a quarantined session"
                self.gen = b.gen
                self.epoch = b.epoch
                self.brain = Identity(b.pid, b.start, b.boot) if b.pid else None
            case t.KeeperStarted():
                self.keepers.append(Identity(b.pid, b.start, b.boot))
            case t.SessionDesired() if self.desired != Desired.STOPPED:
                self.desired = b.state
                if b.state == "running":
                    self.quarantined = False
            case t.Quarantined():
                self.quarantined = True
            case t.SessionEnded():
                if self.ended:
                    yield "I8", f"{at} ends the session a second time"
                self.ended = r.ts
            case t.SessionContinued():
                if not self.ended:
                    yield "I8", f"{at} continues a session that has not ended"
                self.ended = ""
                self.desired = "running"
                self.quarantined = False

    def _approval(self, b: t.Body, at: str) -> Iterator[tuple[str, str]]:
        if isinstance(b, t.ApprovalRequested):
            if b.approval_id in self.requests or b.approval_id in self.closed:
                yield "I4", f"{at} uses request id {b.approval_id} a second time"
            self.requests[b.approval_id] = (b.call_id, b.action_hash, list(b.options))
            if (call := self.calls.get(b.call_id)) is not None and b.kind == Request.TOOL:
                call.permitted = False
            return
        assert isinstance(b, (t.ApprovalDecided, t.ApprovalStale, t.ApprovalWithdrawn))
        asked = self.requests.pop(b.approval_id, None)
        before = self.closed.get(b.approval_id)
        # A decided approval may still turn stale: the decision was for an action that is no more.
        if asked is None and not (isinstance(b, t.ApprovalStale) and before == "approval.decided"):
            yield (
                "I4",
                f"{at}: request {b.approval_id} " + (f"was closed by {before} before" if before else "was never asked"),
            )
        self.closed[b.approval_id] = b.TYPE
        if isinstance(b, t.ApprovalDecided):
            if b.decision_id in self.decisions:
                yield "I4", f"{at} uses decision id {b.decision_id} a second time"
            self.decisions.add(b.decision_id)
            if asked is not None and asked[2] and b.decision not in asked[2]:
                yield "I4", f"{at} decides {b.decision}, which was not offered"
            call = self.calls.get(asked[0]) if asked is not None else None
            if call is not None and asked is not None and b.decision in PERMITS:
                if b.action_hash != asked[1]:
                    yield "I3", f"{at} allows another action than the one that was asked about"
                # an edited action is allowed by its own judgement
                call.decision = b.decision_id if b.decision == Decision.ALLOW else ""
        elif isinstance(b, t.ApprovalStale) and (call := self.calls.get(b.call_id)) is not None:
            call.permitted = False
            call.decision = ""

    def _call(self, b: t.Body, at: str) -> Iterator[tuple[str, str]]:
        assert isinstance(b, (t.ToolProposed, t.ToolJudged, t.ToolStarted, t.ToolEnded, t.ToolInDoubt, t.ToolResolved))
        if isinstance(b, t.ToolProposed):
            if b.call_id in self.calls:
                yield "I2", f"{at} proposes call {b.call_id} a second time"
            self.calls[b.call_id] = _Call()
            return
        call = self.calls.get(b.call_id)
        if call is None or (call.ended and not isinstance(b, t.ToolResolved)):
            yield "I2", f"{at}: call {b.call_id} is not open"
            return
        match b:
            case t.ToolJudged():
                call.hash = b.action_hash
                call.permitted = b.verdict == Ruling.ALLOW
                call.decision = ""
                if b.action is not None and action_hash(b.action) != b.action_hash:
                    yield "I3", f"{at}: the hash does not belong to the action"
            case t.ToolStarted():
                if call.started and not call.may_restart:
                    yield "I2", f"{at} starts call {b.call_id} a second time"
                if b.action_hash != call.hash:
                    yield "I3", f"{at} starts another action than the one that was judged"
                if not call.permitted and (not call.decision or call.decision in self.used):
                    yield "I3", f"{at} has neither an allow verdict nor an unused decision"
                if call.decision:
                    self.used.add(call.decision)
                call.started += 1
                call.may_restart = False
                call.permitted = False
                call.decision = ""
            case t.ToolResolved():
                call.may_restart = b.resolution == "confirmed_not_done"
                call.ended = not call.may_restart
            case t.ToolEnded():
                call.ended = True
            case t.ToolInDoubt():
                pass


def check(folders: Folders, *, live: bool, index: Mapping[str, SessionRow] | None = None) -> list[Violation]:
    """Every violation found. ``live``: processes of this fleet may be running; else nothing of it may be left.

    ``index`` are rows to hold against the logs (only rows made from the same record are compared). Blocking: call from
    a thread.
    """
    found: list[Violation] = []
    known: dict[str, _Books] = {}
    for folder in sorted(folders.sessions.iterdir()) if folders.sessions.is_dir() else []:
        if folder.name.startswith(".") or not (folder / "log").is_dir():
            continue
        sid = folder.name
        books = _Books(sid)
        state = SessionState()
        found += [Violation(i, sid, text) for i, text in _session(folders.session(sid), books, state)]
        known[sid] = books
        if index is not None and (row := index.get(sid)) is not None and row.seq == state.seq:
            found += _compare(sid, row, state)
    sent = {sid: Sent(books.sent, books.costs) for sid, books in known.items()}
    found += [Violation(i, sid, text) for i, sid, text in ledger_invariants.broken(folders.ledger, sent)]
    found += _leftovers(folders, known, live)
    return found


def _session(folder: SessionFolder, books: _Books, state: SessionState) -> Iterator[tuple[str, str]]:
    try:
        for line in reader.read(folder.log):
            record = t.decode(line)
            yield from books.take(record)
            advance(state, record)
    except (LogError, msgspec.DecodeError, OSError) as exc:
        yield "I1", str(exc)
    for ref in books.blobs:
        if why := payloads.problem(folder.blobs, ref):
            yield "I10", f"a record names payload {ref.sha}, which {why}"


def _compare(sid: str, row: SessionRow, state: SessionState) -> Iterator[Violation]:
    i = state.intent
    folded: dict[str, object] = {
        "name": state.name or sid,
        "branch": i.branch if i else "",
        "model": i.model if i else "",
        "requests": state.requests,
        "tool_calls": state.tool_calls,
        "checks_passed": state.checks_passed,
        "checks_total": len(state.checks),
        "approvals": list(state.approvals),
        "cap_nano": state.caps.usd_nano,
    }
    for name in _SAME:
        if getattr(row, name) != folded[name]:
            yield Violation("I6", sid, f"the index says {name} = {getattr(row, name)!r}, the log {folded[name]!r}")


def _leftovers(folders: Folders, known: Mapping[str, _Books], live: bool) -> Iterator[Violation]:
    now = datetime.now(UTC)
    for sid, books in known.items():
        keepers = [k for k in dict.fromkeys(books.keepers) if alive(k)]
        if len(keepers) > 1:
            yield Violation("I7", sid, f"{len(keepers)} keepers live: {', '.join(str(k.pid) for k in keepers)}")
        brain = books.brain is not None and alive(books.brain)
        if not live:
            for keeper in keepers:
                yield Violation("I13", sid, f"keeper {keeper.pid} still lives")
            if locks.held(folders.session(sid).lock):
                yield Violation("I13", sid, "its lock is held")
        if (
            brain
            and books.brain is not None
            and (not live or (books.ended and (now - datetime.fromisoformat(books.ended)).total_seconds() > _GRACE_S))
        ):
            yield Violation(
                "I13",
                sid,
                f"brain {books.brain.pid} lives though the {'session ended' if books.ended else 'fleet was stopped'}",
            )
    if not live and locks.held(folders.supervisor_lock):
        yield Violation("I13", "", "the supervisor's lock is held")
    for folder, suffix, what in ((folders.keeper_sockets, ".sock", "socket"), (folders.worktrees, "", "worktree")):
        for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
            sid = entry.name.removesuffix(suffix) if suffix else entry.name
            if not entry.name.startswith(".") and entry.name.endswith(suffix) and not (folders.sessions / sid).is_dir():
                yield Violation("I13", sid, f"{what} {entry} belongs to no session")
    if folders.worktrees.is_dir():
        yield from _unregistered(folders, known)


def _unregistered(folders: Folders, known: Mapping[str, _Books]) -> Iterator[Violation]:
    """A worktree that git no longer knows: somebody removed its record in the repository."""
    for sid in known:
        saved = folders.session(sid).git / "workspace.json"
        with contextlib.suppress(OSError, ValueError):
            value = json.loads(safe_files.read(saved))
            root = Path(value["root"])
            admin = Path(value["admin"])
            if value.get("ready") and root.is_dir() and not admin.is_dir():
                yield Violation("I13", sid, f"worktree {root} is no longer known to its repository ({admin} is gone)")

"""Gathers what is to be judged: effect files, the endpoint's notes and bill, logs, the ledger, and who still lives."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path

from harness.budget.ledger_types import Reserved, Settled, Unknown, decode
from harness.eventlog.blobs import get
from harness.eventlog.framing import LogError
from harness.eventlog.reader import read, verify
from harness.events import types as t
from harness.linux.proc import Identity, alive
from harness.projections.apply import fold
from harness.supervisor.upkeep import invariants
from tests.soak.checks import Evidence, SessionEvidence
from tests.soak.scenarios.worker import GOAL, WIDTH
from tests.soak.world import World


def gather(w: World) -> Evidence:
    """Everything but what is left after the fleet was stopped (`leftovers`). A supervisor may serve meanwhile."""
    e = Evidence(broken=list(w.broken))
    states = {row["sid"]: row for row in w.rows()}
    ledger = _ledger(w.fleet.folders.ledger)
    usage = w.control("usage")
    e.total_bill_nano = usage["total"]["nano"]
    bills = {found["name"]: c["nano"] for c in usage["conversations"] if (found := GOAL.search(c["goal"]))}
    for sid in w.sids():
        s = _session(w, sid, states.get(sid, {}))
        s.bill_nano = bills.get(s.name, 0)
        s.settled_nano, s.unknown_nano, s.held_nano = ledger.get(sid, (0, 0, 0))
        e.sessions.append(s)
    e.invariants = [f"{v.id} {v.sid} {v.text}" for v in invariants.check(w.fleet.folders, live=True)]
    e.damage = damage(w)
    return e


def damage(w: World) -> list[str]:
    """What ``verify`` says of every log and the ledger."""
    folders = [*(w.fleet.folders.session(sid).log for sid in w.sids()), w.fleet.folders.ledger]
    problems = (verify(folder).problem for folder in folders if folder.is_dir())
    return [f"{p.file} at {p.offset}: {p.why}" for p in problems if p is not None]


def leftovers(w: World) -> list[str]:
    """What lives though the fleet was stopped: by name, and by what was seen alive before."""
    named = {pid: command[:120] for pid, command in w.fleet.processes() if pid != w.fleet.simulator.pid}
    named |= {who.pid: "seen earlier" for who in w.seen if alive(who)}
    return [f"process {pid} ({command})" for pid, command in named.items()]


def effect_lines(path: Path) -> list[str]:
    """The lines of an effects file; what is no whole line stands as it is, so that it is seen as unasked."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    return [data[at : at + WIDTH].decode("utf-8", "replace").removesuffix("\n") for at in range(0, len(data), WIDTH)]


def told_lines(path: Path) -> dict[str, str]:
    """The endpoint's notes: each line asked for, with what it heard of it first."""
    told: dict[str, str] = {}
    with contextlib.suppress(FileNotFoundError):
        for fact in map(json.loads, path.read_text("utf-8").splitlines()):
            if "asked" in fact:
                told.setdefault(fact["asked"], "")
            else:
                told[fact["told"]] = told.get(fact["told"]) or fact["how"]
    return told


def _session(w: World, sid: str, row: dict[str, object]) -> SessionEvidence:
    folder = w.fleet.folders.session(sid)
    records: list[t.Record] = []
    with contextlib.suppress(LogError, OSError):  # `damage` says so
        records.extend(t.decode(line) for line in read(folder.log))
    state = fold(records)
    goal = GOAL.search(state.intent.goal) if state.intent is not None else None
    s = SessionEvidence(sid, goal["name"] if goal else sid)
    s.state = str(row.get("state", "unknown"))
    s.detail = str(row.get("detail", "nobody shows it"))
    s.finished = state.ended is not None
    s.stopped = state.desired == "stopped"
    s.stop_asked = sid in w.stops_asked
    s.stop_acknowledged = sid in w.stops
    s.effects = effect_lines(w.fleet.folders.worktrees / sid / "effects.txt")
    s.told = told_lines(w.notes / f"{s.name}.jsonl")
    s.open_requests = [(a.kind, a.title) for a in state.approvals.values()]
    stopped_at = next(
        (r.seq for r in records if isinstance(r.body, t.SessionDesired) and r.body.state == "stopped"), None
    )
    s.stop_recorded = stopped_at is not None
    for r in records:
        if isinstance(r.body, t.ApprovalRequested):
            s.questions.append((r.body.kind, r.body.title))
        elif isinstance(r.body, t.ToolInDoubt):
            s.in_doubt += 1
        if stopped_at is not None and r.seq > stopped_at:
            s.after_stop.append(r.type)
    s.logged = _calls(records, folder.blobs)
    who = {
        Identity(r.body.pid, r.body.start, r.body.boot): r.type
        for r in records
        if isinstance(r.body, (t.KeeperStarted, t.LeaseGranted))
    }
    s.alive = [f"{kind} {i.pid}" for i, kind in who.items() if alive(i)]
    return s


def _calls(records: list[t.Record], blobs: Path) -> dict[str, str]:
    """How the call of each line ended, by the log."""
    of_call: dict[str, str] = {}
    ended: dict[str, str] = {}
    for r in records:
        b = r.body
        if isinstance(b, t.ToolProposed):
            given = b.input if b.input_blob is None else json.loads(get(blobs, b.input_blob.sha))
            parts = str((given or {}).get("script", "")).split("'")
            if len(parts) > 3:
                of_call[b.call_id] = parts[3]
                ended[parts[3]] = "open"
        elif isinstance(b, t.ToolEnded) and b.call_id in of_call:
            ended[of_call[b.call_id]] = b.status
        elif isinstance(b, t.ToolResolved) and b.call_id in of_call:
            ended[of_call[b.call_id]] = "resolved"
    return ended


def _ledger(folder: Path) -> dict[str, tuple[int, int, int]]:
    """(settled, unknown, held) of each session, from the records alone."""
    reserved: dict[str, Reserved] = {}
    settled: Counter[str] = Counter()
    unknown: dict[str, Reserved] = {}
    sids: set[str] = set()
    for line in read(folder) if folder.is_dir() else ():
        record = decode(line)
        if isinstance(record, Reserved):
            reserved[record.reservation] = record
            sids.add(record.sid)
        elif isinstance(record, Unknown):
            unknown[record.reservation] = reserved.pop(record.reservation)
        elif isinstance(record, Settled):
            of = reserved.pop(record.reservation, None) or unknown.pop(record.reservation)
            settled[of.sid] += record.nano
    doubtful = Counter[str]()
    held = Counter[str]()
    for r in unknown.values():
        doubtful[r.sid] += r.nano
    for r in reserved.values():
        held[r.sid] += r.nano
    return {sid: (settled[sid], doubtful[sid], held[sid]) for sid in sids}

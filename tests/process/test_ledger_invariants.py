"""The invariant checker on logs and ledgers as the real writer writes them: a sound fleet is clean, each broken rule is
named.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.budget.ledger_types import CapsInForce, LedgerRecord, Reserved, Settled, Unknown, to_wire
from harness.domain.actions.action import action_hash
from harness.eventlog import blobs
from harness.eventlog.reader import read
from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.linux.proc import identify
from harness.projections.apply import fold
from harness.projections.state.row_state import Liveness
from harness.protocol.paths import Folders
from harness.supervisor.upkeep.invariants import check
from harness.views.rows import row

SID = "aaaaaaaaaa"
ACTION = {"v": 1, "tool": "exec", "argv": ["x"]}
HASH = action_hash(ACTION)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "state", tmp_path / "run", tmp_path / "config")


def write(folders: Folders, bodies: Iterable[t.Body | tuple[int, t.Body]], sid: str = SID) -> None:
    folders.session(sid).root.mkdir(parents=True, exist_ok=True)
    log = LogWriter.open(folders.session(sid).log, sid)
    for item in bodies:
        gen, body = item if isinstance(item, tuple) else (0, item)
        log.append(body.TYPE, msgspec.to_builtins(body), actor="test", gen=gen)
    log.commit(True)
    log.close()


def write_ledger(folders: Folders, records: Iterable[LedgerRecord]) -> None:
    log = LogWriter.open(folders.ledger, "ledger")
    for record in records:
        kind, data = to_wire(record)
        log.append(kind, data, actor="supervisor")
    log.commit(True)
    log.close()


def ids(folders: Folders, *, live: bool = True, **more: Any) -> list[str]:
    return sorted({v.id for v in check(folders, live=live, **more)})


INTENT = t.SessionIntent(name="n", goal="g", repo="/r", branch="b", worktree="/w", model="m")


def proposed(call: str = "c1.0") -> t.Body:
    return t.ToolProposed(call_id=call, tool="exec", ref="toolu_1", input={"argv": ["x"]})


def judged(verdict: str = "allow", call: str = "c1.0", digest: str = HASH) -> t.Body:
    return t.ToolJudged(
        call_id=call, action_hash=digest, verdict=verdict, rule="r", reason="", policy="p", action=ACTION
    )


def asked(approval: str = "a1", call: str = "c1.0", digest: str = HASH) -> t.Body:
    return t.ApprovalRequested(
        approval_id=approval, kind="tool", title="?", options=["allow", "deny"], call_id=call, action_hash=digest
    )


def decided(decision: str = "allow", approval: str = "a1", name: str = "d1", digest: str = HASH) -> t.Body:
    return t.ApprovalDecided(
        approval_id=approval, decision_id=name, decision=decision, call_id="c1.0", action_hash=digest
    )


def started(digest: str = HASH, call: str = "c1.0", **more: Any) -> t.Body:
    return t.ToolStarted(call_id=call, action_hash=digest, effect="irreversible", **more)


def ended(call: str = "c1.0") -> t.Body:
    return t.ToolEnded(call_id=call, status="ok")


def resolved(how: str) -> t.Body:
    return t.ToolResolved(call_id="c1.0", resolution=how)


def lease(gen: int, epoch: int = 1) -> t.Body:
    return t.LeaseGranted(gen=gen, epoch=epoch)


def desired(state: str) -> t.Body:
    return t.SessionDesired(state=state)


DOUBT = t.ToolInDoubt(call_id="c1.0", why="gone")
STALE = t.ApprovalStale(approval_id="a1", call_id="c1.0", difference=["x"])
OVER = t.SessionEnded(outcome="done")

SOUND: dict[str, list[t.Body | tuple[int, t.Body]]] = {
    "allowed": [lease(1), (1, proposed()), judged(), started(), ended(), OVER],
    "approved": [proposed(), judged("ask"), asked(), decided(), started(decision_id="d1"), ended()],
    "denied": [proposed(), judged("ask"), asked(), decided("deny"), ended()],
    "stale": [
        proposed(),
        judged("ask"),
        asked(),
        decided(),
        STALE,
        judged("ask"),
        asked("a2"),
        decided(approval="a2", name="d2"),
        started(),
        ended(),
    ],
    "in doubt": [proposed(), judged(), started(), DOUBT, resolved("confirmed_not_done"), judged(), started(), ended()],
    "withdrawn": [proposed(), judged("ask"), asked(), t.ApprovalWithdrawn(approval_id="a1", why="stopped")],
    "resumed": [desired("paused"), desired("running"), lease(1), lease(2, 3)],
}
BROKEN: dict[str, tuple[str, list[t.Body | tuple[int, t.Body]]]] = {
    "started twice": ("I2", [proposed(), judged(), started(), DOUBT, judged(), started()]),
    "started after its end": ("I2", [proposed(), judged(), started(), ended(), started()]),
    "proposed twice": ("I2", [proposed(), proposed()]),
    "started unjudged": ("I3", [proposed(), started()]),
    "started though denied": ("I3", [proposed(), judged("deny"), started()]),
    "started unasked": ("I3", [proposed(), judged("ask"), asked(), started()]),
    "started after a no": ("I3", [proposed(), judged("ask"), asked(), decided("deny"), started()]),
    "started another action": ("I3", [proposed(), judged(), started("0" * 64)]),
    "allowed another action": ("I3", [proposed(), judged("ask"), asked(), decided(digest="0" * 64)]),
    "hash of another action": ("I3", [proposed(), judged(digest="0" * 64)]),
    "used after stale": ("I3", [proposed(), judged("ask"), asked(), decided(), STALE, started()]),
    "decided twice": ("I4", [proposed(), judged("ask"), asked(), decided(), decided(name="d2")]),
    "decided unasked": ("I4", [decided()]),
    "decided and withdrawn": (
        "I4",
        [proposed(), judged("ask"), asked(), decided(), t.ApprovalWithdrawn(approval_id="a1", why="x")],
    ),
    "not an option": ("I4", [proposed(), judged("ask"), asked(), decided("raise")]),
    "decision id twice": ("I4", [asked("a1", "c9.0"), decided(), asked("a2", "c9.0"), decided(approval="a2")]),
    "old brain": ("I7", [lease(1), lease(2), (1, t.HarnessNote(level="info", text="x"))]),
    "lease goes back": ("I7", [lease(2), lease(2)]),
    "epoch goes back": ("I7", [lease(1, 5), lease(2, 4)]),
    "woken though stopped": ("I8", [desired("stopped"), lease(1)]),
    "works after its end": ("I8", [OVER, lease(1)]),
    "ends twice": ("I8", [OVER, OVER]),
    "restarted in quarantine": ("I9", [t.Quarantined(part="brain", reason="x", restarts=3), lease(1)]),
    "blob missing": ("I10", [t.ToolEnded(call_id="c1.0", status="ok", output=t.BlobRef("f" * 64, 3))]),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_session_is_clean(folders: Folders, name: str) -> None:
    write(folders, [INTENT, *SOUND[name]])
    assert check(folders, live=False) == []


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_rule_is_named(folders: Folders, name: str) -> None:
    invariant, bodies = BROKEN[name]
    write(folders, [INTENT, *bodies])
    assert invariant in ids(folders)
    assert all(v.sid == SID and v.text for v in check(folders, live=True))


def test_a_damaged_log_is_located_and_the_others_are_still_checked(folders: Folders) -> None:
    write(folders, [INTENT, *SOUND["allowed"]])
    write(folders, [INTENT, *BROKEN["started twice"][1]], "bbbbbbbbbb")
    file = folders.session(SID).log / "000001.jsonl"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)
    found = check(folders, live=True)
    assert {(v.id, v.sid) for v in found} >= {("I1", SID), ("I2", "bbbbbbbbbb")}
    assert "000001.jsonl" in next(v.text for v in found if v.id == "I1")


def test_a_damaged_blob_is_found(folders: Folders) -> None:
    folder = folders.session(SID).blobs
    folder.mkdir(parents=True)
    sha, size = blobs.put(folder, b"output")
    write(
        folders,
        [
            INTENT,
            proposed(),
            judged(),
            started(),
            t.ToolEnded(call_id="c1.0", status="ok", output=t.BlobRef(sha, size)),
        ],
    )
    assert ids(folders) == []
    path = next(p for p in folder.rglob("*") if p.is_file())
    path.chmod(0o600)
    path.write_bytes(b"other!")
    assert ids(folders) == ["I10"]


def held(name: str = "r1", nano: int = 10, **more: Any) -> Reserved:
    return Reserved(
        **{
            "reservation": name,
            "sid": SID,
            "request_id": "q1",
            "attempt": 1,
            "nano": nano,
            "tokens": 1,
            "day": "2026-01-02",
            **more,
        }
    )


def sent(reservation: str = "r1", nano: int = 10) -> t.Body:
    return t.ModelRequest(
        request_id="q1",
        attempt=1,
        model="m",
        reservation=reservation,
        reserved_nano=nano,
        est_input=1,
        max_tokens=1,
        upto_seq=0,
    )


def answered(cost: int = 7, source: str = "list") -> t.Body:
    return t.ModelMessage(
        request_id="q1",
        message_id="x",
        model="m",
        stop="done",
        usage=t.Usage(),
        cost_nano=cost,
        price_source=source,
    )


PAID = Settled(reservation="r1", nano=7, tokens=1)


@pytest.mark.parametrize(
    ("records", "bodies", "expected"),
    [
        ([held(), PAID], [sent(), answered()], []),
        ([held(), Unknown(reservation="r1")], [sent()], []),
        ([held(), Unknown(reservation="r1"), PAID], [sent(), answered(10, "reserved")], []),
        ([held(), PAID], [sent(), answered(8)], ["I5"]),
        ([held()], [sent(), answered()], ["I5"]),
        ([held(), PAID, PAID], [], ["I5"]),
        ([PAID], [], ["I5"]),
        ([], [sent()], ["I5"]),
        ([held(nano=9)], [sent()], ["I5"]),
        ([held(), PAID], [sent(), answered(), answered()], ["I5"]),
        ([held(), PAID], [answered()], ["I5"]),
        ([held(limits=CapsInForce(session_usd=9))], [], ["I5"]),
        (
            [held(limits=CapsInForce(fleet_usd=15)), held("r2", request_id="q2", limits=CapsInForce(fleet_usd=15))],
            [],
            ["I5"],
        ),
        ([held(limits=CapsInForce(day_usd=11)), Settled(reservation="r1", nano=12, tokens=1)], [], ["I5"]),
        ([held(), held("r2", request_id="q2", day="2026-01-01")], [], ["I8"]),
    ],
)
def test_money_adds_up_at_every_prefix(
    folders: Folders, records: list[LedgerRecord], bodies: list[t.Body], expected: list[str]
) -> None:
    write(folders, [INTENT, *bodies])
    write_ledger(folders, records)
    assert ids(folders) == expected


def test_the_index_is_held_against_the_log(folders: Folders) -> None:
    write(folders, [INTENT, *SOUND["allowed"]])
    state = fold(t.decode(line) for line in read(folders.session(SID).log))
    good = row(SID, state, Liveness())
    assert ids(folders, index={SID: good}) == []
    assert ids(folders, index={SID: msgspec.structs.replace(good, tool_calls=9)}) == ["I6"]
    assert ids(folders, index={SID: msgspec.structs.replace(good, tool_calls=9, seq=1)}) == []


def test_leftovers_of_a_stopped_fleet_are_named(folders: Folders) -> None:
    me = identify(os.getpid())
    assert me is not None
    keeper = t.KeeperStarted(pid=me.pid, start=me.start, boot=me.boot)
    gone = t.KeeperStarted(pid=me.pid, start=me.start + 1, boot=me.boot)
    write(folders, [INTENT, gone, keeper, t.LeaseGranted(gen=1, epoch=1, pid=me.pid, start=me.start, boot=me.boot)])
    assert ids(folders) == []
    folders.keeper_sockets.mkdir(parents=True)
    (folders.keeper_sockets / "cccccccccc.sock").touch()
    (folders.worktrees / "dddddddddd").mkdir(parents=True)
    (folders.worktrees / ".lock-x").touch()
    lock = os.open(folders.session(SID).lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    texts = sorted(v.text.split()[0] for v in check(folders, live=False) if v.id == "I13")
    os.close(lock)
    assert texts == ["brain", "its", "keeper", "socket", "worktree"]


def test_a_fleet_that_never_was_is_clean(folders: Folders) -> None:
    assert check(folders, live=False) == []


def test_what_an_unusable_reply_cost_is_settled_late_once_and_its_request_is_asked_again(folders: Folders) -> None:
    failed = t.ModelFailed(
        request_id="q1", attempt=1, kind="cut", message="m", usage=t.Usage(), cost_nano=9, price_source="reserved"
    )
    late = t.ModelSettled(
        request_id="q1", reservation="r1", usage=t.Usage(), cost_nano=7, recorded_nano=9, price_source="list"
    )
    write_ledger(folders, [held(), PAID])
    write(folders, [INTENT, sent(), failed, late, answered()])
    assert [v.text for v in check(folders, live=False) if "settle" in v.text or "second answer" in v.text] == []
    write(folders, [late], sid="bbbbbbbbbb")
    assert any("left nothing to settle" in v.text for v in check(folders, live=False))

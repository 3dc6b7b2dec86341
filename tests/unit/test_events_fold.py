"""Types, fold, calls, snapshots, words: total on anything a log can hold, and the calls never starts what was not
allowed.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.brain.drafting import SUMMARY
from harness.domain.calls.call_lifecycle import CallError, OpenCalls
from harness.domain.decision import Ruling
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import usd
from harness.eventlog.reader import read
from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.events.plan.contract_events import PURPOSES
from harness.projections.apply import advance, fold
from harness.projections.state.row_state import Liveness
from harness.projections.state.session_state import SessionState
from harness.projections.state_snapshots import Snapshot, encode, load, store, version_of
from harness.reports import describing
from harness.reports.describe import GROUPS, WORDS, describe, detail, group_of
from harness.views.rows import row

CALLS = ["c1.0", "c2.0", "c2.1", "nonsense", ""]
APPROVALS = ["a1", "a2"]
HASHES = ["h1", "h2"]
POOL: dict[str, list[Any]] = {
    "call_id": CALLS,
    "approval_id": APPROVALS,
    "action_hash": HASHES,
    "verdict": ["allow", "ask", "deny"],
    "decision": ["allow", "allow_edited", "deny", "answer"],
    "decision_id": ["d1", "d2", "d3"],
    "tool": ["exec", "check", "chore"],
    "resolution": ["confirmed_done", "confirmed_not_done"],
}


def _value(rng: random.Random, name: str, kind: object) -> Any:
    if name in POOL:
        return rng.choice(POOL[name])
    text = str(kind)
    if "Usage" in text:
        return {"input": rng.randrange(100), "output": 3}
    if "Caps" in text:
        return {"usd_nano": rng.randrange(10**9)}
    if "By" in text and "BlobRef" not in text:
        return {"client": "tui"}
    if "BlobRef" in text:
        return {"sha": "0" * 64, "bytes": 3}
    if name == "parts" and "RulesPart" in text:
        return [{"path": "docs/x.md", "sha": "0" * 64, "bytes": 5, "text": "hello", "by": "AGENTS.md"}]
    if name == "parts":
        return [
            {"part": "text", "text": "hello\x1b[2J\nworld"},
            {"part": "call", "ref": "t", "tool": "x", "input": {}},
            {"part": "private", "of": "x", "data": {}},
        ]
    if name == "commits" and "Commit" in text:
        return [{"id": "7dec9de", "subject": "Add it"}]
    if name == "entries":
        return [{"id": "US-1", "title": "One", "checks": ["true"]}]
    if name == "phrases":
        return {"Tests pass": "make test"}
    if name == "phases":
        return [{"name": "ship", "gate": "it goes out"}]
    if name == "memories":
        return [{"scope": "repository", "key": "build", "version": 2, "sha": "0" * 64}]
    if name == "roles":
        return [{"part": "worker", "name": "coder", "version": "0" * 64, "text": "tools = []"}]
    if name == "judge":
        return {"model": "m", "cycles": 3}
    if name == "contract":
        return {"model": "m", "revisions": 1}
    if name == "findings":
        return [{"criterion": "goal", "holds": False, "reason": "half of it"}]
    if name == "masked" and "list" in text:
        return [{"command": "make test | tail", "why": "the end of the pipe decides"}]
    if name == "checked":
        return [{"command": "make test", "outcome": "now_passes"}]
    if name == "files" and "str" not in text:
        return [{"path": "tests/a.py", "how": "deleted", "sha": "absent"}]
    if name == "ways":
        return {"fresh": "per-task"}
    if name == "forked":
        return {
            "sid": "0123456789",
            "checkpoint_id": "k1",
            "through_seq": 3,
            "base": "0" * 40,
            "head": "1" * 40,
            "commit": "2" * 40,
        }
    if name == "layers":
        return {"goal": 3, "turns": 5}
    if "list[int]" in text:
        return [1, 2]
    if "list" in text:
        return ["one", "two"]
    if "dict" in text:
        return {"argv": ["git", "push"], "command": "make test"}
    if "bool" in text:
        return rng.random() < 0.5
    if "int" in text:
        return rng.randrange(5)
    if "float" in text:
        return 1.5
    return rng.choice(["x", "two words", "a\nb", "\x1b]0;x\x07"])


def make(rng: random.Random, cls: type[t.Body]) -> dict[str, Any]:
    fields = msgspec.structs.fields(cls)
    return {f.name: _value(rng, f.name, f.type) for f in fields if f.required or rng.random() < 0.5}


def line(seq: int, kind: str, data: object) -> bytes:
    return msgspec.json.encode(
        {
            "v": 1,
            "seq": seq,
            "ts": f"2026-01-01T00:00:00.{seq % 1000:03d}Z",
            "type": kind,
            "actor": "x",
            "gen": 0,
            "data": data,
        }
    )


KINDS = sorted(t.TYPES)


# -- types -----------------------------------------------------------------------------------------


def test_every_type_has_a_name_words_and_a_group() -> None:
    assert len(t.TYPES) == len({cls.TYPE for cls in t.TYPES.values()}) > 30
    rng = random.Random(1)
    for kind, cls in t.TYPES.items():
        for _ in range(20):
            record = t.decode(line(4, kind, make(rng, cls)))
            assert type(record.body) is cls
            words = describe(record)
            assert words.kind
            assert len(words.kind) <= 10
            assert words.tone in ("info", "good", "warn", "bad", "dim")
            assert "\n" not in to_display(words.summary)
            assert len(words.summary) < 2000
            assert kind in detail(record)
        assert group_of(kind) in GROUPS


def test_each_word_that_a_line_begins_with_is_known() -> None:
    said = [
        node.args[0]
        for room in Path(describing.__path__[0]).glob("*.py")
        for node in ast.walk(ast.parse(room.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Line"
    ]
    literal = {word.value for word in said if isinstance(word, ast.Constant)}
    assert "wants" in literal
    assert literal <= WORDS
    of_others = {"says", "you", "Watchfloor", "goal", "pause", "resume", "stop", "done", "failed", "stopped"}
    assert {*literal, *of_others, *Ruling, *PURPOSES, SUMMARY} == WORDS


def test_unknown_types_and_shapes_are_kept() -> None:
    record = t.decode(line(3, "future.thing", {"a": [1, 2]}))
    assert record.body == t.Unknown(type="future.thing", data={"a": [1, 2]})
    assert record.type == "future.thing"
    assert describe(record).kind == "future.thing"
    assert "a:" in detail(record)
    odd = t.decode(line(4, "tool.started", {"call_id": 7}))
    assert isinstance(odd.body, t.Unknown)
    state = fold([record, odd])
    assert (state.unknown, state.seq, state.last_event) == (2, 4, "tool.started")


def test_words_a_person_reads() -> None:
    def said(kind: str, data: dict[str, Any]) -> tuple[str, str, str]:
        words = describe(t.decode(line(0, kind, data)))
        return words.kind, words.summary, words.tone

    assert (
        said(
            "tool.proposed",
            {"call_id": "c1.0", "ref": "t1", "tool": "exec", "input": {"argv": ["git", "commit", "-m", "a b"]}},
        )[1]
        == "exec: git commit -m 'a b'"
    )
    assert said(
        "tool.ended", {"call_id": "c1.0", "status": "error", "exit_code": 2, "ms": 1500, "preview": "\n\nboom\nmore"}
    )[1:] == (
        "c1.0 error exit 2, 1.5 s: boom …",
        "bad",
    )
    assert said(
        "tool.judged",
        {
            "call_id": "c1.0",
            "action_hash": "h",
            "verdict": "ask",
            "rule": "push",
            "reason": "",
            "policy": "p",
            "effects": ["network"],
        },
    ) == (
        "ask",
        "c1.0 by rule push · leaves the sandbox: network",
        "warn",
    )
    assert said("session.ended", {"outcome": "done", "verified": True, "summary": "all fine"}) == (
        "done",
        "done, verified: all fine",
        "good",
    )
    assert [usd(n) for n in (0, 1_230_000_000, 12_300_000, -5)] == ["$0.00", "$1.23", "$0.0123", "$-0.0000"]


# -- fold ------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*KINDS, "future.x"]), max_size=60), st.integers(0, 2**32))
def test_the_fold_is_total_and_the_same_in_one_go_or_in_two(kinds: list[str], seed: int) -> None:
    rng = random.Random(seed)
    lines = [line(i, kind, make(rng, t.TYPES[kind]) if kind in t.TYPES else {}) for i, kind in enumerate(kinds)]
    state = fold(t.decode(item) for item in lines)
    assert state.seq == len(lines) - 1
    view = row("s", state, Liveness(True, False))
    assert view.state
    cut = rng.randrange(len(lines) + 1)
    half = fold(t.decode(item) for item in lines[:cut])
    restored = msgspec.json.decode(msgspec.json.encode(half), type=SessionState)
    assert fold((t.decode(item) for item in lines[cut:]), restored) == state


# -- calls ------------------------------------------------------------------------------------------

ROAD = [kind for kind in KINDS if kind.startswith(("tool.", "approval."))]


_NEXT = {
    "proposed": ["tool.judged"],
    "judged": ["tool.started", "approval.requested"],
    "asked": ["approval.decided"],
    "decided": ["tool.started"],
    "started": ["tool.in_doubt", "tool.started"],
    "in_doubt": ["tool.resolved"],
}


@pytest.mark.slow
def test_nothing_starts_without_leave_and_a_decision_is_used_once() -> None:
    """800 random walks, half of them along the calls and half across it, through the keeper's check."""
    assert sum(_walk(seed) for seed in range(800)) > 400, "walks that never start anything would prove nothing"


def _walk(seed: int) -> int:
    """One walk; every start is judged by an independent, slower reading of what was accepted before.

    Returns the starts.
    """
    rng = random.Random(seed)
    calls = OpenCalls()
    accepted: list[tuple[str, dict[str, Any]]] = []
    used: list[str] = []
    unique = 0
    starts = 0
    for _ in range(40):
        kind = rng.choice(ROAD)
        if calls.open and rng.random() < 0.6:
            kind = rng.choice(_NEXT[rng.choice(list(calls.open.values())).stage])
        data = make(rng, t.TYPES[kind])
        unique += 1
        if kind == "tool.proposed":
            data["call_id"] = f"c{unique}.{rng.randrange(3)}"
        elif "call_id" in data and calls.open:
            data["call_id"] = rng.choice(list(calls.open))
        if kind == "approval.requested":
            data["approval_id"] = f"a{unique}"
        elif "approval_id" in data and calls.approvals:
            data["approval_id"] = rng.choice(list(calls.approvals))
        if kind == "approval.decided":
            data["decision_id"] = f"d{unique}"
        if "action_hash" in data and rng.random() < 0.8:
            data["action_hash"] = "h1"
        try:
            calls.check(kind, data)
        except CallError:
            continue
        if kind == "tool.started":
            call = data["call_id"]
            digest = data["action_hash"]
            asked = _approvals(accepted, call)
            mine = [
                (k, d)
                for k, d in accepted
                if (d.get("approval_id") in asked if k.startswith("approval.") else d.get("call_id") == call)
            ]
            judged = [i for i, (k, d) in enumerate(mine) if k == "tool.judged"]
            assert judged, "never started unjudged"
            last = mine[judged[-1]][1]
            assert last["action_hash"] == digest, "never another action than the one judged"
            assert not any(k in ("tool.started", "approval.stale") for k, _ in mine[judged[-1] :]), (
                "never twice on one judgement"
            )
            decided = [d for k, d in mine[judged[-1] :] if k == "approval.decided"]
            assert last["verdict"] != "deny"
            assert all(d["decision"] == "allow" for d in decided), (
                "never against a refusal, nor what was asked when something else was allowed"
            )
            if last["verdict"] == "ask":
                assert decided
                assert all(d["action_hash"] == digest for d in decided if "action_hash" in d)
            if decided:
                used.append(calls.open[call].allowed_by)
                assert used.count(used[-1]) == 1, "a decision is used once"
            starts += 1
        calls.apply(kind, data)
        accepted.append((kind, data))
    return starts


def _approvals(accepted: list[tuple[str, dict[str, Any]]], call: str) -> set[str]:
    return {d["approval_id"] for k, d in accepted if k == "approval.requested" and d.get("call_id") == call}


def step(calls: OpenCalls, kind: str, **data: Any) -> None:
    calls.check(kind, data)
    calls.apply(kind, data)


def asked() -> OpenCalls:
    calls = OpenCalls()
    step(calls, "tool.proposed", call_id="c1.0", tool="exec")
    step(calls, "tool.judged", call_id="c1.0", action_hash="h", verdict="ask")
    step(calls, "approval.requested", approval_id="a1", call_id="c1.0")
    return calls


def test_an_edited_approval_lets_only_the_edited_action_start() -> None:
    """Also when a crash cuts the log between the decision and the judgement of what was edited."""
    calls = asked()
    step(calls, "approval.decided", approval_id="a1", decision="allow_edited", decision_id="d", action_hash="h")
    for digest in ("h", "edited"):
        with pytest.raises(CallError, match="no allow verdict"):
            calls.check("tool.started", {"call_id": "c1.0", "action_hash": digest, "effect": "irreversible"})
    step(calls, "tool.judged", call_id="c1.0", action_hash="edited", verdict="allow")
    with pytest.raises(CallError, match="no allow verdict"):
        calls.check("tool.started", {"call_id": "c1.0", "action_hash": "h", "effect": "irreversible"})
    step(calls, "tool.started", call_id="c1.0", action_hash="edited", effect="irreversible")


def test_the_whole_road() -> None:
    calls = asked()
    with pytest.raises(CallError, match="no allow verdict"):
        calls.check("tool.started", {"call_id": "c1.0", "action_hash": "h", "effect": "read"})
    with pytest.raises(CallError, match="another action"):
        calls.check(
            "approval.decided", {"approval_id": "a1", "decision": "allow", "decision_id": "d", "action_hash": "other"}
        )
    step(calls, "approval.decided", approval_id="a1", decision="allow", decision_id="d", action_hash="h")
    with pytest.raises(CallError, match="not open"):
        calls.check(
            "approval.decided", {"approval_id": "a1", "decision": "allow", "decision_id": "d2", "action_hash": "h"}
        )
    step(calls, "tool.started", call_id="c1.0", action_hash="h", effect="irreversible")
    with pytest.raises(CallError):
        calls.check("tool.started", {"call_id": "c1.0", "action_hash": "h", "effect": "irreversible"})
    step(calls, "tool.in_doubt", call_id="c1.0")
    step(calls, "tool.resolved", call_id="c1.0", resolution="confirmed_not_done")
    with pytest.raises(CallError, match="no allow verdict"):
        calls.check("tool.started", {"call_id": "c1.0", "action_hash": "h", "effect": "irreversible"})
    step(calls, "tool.judged", call_id="c1.0", action_hash="h", verdict="allow")
    step(calls, "tool.started", call_id="c1.0", action_hash="h", effect="read")
    step(calls, "tool.ended", call_id="c1.0", status="ok")
    assert calls.open == {}
    with pytest.raises(CallError, match="before"):
        calls.check("tool.proposed", {"call_id": "c1.0", "ref": "u", "tool": "exec"})


def test_a_refusal_holds_whatever_stands_beside_it() -> None:
    calls = asked()
    step(calls, "approval.decided", approval_id="a1", decision="deny", decision_id="d")
    assert not calls.may_start(calls.open["c1.0"], "h")
    calls = asked()
    step(calls, "approval.requested", approval_id="a2", call_id="c1.0")
    step(calls, "approval.decided", approval_id="a1", decision="allow", decision_id="d", action_hash="h")
    step(calls, "approval.decided", approval_id="a2", decision="deny", decision_id="d2")
    assert not calls.may_start(calls.open["c1.0"], "h")


def test_stale_closes_the_request_and_asks_for_a_new_judgement() -> None:
    calls = asked()
    step(calls, "approval.stale", approval_id="a1", call_id="c1.0")
    assert (calls.approvals, calls.open["c1.0"].stage) == ({}, "proposed")


@pytest.mark.parametrize(
    "data", [{}, {"call_id": 7, "tool": "x"}, {"call_id": "x", "tool": "x"}, {"call_id": "c٣.0", "tool": "x"}]
)
def test_malformed_records_are_refused_with_words(data: dict[str, Any]) -> None:
    with pytest.raises(CallError):
        OpenCalls().check("tool.proposed", data)


# -- snapshots -------------------------------------------------------------------------------------


def undone(end: t.Body) -> SessionState:
    told = [
        t.SessionIntent(name="s", goal="g", repo="/r", branch="b", worktree="/w", model="m", checks=["make test"]),
        end,
        t.UndoStarted(undo_id="u1", call_id="c1.0", snapshot="s1", before="s2"),
        t.UndoEnded(undo_id="u1", call_id="c1.0", written=1),
        t.UndoStarted(undo_id="u2", call_id="c1.0", snapshot="s1", before="s2"),
        t.UndoEnded(undo_id="u2", call_id="c1.0", written=1),
    ]
    return fold(t.Record(seq, "2026-01-01T00:00:00.000Z", "keeper", 0, body) for seq, body in enumerate(told))


@pytest.mark.parametrize("verified", [True, False], ids=["verified", "not verified"])
def test_what_was_undone_is_verified_no_more(verified: bool) -> None:
    state = undone(t.SessionEnded(outcome="done", verified=verified, reason="1 of 1 checks passed"))
    assert state.ended is not None
    assert (state.ended.outcome, state.ended.verified, state.checks_passed) == ("done", False, 0)
    detail = row("s", state, Liveness()).detail
    assert "undone since" in detail
    assert "passed" not in detail


def test_a_failure_keeps_its_reason_when_its_work_was_undone() -> None:
    state = undone(t.SessionEnded(outcome="failed", reason="stuck: A tried as often as allowed"))
    assert row("s", state, Liveness()).detail == (
        "stuck: A tried as often as allowed; undone since it ended; no check has seen what is there now"
    )


def test_a_question_says_no_more_what_checks_said_of_work_that_was_undone() -> None:
    state = undone(
        t.SessionParked(why="question", detail="Ready?", verdict="all checks passed (1 of 1)", verified=True)
    )
    assert state.parked is not None
    assert (state.parked.verdict, state.parked.verified) == ("", False)


def test_an_ended_session_is_as_old_as_its_end_whatever_is_recorded_after() -> None:
    told = [
        t.SessionIntent(name="s", goal="g", repo="/r", branch="b", worktree="/w", model="m"),
        t.SessionEnded(outcome="done"),
        t.KeeperStarted(pid=1, start=1, boot="b"),  # somebody looked at what can be undone
    ]
    state = fold(t.Record(seq, f"2026-01-01T0{seq}:00:00.000Z", "keeper", 0, body) for seq, body in enumerate(told))
    assert row("s", state, Liveness()).since == "2026-01-01T01:00:00.000Z"


def session(folder: Path, count: int, seed: int = 3) -> LogWriter:
    rng = random.Random(seed)
    log = LogWriter.open(folder, "abcdefghij", segment_bytes=20_000)
    for _ in range(count):
        kind = rng.choice(KINDS)
        log.append(kind, make(rng, t.TYPES[kind]), actor="x")
    log.commit(sync=False)
    return log


def test_a_record_with_a_field_that_was_taken_away_is_read_all_the_same() -> None:
    data = {"approval_id": "a1", "kind": "tool", "title": "x", "options": ["deny"], "expires_at": "2026-01-01"}
    assert isinstance(t.decode(line(0, "approval.requested", data)).body, t.ApprovalRequested)


def folded(log: Path, start: Snapshot | None = None) -> SessionState:
    """The state at the end of a log, from a snapshot on or from its beginning."""
    if start is None:
        return fold(t.decode(item) for item in read(log))
    return fold((t.decode(item) for item in read(log, start.seq)), start.state)


def save(folder: Path, state: SessionState, chain: str) -> Path:
    return store(folder, state.seq, encode(state, chain))


def test_a_snapshot_continues_to_the_same_state(tmp_path: Path) -> None:
    log = session(tmp_path / "log", 300)
    save(tmp_path / "snap", folded(tmp_path / "log"), log.hash)
    rng = random.Random(9)
    for _ in range(50):
        kind = rng.choice(KINDS)
        log.append(kind, make(rng, t.TYPES[kind]), actor="x")
    log.commit(sync=False)
    found = load(tmp_path / "snap", tmp_path / "log")
    assert found is not None
    assert found.seq == 299
    assert folded(tmp_path / "log", found) == folded(tmp_path / "log")
    log.close()


def test_a_snapshot_that_does_not_fit_is_ignored(tmp_path: Path) -> None:
    log = session(tmp_path / "log", 30)
    log.close()
    session(tmp_path / "other", 30, seed=4).close()
    path = save(tmp_path / "snap", folded(tmp_path / "log"), log.hash)
    assert load(tmp_path / "snap", tmp_path / "other") is None
    assert load(tmp_path / "none", tmp_path / "log") is None
    good = path.read_bytes()
    for bad in (
        b"",
        good[:-9],
        good.replace(b'"fold":"', b'"fold":"0'),
        b"[]",
        good.replace(log.hash.encode(), b"0" * 32),
    ):
        path.write_bytes(bad)
        assert load(tmp_path / "snap", tmp_path / "log") is None
    (tmp_path / "snap" / "000000000099.json").write_bytes(good)
    path.write_bytes(good)
    found = load(tmp_path / "snap", tmp_path / "log")
    assert found is not None
    assert found.seq == 29


def test_code_below_a_folder_of_the_fold_is_its_code_too(tmp_path: Path) -> None:
    below = tmp_path / "folding"
    below.mkdir()
    (tmp_path / "fold.py").write_text("a = 1\n")
    (below / "calls.py").write_text("b = 1\n")
    before = version_of(tmp_path)
    (below / "calls.py").write_text("b = 2\n")
    assert version_of(tmp_path) != before


def test_only_the_newest_two_snapshots_stay(tmp_path: Path) -> None:
    state = SessionState()
    for seq in range(5):
        advance(state, t.decode(line(seq, "harness.note", {"level": "info", "text": "x"})))
        save(tmp_path, state, "0" * 32)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["000000000003.json", "000000000004.json"]

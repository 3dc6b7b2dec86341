"""From a decision to its effect, read from the log's own timestamps (milliseconds, written by the keeper)."""

from __future__ import annotations

from datetime import datetime

from harness.events import types as t
from tests.bench.table import Figure, bench, percentile
from tests.fleetlib import Fleet, fleet, play

ROUNDS = 8
SESSIONS = 5


def _ms(a: t.Record, b: t.Record) -> float:
    return (datetime.fromisoformat(b.ts) - datetime.fromisoformat(a.ts)).total_seconds() * 1000


def _after(records: list[t.Record], start: t.Record, kind: str) -> t.Record:
    return next(r for r in records if r.seq > start.seq and r.type == kind)


def _asking(f: Fleet) -> str:
    return f.launch(
        play(*[[("exec", {"argv": ["true", str(i)], "access": "unsandboxed"})] for i in range(ROUNDS)], "Done.")
    )


def _answer(f: Fleet, sid: str, *verb: str) -> None:
    for i in range(ROUNDS):
        item = f.approval(sid)
        f.wait_event_count(sid, "session.parked", i + 1)
        seen = ("--hash", item["action_hash"]) if verb[0] == "approve" else ()
        f.run(verb[0], item["approval_id"], *seen, *verb[1:])
    f.wait_state(sid, "done")


@bench("decisions")
def decisions() -> list[Figure]:
    started: list[float] = []
    woken: list[float] = []
    with fleet() as f:
        for _ in range(SESSIONS):
            allowed = _asking(f)
            answered = _asking(f)
            _answer(f, allowed, "approve")
            _answer(f, answered, "answer", "not needed")  # refusals in a row would be a breaker
            records = f.records(allowed)
            started += [
                _ms(r, _after(records, r, "tool.started")) for r in records if isinstance(r.body, t.ApprovalDecided)
            ]
            records = f.records(answered)
            woken += [
                _ms(r, _after(records, r, "model.request")) for r in records if isinstance(r.body, t.ApprovalDecided)
            ]
    p95 = percentile(started, 0.95)
    p50 = percentile(woken, 0.5)
    return [
        Figure("decision durable → tool started", "ms", started, "p95 ≤ 100 ms", p95 <= 100, note=f"p95 {p95:.0f} ms"),
        Figure(
            "parked → running again (decision → next request, a new brain forked)",
            "ms",
            woken,
            "p50 ≤ 300 ms",
            p50 <= 300,
            note=f"p50 {p50:.0f} ms",
        ),
    ]

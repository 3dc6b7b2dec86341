"""The keeper's pure parts, by property: finding a type without parsing, folding on a copy, cutting pushes, naming
faults.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.calls.call_lifecycle import CallError
from harness.eventlog import framing
from harness.keeper import subscriptions
from harness.keeper.calls import standby
from harness.keeper.log.state import KeeperState, concerns, kind_of
from harness.keeper.loop.fault_points import ACTIONS, POINTS, FaultError, Faults

KINDS = st.sampled_from(
    [
        "tool.proposed",
        "tool.judged",
        "tool.started",
        "tool.ended",
        "tool.in_doubt",
        "tool.resolved",
        "approval.requested",
        "approval.decided",
        "lease.granted",
    ]
)
RECORDS = st.tuples(
    KINDS,
    st.integers(0, 2),
    st.sampled_from(["allow", "ask", "deny"]),
    st.sampled_from(["confirmed_not_done", "failed"]),
)


def record(kind: str, number: int, verdict: str, resolution: str) -> tuple[str, dict[str, object]]:
    return kind, {
        "call_id": f"c{number}.0",
        "tool": "exec",
        "action_hash": "h",
        "verdict": verdict,
        "approval_id": f"a{number}",
        "decision_id": f"d{number}",
        "decision": "allow",
        "resolution": resolution,
        "effect": "contained",
        "status": "ok",
        "gen": number,
        "epoch": 1,
        "action": {"n": number},
    }


@given(
    kind=st.from_regex(r"[a-z]{1,12}\.[a-z_]{1,12}", fullmatch=True),
    seq=st.integers(0, 10**12),
    text=st.text(max_size=50),
    gen=st.integers(0, 99),
)
def test_the_type_is_found_without_parsing(kind: str, seq: int, text: str, gen: int) -> None:
    data = framing.encode_data({"text": text, "type": "tool.fake"})
    line, _ = framing.encode_event(seq, "2026-01-01T00:00:00.000Z", kind, "keeper", gen, data, framing.GENESIS)
    assert kind_of(line[:-1]) == json.loads(line)["type"] == kind


@given(first=st.lists(RECORDS, max_size=12), second=st.lists(RECORDS, max_size=12))
def test_what_is_folded_on_a_copy_does_not_touch_the_original(
    first: list[tuple[str, int, str, str]], second: list[tuple[str, int, str, str]]
) -> None:
    memory = KeeperState()
    for item in first:
        advance(memory, *record(*item))
    before = copy.deepcopy(memory)
    trial = memory.copy()
    assert trial == memory
    for item in second:
        advance(trial, *record(*item))
    assert memory == before
    assert set(memory.judged) <= set(memory.calls.open), "no action is kept of a call that is over"


def advance(memory: KeeperState, kind: str, data: dict[str, object]) -> None:
    assert concerns(kind)
    try:
        memory.calls.check(kind, data)
    except CallError:
        return
    memory.take(kind, data)


@given(
    lines=st.lists(
        st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=300), max_size=40
    )
)
def test_pushes_carry_every_line_once_in_order(lines: list[str]) -> None:
    raw = [line.encode() for line in lines]
    pushes = [json.loads(frame[4:]) for frame in subscriptions.pushes(raw, 7)]
    assert [line for push in pushes for line in push["lines"]] == lines
    assert all(push["head"] == 7 and push["lines"] for push in pushes)


@given(text=st.text(max_size=40))
def test_only_known_faults_are_accepted(text: str) -> None:
    known = {f"{point}:{action}" for point in POINTS for action in ACTIONS}
    if text and text not in known:
        with pytest.raises(FaultError):
            Faults(text)
    else:
        Faults(text).hit("nothing")


def test_no_fault_is_no_fault() -> None:
    for point in POINTS:
        Faults("").hit(point)
        Faults(f"{point}:kill").hit(f"not {point}")


@pytest.mark.parametrize(
    ("kind", "data", "leads"),
    [
        ("tool.proposed", {"tool": "shell", "input": {"script": "true"}}, True),
        ("tool.proposed", {"tool": "read_file", "input": {"path": "a", "access": "sandbox"}}, True),
        ("tool.proposed", {"tool": "write_file", "input_blob": {"sha": "0", "bytes": 1}}, True),
        ("tool.proposed", {"tool": "exec", "input": {"argv": ["curl"], "access": "network"}}, False),
        ("tool.proposed", {"tool": "memory", "input": {"action": "read"}}, False),
        ("tool.proposed", {"tool": "job", "input": {"action": "list"}}, False),
        ("tool.proposed", {"tool": "no such tool", "input": {}}, False),
        ("tool.judged", {"verdict": "allow"}, True),
        ("tool.judged", {"verdict": "ask"}, False),
        ("user.message", {"text": "go"}, False),
    ],
)
def test_a_place_in_the_sandbox_is_made_for_what_most_likely_needs_one(
    kind: str, data: dict[str, Any], leads: bool
) -> None:
    assert standby.leads_to_the_sandbox(kind, data) is leads

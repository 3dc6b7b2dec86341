"""The gate of a phase, call by call: it never makes a verdict milder, and asks about exactly the kinds it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.events.action import Action, from_wire
from harness.events.gate_kinds import GateKind, is_gate
from harness.policy.gated import kinds, tightened
from harness.policy.grants import EXACT, NoGrant, widened
from harness.policy.judge import Verdict
from harness.policy.rules import RISKS

EFFECTS = ["network", "network:a.test:443", "unfenced", "outside:/etc/x", "push:origin refs/heads/x", "push-force"]
EFFECTS += ["no-undo"]
ORDER = ("allow", "ask", "deny")


def action(*effects: str, tool: str = "exec") -> Action:
    if tool == "exec":
        return from_wire({"fence": {}, "tool": tool, "kind": "exec", "argv": ["x"], "effects": list(effects)})
    return from_wire({"fence": {}, "tool": tool, "kind": "file", "path": "/etc/x", "effects": list(effects)})


@pytest.mark.parametrize(
    ("effect", "tool", "found"),
    [
        ("network:a.test", "exec", {GateKind.EXTERNAL_MESSAGE}),
        ("push:origin refs/heads/x", "exec", {GateKind.PRODUCTION_WRITE}),
        ("push-force", "exec", {GateKind.PRODUCTION_WRITE, GateKind.DELETE}),
        ("unfenced", "exec", set(GateKind)),
        ("no-undo", "exec", {GateKind.DELETE}),
        ("outside:/etc/x", "write_file", {GateKind.PRODUCTION_WRITE, GateKind.DELETE}),
        ("outside:/etc/x", "read_file", set()),
    ],
)
def test_an_effect_is_of_these_kinds(effect: str, tool: str, found: set[GateKind]) -> None:
    assert kinds(action(effect, tool=tool)) == found
    assert kinds(action()) == frozenset()


@given(st.lists(st.sampled_from(EFFECTS)), st.lists(st.sampled_from(GateKind)), st.sampled_from(ORDER))
def test_a_gate_asks_about_its_kinds_and_never_allows(effects: list[str], asks: list[GateKind], word: str) -> None:
    told = action(*effects)
    before = Verdict(word, "r", "why", "low")
    after = tightened(before, told, "ship", asks)
    assert ORDER.index(after.verdict) >= ORDER.index(word)
    assert RISKS.index(after.risk) >= RISKS.index(before.risk)
    if word == "deny" or not kinds(told) & set(asks):
        assert after == before
        return
    assert (after.verdict, is_gate(after.rule)) == ("ask", True)
    with pytest.raises(NoGrant, match="each such call"):
        widened(told, after, EXACT, "/home/x")

"""The gate of a phase, call by call: it never makes a verdict milder, and asks about exactly the kinds it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.actions.action import Action, from_wire
from harness.domain.calls.gate_kinds import GateKind, is_gate
from harness.domain.unsnapshotted import ANY, left_out, may_be
from harness.policy.decide import Verdict
from harness.policy.gated import kinds, tightened
from harness.policy.grants import EXACT, NoGrant, widened
from harness.policy.policy_file import RISKS

EFFECTS = ["network", "network:a.test:443", "unsandboxed", "outside:/etc/x", "push:origin refs/heads/x", "push-force"]
EFFECTS += ["no-undo"]
ORDER = ("allow", "ask", "deny")


def action(*effects: str, tool: str = "exec", path: str = "/etc/x") -> Action:
    if tool == "exec":
        return from_wire({"sandbox": {}, "tool": tool, "kind": "exec", "argv": ["x"], "effects": list(effects)})
    return from_wire({"sandbox": {}, "tool": tool, "kind": "file", "path": path, "effects": list(effects)})


@pytest.mark.parametrize(
    ("effect", "tool", "found"),
    [
        ("network", "exec", {GateKind.EXTERNAL_MESSAGE, GateKind.PRODUCTION_WRITE}),
        ("network:a.test", "exec", {GateKind.EXTERNAL_MESSAGE, GateKind.PRODUCTION_WRITE}),
        ("network:a.test:443", "exec", {GateKind.EXTERNAL_MESSAGE, GateKind.PRODUCTION_WRITE}),
        ("push:origin refs/heads/x", "exec", {GateKind.PRODUCTION_WRITE}),
        ("push-force", "exec", {GateKind.PRODUCTION_WRITE, GateKind.DELETE}),
        ("unsandboxed", "exec", set(GateKind)),
        ("no-undo", "exec", {GateKind.DELETE}),
        ("outside:/etc/x", "write_file", {GateKind.PRODUCTION_WRITE, GateKind.DELETE}),
        ("outside:/etc/x", "read_file", set()),
    ],
)
def test_an_effect_is_of_these_kinds(effect: str, tool: str, found: set[GateKind]) -> None:
    assert kinds(action(effect, tool=tool)) == found
    assert kinds(action()) == frozenset()


@given(st.sampled_from(["network", "network:a.test"]), st.lists(st.sampled_from(EFFECTS)))
def test_what_can_use_the_network_passes_no_gate_on_writes_or_messages(reach: str, others: list[str]) -> None:
    allowed = Verdict("allow", "r", "why", "low")
    for kind in (GateKind.EXTERNAL_MESSAGE, GateKind.PRODUCTION_WRITE):
        assert tightened(allowed, action(reach, *others), "ship", [kind]).verdict == "ask"


@pytest.mark.parametrize(
    ("tool", "path", "unkept", "asked"),
    [
        ("exec", "", (), False),
        ("exec", "", ("large.bin",), True),
        ("exec", "", (ANY,), True),
        ("write_file", "large.bin", ("large.bin",), True),
        ("write_file", "small", ("large.bin",), False),
        ("write_file", "small", ("large.bin", ANY), True),
        ("read_file", "large.bin", ("large.bin", ANY), False),
    ],
)
def test_a_gate_on_deletions_asks_about_what_is_not_kept(
    tool: str, path: str, unkept: tuple[str, ...], asked: bool
) -> None:
    told = action(tool=tool, path=path)
    assert kinds(told, unkept) == ({GateKind.DELETE} if asked else frozenset())
    allowed = Verdict("allow", "r", "why", "low")
    assert (tightened(allowed, told, "ship", ["delete"], unkept).verdict == "ask") is asked
    assert tightened(allowed, told, "ship", ["production write"], unkept) == allowed


@given(st.lists(st.text(min_size=1), max_size=5), st.integers(0, 9))
def test_a_file_that_is_left_out_and_not_named_may_be_any(names: list[str], more: int) -> None:
    unkept = left_out(len(names) + more, names)
    assert all(may_be(name, unkept) for name in names)
    assert may_be("other than all" * 9, unkept) == (more > 0 or ANY in names)


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

"""Phases, order and the state of a plan's entries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agents import readiness
from harness.agents.steps import Wait
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.gate_kinds import GateKind
from harness.events import types as t
from harness.plan import gates, order
from harness.plan.files import formats
from harness.plan.files.formats import BadPlan
from harness.plan.phases import Phase, phased
from harness.projections import apply
from harness.projections.state import plan_state
from harness.projections.state.protected_files import PlanProgress
from harness.projections.state.session_state import SessionState
from harness.supervisor.calls.work import plans
from harness.views.session_views import ApprovalView
from widgets.card.card_text import card_lines


def story(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "title": name, "acceptanceCriteria": [f"File `{name}.txt` exists"], "passes": False} | more


def text(stories: Sequence[dict[str, Any]], **around: Any) -> bytes:
    return json.dumps(around | {"userStories": list(stories)}).encode()


class Told:
    """A log that is written by hand."""

    def __init__(self, data: bytes, gates: Sequence[str] = ()) -> None:
        self.state = SessionState()
        self.say(plans.record("prd.json", formats.read(data), gates))

    @property
    def plan(self) -> PlanProgress:
        assert self.state.plan is not None
        return self.state.plan

    def say(self, body: t.Body) -> int:
        seq = self.state.seq + 1
        apply.advance(self.state, t.Record(seq, "2026-01-05T10:00:00.000Z", "test", 0, body))
        return seq

    def verdict(self, name: str, passed: bool, round_: int) -> int:
        (command,) = self.plan.entries[name].checks
        return self.say(t.CheckVerdict(call_id=f"c{round_}.0", command=command, passed=passed))

    def flip(self, name: str, passes: bool = True) -> None:
        self.say(t.PlanFlipped(entry=name, passes=passes, why="seen", calls=[]))

    def states(self) -> str:
        return " ".join(self.plan.work.state(name, self.plan.passes[name]) for name in self.plan.entries)

    def next(self) -> str:
        entry = order.next_entry(self.plan)
        return entry.id if entry is not None else ""


def test_phases_come_in_the_order_of_the_file_with_the_gates_of_file_and_launch() -> None:
    plan = formats.read(
        text(
            [story("a", phase="build"), story("b"), story("c", phase="ship", gate="it goes out"), story("d")],
            phases=["plan", {"name": "look", "gate": True, "entries": ["d"]}, {"other": 1}],
        )
    )
    made = phased(plan, ["build=spend above $2.50", "ship=above $9"])
    assert made.phases == (
        Phase("look", "a person decides whether it begins"),
        Phase("build", "spend above $2.50", 2_500_000_000),
        Phase(""),
        Phase("ship", "it goes out; above $9"),
    )
    assert made.of == {"a": "build", "b": "", "c": "ship", "d": "look"}


@pytest.mark.parametrize(
    ("stories", "gates", "why"),
    [
        ([story("a", depends_on=["x"])], [], "is no entry"),
        ([story("a", dependsOn=["a"])], [], "wait for one another"),
        ([story("a", blockedBy=["b"]), story("b", depends_on=["a"])], [], "wait for one another"),
        ([story("a", phase="1", depends_on=["b"]), story("b", phase="2")], [], "a later phase"),
        ([story("a", phase="1")], ["2=x"], "no phase '2'"),
        ([story("a", phase="1")], ["1="], "says no reason"),
        ([story("a")], ["1=x"], "names none"),
        ([story("a")], ["on: delet"], "cannot ask on 'delet'; it can on: production write"),
        ([story("a")], ["on:"], "cannot ask on ''"),
        ([story("a", gate="on: spend above $x")], [], "cannot ask on"),
    ],
)
def test_what_can_never_come_is_no_plan(stories: list[dict[str, Any]], gates: list[str], why: str) -> None:
    with pytest.raises(BadPlan, match=why):
        phased(formats.read(text(stories)), gates)


def test_a_gate_on_kinds_of_effect_holds_no_beginning_and_sums_and_reasons_beside_it_do() -> None:
    stories = [story("a", phase="build", gate="on: Delete"), story("b", phase="ship", gate="it goes out; on: delete")]
    made = phased(formats.read(text(stories)), ["build=on: external message,  delete, spend above $3"])
    assert made.phases == (
        Phase("build", "spend above $3", 3 * 10**9, (GateKind.EXTERNAL_MESSAGE, GateKind.DELETE)),
        Phase("ship", "it goes out", None, (GateKind.DELETE,)),
    )
    told = Told(text([story("a"), story("b", phase="ship")]), ["ship=on: delete"])
    assert (held(told), gates.asking(told.state)) == (None, None)
    told.flip("a")
    asked = gates.asking(told.state)
    assert (held(told), asked and asked.asks) == (None, ["delete"])
    told.flip("b")
    assert gates.asking(told.state) == asked


@pytest.mark.parametrize("gate", [1, "", " ", ["x"]])
def test_a_gate_is_true_or_words(gate: object) -> None:
    with pytest.raises(BadPlan, match="gate is neither"):
        formats.read(text([story("a", gate=gate)]))


def test_a_gate_without_a_phase_holds_the_whole_plan() -> None:
    made = phased(formats.read(text([story("a")])), ["above $5", "above $3"])
    assert made.phases == (Phase("", "above $5; above $3", 3 * 10**9),)


def test_an_entry_is_pending_failed_passed_and_failed_again() -> None:
    told = Told(text([story("a"), story("b")]))
    assert told.states() == "pending pending"
    first = told.verdict("a", False, 5)
    assert told.states() == "failed pending"
    second = told.verdict("a", True, 9)
    told.flip("a")
    assert told.states() == "passed pending"
    third = told.verdict("a", False, 12)
    told.flip("a", False)
    assert told.states() == "failed pending"
    assert told.plan.work.standing["a"].evidence == [first, second, third]
    assert told.plan.work.standing["a"].attempts == 2
    told.say(t.UndoEnded(undo_id="u1", call_id="c1.0"))
    assert told.states() == "pending pending"


def test_the_verdicts_of_one_round_are_one_attempt() -> None:
    told = Told(text([story("a", acceptanceCriteria=["File `x.txt` exists", "File `y.txt` exists"])]))
    for round_ in (3, 7):
        for index, command in enumerate(told.plan.entries["a"].checks):
            told.say(t.CheckVerdict(call_id=f"c{round_}.{index}", command=command, passed=bool(index)))
        assert told.states() == "failed"
    assert told.plan.work.standing["a"].attempts == 2


def test_the_next_entry_respects_phases_and_dependencies() -> None:
    told = Told(text([story("a", phase="1", depends_on=["b"]), story("b", phase="1"), story("c", phase="2")]))
    seen = []
    while name := told.next():
        seen.append(name)
        told.flip(name)
    assert seen == ["b", "a", "c"]
    told.flip("b", False)
    assert told.next() == "b"
    told.plan.work.standing["b"].blocked = "no network"
    assert (told.next(), told.states()) == ("", "passed blocked passed")


@st.composite
def plans_(draw: st.DrawFn) -> bytes:
    """Plans whose entries depend on earlier ones only."""
    stories: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 8))):
        earlier = [s["id"] for s in stories]
        depends = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        phase = draw(st.integers(0, 2))
        phase = max([phase, *(s["phase"] for s in stories if s["id"] in depends)])
        stories.append(story(f"E{number}", depends_on=depends, phase=phase))
    listed = sorted({s["phase"] for s in stories})
    return text(draw(st.permutations(stories)), phases=[str(phase) for phase in listed])


@given(plans_())
def test_every_plan_can_be_worked_to_its_end_in_order(data: bytes) -> None:
    """Whatever the file's order: each entry comes once, after all it depends on and after all of earlier phases."""
    told = Told(data)
    seen: list[str] = []
    while name := told.next():
        entry = told.plan.entries[name]
        assert set(entry.depends_on) <= set(seen)
        assert all(told.plan.entries[other].phase <= entry.phase for other in seen)
        seen.append(name)
        told.flip(name)
    assert sorted(seen) == sorted(told.plan.entries)


def test_the_state_of_entries_survives_a_snapshot() -> None:
    told = Told(text([story("a", phase="1"), story("b")]), ["1=why"])
    told.verdict("a", False, 4)
    again = msgspec.json.decode(msgspec.json.encode(told.state), type=SessionState)
    assert again.plan == told.plan
    assert isinstance(again.plan.work, plan_state.Work)


def spent(told: Told, nano: int) -> None:
    said = t.ModelMessage(request_id="r", message_id="m", model="m", stop="done", usage=t.Usage(), cost_nano=nano)
    told.say(said)


def held(told: Told) -> str | None:
    now = gates.closed(told.state)
    return now.name if now is not None else None


def test_a_phase_with_a_gate_waits_for_a_word_and_others_do_not() -> None:
    told = Told(text([story("a", phase="build"), story("b", phase="ship")]), ["ship=it goes out"])
    assert held(told) is None
    assert gates.beginning(told.state) == t.PlanPhase("build")
    told.say(t.PhaseBegun(phase="build"))
    told.flip("a")
    assert (held(told), gates.beginning(told.state)) == ("ship", None)
    assert isinstance(readiness.outstanding(told.state), Wait)
    told.say(t.PlanUpdated(steps=["of build"]))
    told.say(t.GateOpened(phase="ship"))
    assert (held(told), gates.beginning(told.state)) == (None, t.PlanPhase("ship", "it goes out"))
    told.say(t.PhaseBegun(phase="ship"))
    assert told.state.course.steps == []
    assert gates.beginning(told.state) is None
    told.flip("a", False)
    told.flip("a")
    assert held(told) is None


def test_a_gate_above_a_sum_holds_from_that_sum_on() -> None:
    told = Told(text([story("a")]), ["above $2"])
    spent(told, 2 * 10**9 - 1)
    assert held(told) is None
    spent(told, 1)
    assert held(told) == ""
    told.say(t.GateOpened(phase=""))
    assert held(told) is None


def test_a_plan_of_one_phase_without_a_gate_has_no_beginning() -> None:
    assert gates.beginning(Told(text([story("a")])).state) is None


def test_a_card_says_what_was_done_and_what_comes() -> None:
    told = Told(text([story("a", phase="build"), *(story(f"b{n}", phase="ship", gate="out") for n in range(40))]))
    told.flip("a")
    now = gates.closed(told.state)
    assert now is not None
    shown = gates.detail(told.plan, now, "$1.00")
    assert shown["done"] == "✔ a a"
    assert shown["comes"].startswith("· b0 b0\n")
    assert shown["comes"].endswith("and 10 more")
    assert gates.title(now, False) == "ship begins only with your word: out"


def test_a_card_names_the_newest_of_what_was_done_and_says_in_short_before_it_lists() -> None:
    built = [story(f"a{n}", phase="build") for n in range(20)]
    told = Told(text([*built, story("b", phase="ship", gate="out"), story("c", phase="ship")]))
    for n in range(20):
        told.flip(f"a{n}")
    now = gates.closed(told.state)
    assert now is not None
    detail = {"name": now.name, **gates.detail(told.plan, now, "$1.00")}
    done = str(detail["done"]).split("\n")
    assert (done[0], done[1], done[-1]) == ("20 entries, the last of them:", "✔ a12 a12", "✔ a19 a19")
    view = ApprovalView(
        approval_id="a",
        sid="s",
        session_name="n",
        kind=Request.GATE,
        title="t",
        options=["allow"],
        risk="high",
        ts="",
        seq=1,
        detail=detail,
    )
    card = [line.text.strip() for line in card_lines(view)]
    begins = [next(n for n, line in enumerate(card) if line.startswith(word)) for word in ("gate", "comes", "done")]
    assert begins == sorted(begins)
    assert not any(line.startswith("name ") for line in card)


@given(plans_(), st.data())
def test_no_phase_with_a_gate_is_ever_worked_on_without_a_word(data: bytes, draw: st.DataObject) -> None:
    """However entries pass and fail: what may be begun lies in no phase whose gate nobody opened."""
    names = [group.name for group in formats.read(data).groups]
    told = Told(data, [f"{name}=why" for name in draw.draw(st.lists(st.sampled_from(names), unique=True))])
    opened: set[str] = set()
    for _ in range(12):
        now = gates.closed(told.state)
        if now is not None and draw.draw(st.booleans()):
            told.say(t.GateOpened(phase=now.name))
            opened.add(now.name)
        begins = gates.beginning(told.state)
        if begins is not None:
            assert not begins.gate or begins.name in opened
            told.say(t.PhaseBegun(phase=begins.name))
        entry = order.next_entry(told.plan)
        if entry is None:
            return
        if gates.closed(told.state) is None:
            told.flip(entry.id, True)
        elif told.plan.passed:
            told.flip(draw.draw(st.sampled_from([e for e, p in told.plan.passes.items() if p])), False)

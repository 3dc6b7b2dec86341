"""The course of a session: the tool ``plan``, and the four triggers of a replan."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agents import readiness
from harness.agents.steps import Wait
from harness.brain.conversation_turns import UserTurn
from harness.brain.view import View
from harness.events import types as t
from harness.events.plan import course_events
from harness.plan import answer
from harness.projections.state import course
from harness.projections.state.session_state import SessionState
from harness.tools import plan_tool, validation
from tests.unit.test_plan_phases import Told, story, text


class Worked(Told):
    """A log with a plan, a supervisor that puts every replan on record, and an agent that calls tools."""

    def __init__(self, *stories: dict[str, Any]) -> None:
        super().__init__(text(stories or (story("a"), story("b", depends_on=["a"]), story("c", phase="late"))))
        self.say(
            t.ModelMessage(
                request_id="r", message_id="m", model="m", stop="done", usage=t.Usage(), cost_nano=0, parts=[]
            )
        )

    def call(self, status: str = "ok", exit_code: int | None = 0, tool: str = "exec", **given: Any) -> None:
        name = f"c{self.state.seq}.0"
        ended = {key: given.pop(key) for key in ("output", "truncated", "files_changed") if key in given}
        self.say(t.ToolProposed(call_id=name, tool=tool, ref="r", input=given or {"argv": ["make"]}))
        self.say(t.ToolEnded(call_id=name, status=status, exit_code=exit_code, **ended))

    def settle(self) -> list[str]:
        """The triggers that were put on record."""
        owed = list(self.state.course.owed)
        for one in owed:
            self.say(t.PlanUpdated(trigger=one.trigger, reason=one.reason, about=one.about))
        assert not self.state.course.owed
        return [one.trigger for one in owed]

    def plan_call(self, **given: Any) -> answer.Answer:
        assert validation.validate(plan_tool.NAME, given) is None
        found = answer.answer(self.state, f"c{self.state.seq}.0", given)
        if found.record is not None:
            self.say(found.record)
        return found


BIG = t.BlobRef("0" * 64, course.OVERSIZE)


def tool_failure(w: Worked) -> None:
    for _ in range(5):
        w.call(exit_code=2)


def oversize(w: Worked) -> None:
    w.call(output=BIG)
    w.call(output=BIG)


def correction(w: Worked) -> None:
    w.say(t.UserMessage(text="not\nthat way", origin="human"))


def assumption(w: Worked) -> None:
    assert w.plan_call(action="replan", text="there is no such API", steps=["read the docs", "write it"]).good


@pytest.mark.parametrize(
    ("happens", "trigger"),
    [
        (tool_failure, course_events.TOOL_FAILURE),
        (oversize, course_events.OVERSIZE_OUTPUT),
        (correction, course_events.CORRECTION),
        (assumption, course_events.ASSUMPTION),
    ],
)
def test_each_trigger_yields_exactly_one_replan_event(happens: Any, trigger: str) -> None:
    w = Worked()
    happens(w)
    owed = bool(w.state.course.owed)
    if owed:
        assert isinstance(readiness.outstanding(w.state), Wait)
    w.settle()
    assert w.state.course.replans == {trigger: 1}
    assert readiness.outstanding(w.state) is None
    assert owed is (trigger != course_events.ASSUMPTION)


@given(st.lists(st.sampled_from(["fail", "change", "well", "big", "person"]), max_size=40), st.booleans())
def test_a_tool_that_fails_is_said_once_until_it_goes_well(happened: list[str], prompt: bool) -> None:
    """Whenever the supervisor comes to it, each record has one replan at most, and none comes without its reason."""
    w = Worked()
    seen: list[str] = []
    expected: list[str] = []
    row = 0
    times = 0
    told = False
    large = False
    for what in happened:
        match what:
            case "fail":
                w.call(exit_code=1)
                row += 1
                times += 1
                if not told and (row >= course.FAILS or times >= course.FAILS_AFTER_CHANGES):
                    told = True
                    expected.append(course_events.TOOL_FAILURE)
            case "change":
                w.call(tool="write_file", path="a", content="", files_changed=["a"])
                row = 0
            case "well":
                w.call()
                row = 0
                times = 0
                told = False
            case "big":
                w.call(argv=["cat", "big"], output=BIG)
                expected += [] if large else [course_events.OVERSIZE_OUTPUT]
                large = True
            case "person":
                correction(w)
                expected.append(course_events.CORRECTION)
        seen += w.settle() if prompt else []
    assert seen + w.settle() == expected


def test_nothing_asks_for_a_replan_where_there_is_no_plan_and_no_step() -> None:
    w = Worked()
    w.state.plan = None
    correction(w)
    tool_failure(w)
    assert w.settle() == []
    w.plan_call(action="steps", steps=["one"])
    correction(w)
    assert w.settle() == [course_events.CORRECTION]


def test_the_goal_itself_corrects_nothing() -> None:
    told = Told(text([story("a")]))
    told.say(t.UserMessage(text="one more thing", origin="human"))
    assert not told.state.course.owed


def test_the_next_request_says_a_replan_in_one_line_unless_the_agent_made_it() -> None:
    v = View()
    record = t.PlanUpdated(trigger="tool_failure", reason="`make` failed 3 times", about=4)
    v.take(t.Record(5, "", "supervisor", 0, record), lambda ref: b"")
    v.take(t.Record(6, "", "supervisor", 0, msgspec.structs.replace(record, call_id="c1.0")), lambda ref: b"")
    (turn,) = v.turns
    assert isinstance(turn, UserTurn)
    assert turn.text.startswith("Replan (tool failure): `make` failed 3 times.")
    assert "\n" not in turn.text


def test_the_tool_moves_entries_and_nothing_else() -> None:
    w = Worked()
    before = (dict(w.plan.entries), dict(w.plan.passes))
    assert w.plan_call(action="start", entry="a").text.startswith("a is in progress: a\n- ")
    assert w.states() == "in_progress pending pending"
    assert w.plan_call(action="note", entry="a", text="look at b.py").good
    assert w.plan_call(action="start", entry="b").text == "b waits for a"
    assert "later phase" in w.plan_call(action="start", entry="c").text
    assert w.plan_call(action="start", entry="x").text.startswith("there is no entry 'x'")
    assert w.plan_call(action="blocked", entry="a", text="no compiler").text.startswith("a is blocked; next is b")
    assert w.states() == "blocked pending pending"
    w.plan_call(action="steps", steps=["one", "two"])
    shown = w.plan_call(action="show").text
    assert "[#] a a (blocked; 1 attempts; no compiler)\n    note: look at b.py" in shown
    assert shown.endswith("steps of this phase:\n1. one\n2. two")
    assert w.plan_call(action="start", entry="a").good
    w.flip("a")
    assert w.plan_call(action="start", entry="a").text == "a passes already"
    assert (dict(w.plan.entries), dict(w.plan.passes)) == (before[0], before[1] | {"a": True})


ACTIONS = st.fixed_dictionaries(
    {"action": st.sampled_from([*plan_tool.ACTIONS, "pass"])},
    optional={
        "entry": st.sampled_from(["a", "b", "c", "x", ""]),
        "text": st.text(max_size=5),
        "steps": st.lists(st.text(max_size=5), max_size=3),
    },
)


@given(st.lists(ACTIONS, max_size=12))
def test_no_use_of_the_tool_sets_passes_or_changes_what_is_to_be_done(calls: list[dict[str, Any]]) -> None:
    w = Worked()
    before = (dict(w.plan.entries), dict(w.plan.passes), list(w.plan.work.phases))
    for given_ in calls:
        if validation.validate(plan_tool.NAME, given_) is None:
            assert w.plan_call(**given_).text
    assert (w.plan.entries, w.plan.passes, w.plan.work.phases) == before


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"action": "start"}, "start needs entry"),
        ({"action": "blocked", "entry": "a"}, "blocked needs text"),
        ({"action": "replan", "text": "x"}, "replan needs steps"),
        ({"action": "show", "entry": "a"}, "takes no entry"),
        ({"action": "steps", "steps": ["a\nb"]}, "one line"),
        ({"action": "steps", "steps": ["a"] * 31}, "at most 30"),
        ({"action": "note", "entry": "a", "text": "x" * 1001}, "at most 1000"),
        ({"action": "passes", "entry": "a"}, "one of show"),
    ],
)
def test_an_input_that_makes_no_sense_is_named(value: dict[str, Any], why: str) -> None:
    assert why in (validation.validate(plan_tool.NAME, value) or "")


def test_a_course_survives_a_snapshot() -> None:
    w = Worked()
    tool_failure(w)
    w.call(exit_code=1, argv=["other"])
    again = msgspec.json.decode(msgspec.json.encode(w.state), type=SessionState)
    assert again.course == w.state.course

"""A plan that a session writes from its goal: when it is looked at, and what is wrong with it."""

from __future__ import annotations

import json

import msgspec
import pytest

from harness.agents.steps import Wait
from harness.brain import decide
from harness.brain.view import View
from harness.events import message_parts
from harness.events import types as t
from harness.events.plan.evaluation_events import JudgeWanted
from harness.plan import draft
from harness.plan.files import formats, spellings
from harness.projections import apply
from harness.projections.state.row_state import without_criterion
from harness.projections.state.session_state import SessionState
from harness.roles import catalog
from harness.supervisor.calls.work import plans
from tests.unit.test_plan_phases import story, text

GOOD = text([story("a"), story("b")])


def told(*bodies: t.Body, path: str = "feature_list.json", checks: tuple[str, ...] = ()) -> View:
    v = View()
    intent = t.SessionIntent(
        name="n", goal="g", repo="/r", branch="b", worktree="/w", model="m", draft=path, checks=list(checks)
    )
    for seq, body in enumerate((intent, t.SessionCreated(base="0", worktree="/w", branch="b"), *bodies)):
        record = t.Record(seq, "2026-01-05T10:00:00.000Z", "test", 0, body)
        apply.advance(v.state, record)
        v.take(record, lambda ref: b"")
    return v


def reply(words: str = "It is written.", stop: str = message_parts.DONE) -> t.ModelMessage:
    part = message_parts.Text(words)
    return t.ModelMessage(
        request_id="r", message_id="m", model="m", stop=stop, usage=t.Usage(), cost_nano=0, parts=[part]
    )


TASK = t.UserMessage(text=draft.task(catalog.shipped()["initializer"].first, "feature_list.json"), origin="harness")


def test_it_is_looked_at_once_each_time_the_agent_says_it_is_written() -> None:
    assert not draft.due(told(TASK).state)
    v = told(TASK, reply())
    assert draft.due(v.state)
    assert isinstance(decide.next_step(v), Wait)
    sent_back = told(
        TASK, reply(), t.UserMessage(text="repair", origin="harness"), t.PlanDrafted(path="x", sent_back=True)
    )
    assert not draft.due(sent_back.state)
    assert sent_back.state.draft.sent_back
    assert isinstance(decide.next_step(sent_back), decide.Ask)
    asked = t.ApprovalRequested(approval_id="a", kind="plan", title="", options=[])
    assert not draft.due(told(TASK, reply(), asked).state)
    assert not draft.due(told(TASK, reply(stop=message_parts.LENGTH)).state)


def test_accepted_its_criteria_are_the_sessions_checks() -> None:
    blob = t.BlobRef("0" * 64, 3)
    v = told(TASK, reply(), plans.record("feature_list.json", formats.read(GOOD), text=blob), checks=("make",))
    assert not draft.writing(v.state)
    assert next(iter(v.state.checks)) == "make"
    assert len(v.state.checks) == 3
    assert v.state.plan is not None
    assert v.state.plan.text == blob


def test_a_session_is_without_a_criterion_until_something_decides() -> None:
    assert without_criterion(told(path="").state)
    assert not without_criterion(told().state)
    assert not without_criterion(told(path="", checks=("make",)).state)
    assert not without_criterion(SessionState())
    plan = t.PlanLoaded(path="prd.json", form="tasks", entries=[t.PlanEntry("A", "A", [], 2)])
    assert without_criterion(told(plan, path="").state), "nothing decides any of its entries"
    assert without_criterion(told(plan).state), "nor of the plan that it wrote"
    intent = told(path="").state.intent
    assert intent
    judged = msgspec.structs.replace(intent, judge=JudgeWanted("m", 3))
    state = SessionState()
    apply.advance(state, t.Record(0, "2026-01-05T10:00:00.000Z", "test", 0, judged))
    assert not without_criterion(state), "a judge decides"


VAGUE = json.dumps([{"description": "A", "steps": ["It works"], "passes": False}]).encode()


@pytest.mark.parametrize(
    ("data", "gates", "why"),
    [
        (None, (), "no such file"),
        (b"[", (), "no JSON"),
        (b"[]", (), "no entry"),
        (text([story("a", passes=True)]), (), "before anything was done"),
        (text([story("a", depends_on=["x"])]), (), "is no entry"),
        (GOOD, ("ship=why",), "no phase 'ship'"),
        (text([story(f"s{n}", acceptanceCriteria=[f"Run `t {n}`"]) for n in range(301)]), (), "it asks for 301 checks"),
    ],
)
def test_what_is_no_plan_is_never_offered(data: bytes | None, gates: tuple[str, ...], why: str) -> None:
    found = draft.found(data, "plan.json", gates)
    assert found.plan is None
    assert why in found.problems[0]


def test_criteria_that_no_machine_decides_are_named_with_a_better_wording() -> None:
    found = draft.found(VAGUE, "plan.json")
    assert found.plan is not None
    assert "better: " in found.problems[0]
    assert draft.told("p", found.problems * 30).endswith("- and 10 more")
    assert draft.found(GOOD, "plan.json") == draft.Found(formats.read(GOOD))


@pytest.mark.parametrize(
    ("path", "asks", "form"),
    [
        ("feature_list.json", "a JSON list of objects with category, description, steps", spellings.FEATURES),
        ("docs/feature_list.json", "a JSON list of objects with category, description, steps", spellings.FEATURES),
        ("prd.json", "userStories: a list of objects with id", spellings.STORIES),
        ("tasks/prd.json", "userStories: a list of objects with id", spellings.STORIES),
        ("plan.json", "a JSON list of objects with category, description, steps", ""),
    ],
)
def test_a_plan_is_asked_for_in_the_form_that_its_name_says_and_another_is_told(
    path: str, asks: str, form: str
) -> None:
    asked = draft.task(catalog.shipped()["initializer"].first, path)
    assert asks in asked
    assert f"`{path}`" in asked
    written = {
        spellings.STORIES: GOOD,
        spellings.FEATURES: b'[{"description": "a", "steps": ["Run `t`"], "passes": false}]',
    }
    for other, data in written.items():
        found = draft.found(data, path)
        assert found.plan is not None, "a person may accept it all the same"
        told = any("expect under this name" in problem for problem in found.problems)
        assert told == (form not in ("", other)), (other, found.problems)

"""What a session hands on to one that goes on from it: decisions and failed approaches, each with its record."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from harness.brain.context.handoff import handoff
from harness.brain.context.handoff_facts import Facts
from harness.events import types as t
from harness.events.plan.course_events import ASSUMPTION
from harness.events.work.checkpoint_events import Handed
from harness.plan import digest
from harness.plan.digest import Around
from harness.plan.iterations import Begin
from harness.projections import apply
from harness.projections.state.session_state import SessionState
from harness.reports import handoff_facts
from harness.supervisor.calls.work import plans
from tests.unit.test_plan_phases import story, text

INTENT = t.SessionIntent(name="n", goal="g", repo="/r", branch="b", worktree="/w", model="m")
ASKED = t.ApprovalRequested(approval_id="a1", kind="tool", title="push to main", options=[])
PLAIN = t.ApprovalDecided(approval_id="a0", decision_id="d0", decision="allow")
DENIED = t.ApprovalDecided(approval_id="a1", decision_id="d1", decision="deny", message="use a branch")
TRIED = t.ApproachFailed(entry="US-002", what="patch the\nloader", why="exit 1: no module")
WRONG = t.PlanUpdated(trigger=ASSUMPTION, reason="the API has no paging")


def log(*bodies: t.Body) -> list[t.Record]:
    return [t.Record(seq, "2026-01-05T10:00:00.000Z", "test", 0, body) for seq, body in enumerate(bodies)]


def forked(known: handoff_facts.HandedOn) -> t.SessionIntent:
    origin = t.Forked("parent0000", "k1", 9, "0", "1", "2", decided=known.decided, failed=known.failed)
    intent = msgspec.structs.replace(INTENT, forked=origin)
    return msgspec.json.decode(msgspec.json.encode(intent), type=t.SessionIntent)


def test_decisions_and_failed_approaches_are_handed_on_with_their_records_also_to_a_forks_fork() -> None:
    said = t.UserMessage(text="Keep the old API.", origin="human")
    ours = t.UserMessage(text="carry on", origin="harness")
    records = log(INTENT, said, ours, PLAIN, ASKED, DENIED, TRIED, WRONG)
    known = handoff_facts.handed_on("parent0000", records)
    assert known.decided == (
        Handed("parent0000", 1, "the person said: Keep the old API."),
        Handed("parent0000", 5, "the person chose deny for “push to main”: use a branch"),
    )
    assert known.failed == (
        Handed("parent0000", 6, "patch the loader", "exit 1: no module", "US-002"),
        Handed("parent0000", 7, "the API has no paging", "assumed, and proved wrong"),
    )
    again = handoff_facts.handed_on(
        "child00000", log(forked(known), t.ApproachFailed(entry="US-002", what="x", why="y"))
    )
    assert again.decided == known.decided
    assert again.failed == (*known.failed, Handed("child00000", 1, "x", "y", "US-002"))
    for line in (shown := handoff_facts.words(known)).split("\n"):
        if line.startswith("- "):
            assert line.rpartition(" [#")[2] in {f"{n} of session parent0000]" for n in (1, 5, 6, 7)}
    assert shown.count("\n- ") == 4
    assert handoff_facts.words(handoff_facts.HandedOn()) == ""


def test_a_task_and_a_context_that_begins_anew_show_what_was_handed_on() -> None:
    intent = forked(handoff_facts.handed_on("parent0000", log(INTENT, ASKED, DENIED, TRIED)))
    state = SessionState()
    plan = plans.record("prd.json", plans_of(), ())
    facts = Facts()
    for record in log(intent, plan):
        apply.advance(state, record)
        facts.advance(record)
    page = digest.digest(state, Begin("US-002", 1, 1), Around())
    assert "- “patch the loader”: exit 1: no module [#3 of session parent0000]" in page
    assert "use a branch” [#2 of session parent0000]" in page
    told = handoff(facts, state, 5, 0)
    assert "- `patch the loader`: “exit 1: no module” [#3 of session parent0000]" in told
    assert "push to main”: use a branch [#2 of session parent0000]" in told


def plans_of() -> plans.Plan:
    return plans.read(text([story("US-002")]))


@given(st.lists(st.text(max_size=2000), max_size=60))
def test_what_is_handed_on_is_bounded_and_on_one_line_each(words: list[str]) -> None:
    said = [t.UserMessage(text=one, origin="human") for one in words]
    tried = [t.ApproachFailed(entry="e", what=one, why=one) for one in words]
    known = handoff_facts.handed_on("p", log(*said, *tried))
    assert len(known.decided) == min(len(words), handoff_facts.MOST_DECIDED)
    assert len(known.failed) == min(len(words), handoff_facts.MOST_FAILED)
    assert len(handoff_facts.words(known)) < 40_000
    assert all("\n" not in one.text + one.why for one in (*known.decided, *known.failed))

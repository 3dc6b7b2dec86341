"""A task that outgrows its context is summarised by its model, once that is worth it, never in place of the goal."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agents import steps
from harness.brain import conversation, decide
from harness.brain.context import compaction, room
from harness.brain.context.sizes import Sizes
from harness.events import message_parts
from harness.events import types as t
from harness.reports.describe import describe
from harness.reports.record_detail import facts
from harness.simulator import script, validate
from harness.views.rows import context_of
from tests.unit.test_brain_loop import World, shape, text, use
from tests.unit.test_context import GOAL, size_of, work

SIZES = Sizes(working=40_000)
HEAD = "Hand-off from the earlier part of this session, made up: 3 earlier replies "
GOOD = "\n\n".join(f"{heading}\nsomething" for heading in compaction.HEADINGS)


def plod(w: World, turn: int) -> None:
    """One turn of a task that never comes to an end of its own."""
    w.ask()
    w.reply(
        "tool_use", text(f"step {turn}"), use(turn, "exec", argv=["make", f"p{turn}"]), usage=t.Usage(input=size_of(w))
    )
    w.end(w.propose()[0], preview=f"line {turn}\n" * 1000, files=[f"f{turn % 3}"])


def due(w: World) -> decide.Sum:
    """Work on until a summary is wanted."""
    for turn in range(1000, 1200):
        step = w.step()
        while isinstance(step, decide.Shrink):
            w.put(step.change)
            step = w.step()
        if isinstance(step, decide.Sum):
            return step
        plod(w, turn)
    raise AssertionError("no summary was wanted in 200 turns")


def compacted(w: World) -> list[t.ContextCompacted]:
    return [r.body for r in w.records if isinstance(r.body, t.ContextCompacted)]


def resets(w: World) -> int:
    return sum(isinstance(r.body, t.ContextReset) for r in w.records)


def test_after_twenty_compactions_the_goal_is_byte_equal() -> None:
    """The row of the reference (§1c, alignment drift), and the issue's: 20 resets and 5 compactions."""
    w = World(goal=GOAL, checks=["make test", "make  lint"], sizes=SIZES)
    for turn in range(20):
        plod(w, turn)
        keep = w.view.sizes[-1].seq
        w.put(t.ContextReset(keep=keep, handoff=f"{HEAD}{turn}", tokens=20_000, after=5000, trigger="a commit"))
    for turn in range(20, 40):
        plod(w, turn)
        change = room.Compact(w.view.sizes[-1].seq, 20_000, 5000, "one task outgrew its context")
        w.summarise(decide.Sum(change, f"{HEAD}{turn}"))
    assert len(compacted(w)) >= 20
    assert resets(w) >= 20
    first = shape(w.view)[0]["content"]
    assert first[0]["text"].encode() == GOAL.encode()
    assert first[1]["text"].split("\n")[1:] == ["- make test", "- make  lint"]
    assert first[2]["text"] == compacted(w)[-1].handoff
    newest = w.blobs[compacted(w)[-1].summary.sha].decode()
    assert first[3]["text"].endswith(newest)
    assert script.goal_of(shape(w.view)) == GOAL
    assert size_of(w) <= SIZES.working
    wire: dict[str, Any] = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": shape(w.view)}
    validate.check(json.loads(json.dumps(wire)))


def test_a_task_is_carried_over_once_by_code_before_its_model_is_asked() -> None:
    w = World(goal=GOAL, sizes=SIZES)
    due(w)
    assert resets(w) == 1
    commits = World(goal=GOAL, sizes=SIZES)
    for turn in range(60):
        work(commits, turn, random.Random(turn))
    assert not compacted(commits), "work that comes to ends of its own never costs a summary"


def test_a_request_for_a_summary_changes_nothing_but_its_last_words() -> None:
    w = World(goal=GOAL, sizes=SIZES)
    due(w)
    plain, asked = (conversation.Talk().build(w.view, words) for words in ("", compaction.REQUEST))
    assert asked.messages[:-1] == plain.messages[:-1]
    *before, last = asked.messages[-1]["content"]
    assert last["text"] == compaction.REQUEST
    assert [b.get("tool_use_id") for b in before] == [b.get("tool_use_id") for b in plain.messages[-1]["content"]]
    assert asked.added > plain.added, "what is reserved covers it"
    assert conversation.Talk().build(w.view) == plain, "and no later request repeats it"
    silent = script.Scenario("x", re.compile(""), lambda _: iter(()))
    turn = script.reply(silent, asked.messages)
    assert compaction.problem(message_parts.DONE, turn.text) == "", (
        "what a model writes that does as it is told can be used"
    )


def test_a_summary_that_is_no_use_is_followed_by_a_beginning_without_one() -> None:
    w = World(goal=GOAL, sizes=SIZES)
    w.summarise(due(w), "the summary lacks a heading")
    step = w.step()
    assert isinstance(step, decide.Shrink)
    assert isinstance(step.change, t.ContextReset)
    w.put(step.change)
    assert isinstance(w.step(), decide.Ask)
    assert isinstance(due(w), decide.Sum), "the next time it is tried again"


def test_two_compactions_without_a_call_that_came_to_its_end_open_a_breaker() -> None:
    w = World(goal=GOAL, sizes=SIZES)
    for _ in range(2):
        w.summarise(due(w))
        for turn in range(40):
            step = w.step()
            if not isinstance(step, decide.Ask):
                break
            w.request(step)
            w.reply("tool_use", use(turn, "exec", argv=["make", f"p{turn}"]), usage=t.Usage(input=size_of(w)))
            w.end(w.propose()[0], "error", f"line {turn}\n" * 1500, 1, files=[f"f{turn}"])
    step = w.step()
    assert isinstance(step, steps.Park)
    assert step.why == "breaker"
    assert step.breaker is not None
    assert (step.breaker.kind, step.breaker.count) == ("compaction", 2)
    w.put(step.breaker)
    w.put(t.SessionParked(why="breaker", detail=step.detail))
    assert not isinstance(w.step(), steps.Park), "a person let it go on"


def test_a_person_has_it_compacted_when_that_makes_it_shorter() -> None:
    w = World(goal=GOAL, sizes=SIZES)
    for turn in range(11):
        plod(w, turn)
    assert isinstance(w.step(), decide.Ask)
    w.put(t.ContextWanted())
    step = w.step()
    assert isinstance(step, decide.Sum)
    assert step.change.trigger.startswith("you wanted it")
    w.summarise(step)
    assert isinstance(w.step(), decide.Ask), "it is wanted once"
    w.put(t.ContextWanted())
    nothing = w.step()
    assert isinstance(nothing, decide.Shrink)
    assert isinstance(nothing.change, t.ContextKept)
    w.put(nothing.change)
    assert isinstance(w.step(), decide.Ask)
    assert context_of(w.view.state.context).endswith("compacted 1 time")


def test_pairs_stay_whole_whatever_is_compacted() -> None:
    w = World(goal=GOAL, sizes=SIZES)
    for turn in range(50):
        plod(w, turn)
        messages = shape(w.view)
        for message, answer in zip(messages[1::2], messages[2::2], strict=True):
            asked = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
            assert asked == [b["tool_use_id"] for b in answer["content"] if b["type"] == "tool_result"]
    assert len(compacted(w)) > 3
    for change in compacted(w):
        assert change.tokens_after <= (1 - room.SHRINK) * change.tokens_before
        assert "outgrew its context" in change.trigger


@pytest.mark.parametrize(
    ("stop", "summary", "why"),
    [
        (message_parts.DONE, GOOD, ""),
        (message_parts.DONE, f"Here it is:\n{GOOD}\n", ""),
        (message_parts.LENGTH, GOOD, "stopped with"),
        (message_parts.CALLS, GOOD, "stopped with"),
        (message_parts.DONE, "I am done, all checks pass.", "lacks the heading “## The task now”"),
        (
            message_parts.DONE,
            GOOD.replace("## Decided, and why", "## Decisions"),
            "lacks the heading “## Decided, and why”",
        ),
        (message_parts.DONE, "\n\n".join(reversed(GOOD.split("\n\n"))), "in another place"),
        (message_parts.DONE, GOOD.removesuffix("something"), "nothing stands under “## Next step”"),
        (message_parts.DONE, GOOD.replace("something", " ", 1), "nothing stands under “## The task now”"),
    ],
)
def test_a_summary_is_judged_by_its_headings(stop: str, summary: str, why: str) -> None:
    found = compaction.problem(stop, summary)
    assert (why in found) if why else not found


@given(st.integers(1, 1_000_000), st.integers(0, 1_000_000))
def test_a_compaction_shrinks_by_thirty_per_cent_or_is_not_made(before: int, after: int) -> None:
    assert bool(compaction.too_large(before, after)) == (after > before * 0.7)


@given(st.integers(0, 100_000), st.lists(st.integers(0, 40_000), max_size=12), st.booleans(), st.booleans())
def test_a_compaction_gives_back_what_it_says(now: int, turns: list[int], outgrown: bool, wanted: bool) -> None:
    held = [room.TurnSize(seq, size, size) for seq, size in enumerate(turns)]
    change = room.due(room.Measure(now, held, "", 0, outgrown, wanted), SIZES)
    if isinstance(change, room.Compact):
        assert outgrown or wanted
        assert change.after <= change.tokens == now
        assert change.after + room.SUMMARY_TOKENS <= (1 - room.SHRINK) * now
        assert len(held) - change.keep <= room.KEEP_TURNS


def test_what_was_summarised_can_be_read_in_its_row() -> None:
    ref = t.BlobRef("ab" * 32, 9)
    body = t.ContextCompacted(
        through_seq=8, handoff="facts", summary=ref, tokens_before=900, tokens_after=300, trigger="one task"
    )
    record = t.Record(9, "2026-11-21T03:00:00.000Z", "brain", 1, body)
    assert describe(record).summary == "begins anew with a hand-off and a summary, 900 → about 300 tokens: one task"
    assert ("summary", "what I did") in facts([record], {ref.sha: "what I did"})
    assert ("summary", "not readable here") in facts([record])

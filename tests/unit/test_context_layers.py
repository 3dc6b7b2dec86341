"""The layers of a request: what stands first and in which order, what each has in tokens, and how a bar shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.brain import conversation
from harness.brain import layers as table
from harness.brain.context.sizes import Sizes
from harness.brain.layers import Layer, beginning
from harness.brain.view import View
from harness.domain import request_layers
from harness.events import types as t
from harness.projections.state.row_state import Liveness
from harness.projections.state.session_state import Context
from harness.simulator import prompt_cache
from harness.views.rows import context_of, row
from tests.unit.test_brain_loop import World, shape, text
from tests.unit.test_context import GOAL, long_work
from widgets.base.palette import ROLES
from widgets.session.context_bar import SHOWN, layer_facts, segments

SIZES = st.dictionaries(st.sampled_from(request_layers.ORDER), st.integers(0, 100_000))


@given(SIZES, st.integers(0, 1_000_000))
def test_measured_layers_add_up_to_what_was_billed(sizes: dict[str, int], tokens: int) -> None:
    found = request_layers.measured(sizes, tokens)
    whole = sum(sizes.values())
    assert sum(found.values()) == (tokens if whole else 0)
    for name, size in found.items():
        assert abs(size - tokens * sizes[name] / whole) <= 1


@given(SIZES, st.integers(0, 200_000), st.integers(0, 60))
def test_a_bar_shows_each_layer_and_never_more_than_its_width(sizes: dict[str, int], working: int, width: int) -> None:
    held = {name: tokens for name, tokens in sizes.items() if tokens}
    parts = segments(sizes, working, width)
    assert [name for name, _ in parts] == list(held)[:width]
    assert all(size >= 1 for _, size in parts)
    assert sum(size for _, size in parts) <= width
    if held and sum(held.values()) >= working and width >= len(held):
        assert sum(size for _, size in parts) == width, "a context that is full fills the bar"


def body_of(w: World, talk: conversation.Conversation) -> dict[str, Any]:
    tools: list[dict[str, Any]] = conversation.cached_tools([{"name": "x", "input_schema": {"type": "object"}}])
    return {"system": conversation.system_blocks("You are an engineer."), "tools": tools, "messages": talk.messages}


def test_layer_sizes_add_up_to_count_tokens() -> None:
    """The row of the reference (§1c, active context): within 2 %."""
    w, _ = long_work(60, Sizes(working=30_000))
    talk = conversation.Talk().build(w.view)
    body = body_of(w, talk)
    counted = sum(block.tokens for block in prompt_cache.blocks_of(body))
    fixed = len(json.dumps([body["tools"], body["system"]]).encode()) // 4
    about = {request_layers.INSTRUCTIONS: fixed, **talk.layers}
    assert sum(about.values()) == pytest.approx(counted, rel=0.02)
    w.put(
        t.ModelRequest(
            request_id="r1",
            attempt=1,
            model="m",
            reservation="x",
            reserved_nano=1,
            est_input=1,
            max_tokens=100,
            upto_seq=w.view.state.seq,
            layers=about,
            working=30_000,
        )
    )
    w.reply("end_turn", text("done"), usage=t.Usage(input=7, cache_read=counted - 7, output=50))
    held = w.view.state.context.layers
    assert sum(held.values()) == counted
    assert list(held) == list(request_layers.ORDER)
    assert held[request_layers.GOAL] == pytest.approx(
        (len(beginning(w.view)[0][1] + beginning(w.view)[1][1]) + 56) / 4, rel=0.1
    )
    assert held[request_layers.HANDOFF] == pytest.approx(len(w.view.handoff) / 4, rel=0.1)
    assert 0 < held[request_layers.RECENT] < counted
    shown = row("s", w.view.state, Liveness(True, True))
    assert shown.layers == held
    assert shown.context_working == 30_000
    assert ("", f"hand-off: {held[request_layers.HANDOFF]:,} tokens") in layer_facts(shown)


def test_a_turn_counts_as_recent_and_then_as_the_task() -> None:
    w = World(goal=GOAL)
    for turn in range(5):
        w.ask()
        w.reply("end_turn", text(f"{turn} " * 2000))
        w.put(t.UserMessage(text="go on", origin="human"))
        held = conversation.Talk().build(w.view).layers
        whole = min(turn + 1, 3)
        assert held[request_layers.RECENT] == pytest.approx(whole * 1000, rel=0.05)
        assert held[request_layers.TASK] == pytest.approx((turn + 1 - whole) * 1000, rel=0.05, abs=20)


def test_a_layer_that_changes_is_in_the_next_request_and_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {"text": "Rule: no tabs."}

    def rules(v: View) -> str:
        return shown["text"]

    monkeypatch.setattr(
        table, "BEGINNING", (*table.BEGINNING[:2], Layer(request_layers.MEMORY, rules), *table.BEGINNING[2:])
    )
    w, _ = long_work(40, Sizes(working=30_000))
    kept = w.talk
    before = kept.build(w.lean)
    assert [b["text"] for b in before.messages[0]["content"]][2] == "Rule: no tabs."
    shown["text"] = "Rule: tabs."
    after = kept.build(w.lean)
    assert after == conversation.Talk().build(w.view)
    assert [b["text"] for b in after.messages[0]["content"]][2] == "Rule: tabs."
    assert after.messages[1:] == before.messages[1:]
    shown["text"] = ""
    assert len(kept.build(w.lean).messages[0]["content"]) == 3, "nothing to show is no block"
    assert kept.build(w.lean).layers[request_layers.MEMORY] == 0


def test_criteria_given_later_stand_behind_the_goal() -> None:
    w = World(goal=GOAL, checks=["make test"])
    w.put(t.SessionEnded(outcome="done", reason="r"))
    w.put(t.SessionContinued(checks=["make lint", "make\ttest  -j"]))
    first = shape(w.view)[0]["content"]
    assert first[0]["text"] == GOAL
    assert first[1]["text"].split("\n")[1:] == ["- make lint", "- make\ttest  -j"]


def test_a_row_says_what_the_requests_hold() -> None:
    context = Context(41_200, {"goal": 12}, working=80_000, clearings=1, resets=2)
    assert context_of(context) == "41,200 tokens of 80,000 to work in · cleared 1 time · begun anew 2 times"
    assert context_of(Context()) == ""


def test_each_layer_has_a_colour_of_its_own() -> None:
    assert set(SHOWN) == set(request_layers.ORDER)
    assert len({ROLES[role][0] for _, role in SHOWN.values()}) == len(SHOWN)

"""The log as messages: pairs, merging, notes on results, clearing, cache breakpoints and the size to reserve for."""

from __future__ import annotations

import copy
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.brain import conversation, prompt
from harness.brain.conversation_turns import DamagedMessage
from harness.events import message_parts
from harness.events import types as t
from harness.projections import apply
from harness.tools import registry
from tests.unit.test_brain_loop import World, shape, text, use


def answered(w: World, *results: t.Body) -> None:
    w.ask()
    w.reply("tool_use", text("look"), *(use(i) for i in range(len(results))))
    for call_id, result in zip(w.propose(), results, strict=True):
        if isinstance(result, t.ToolResolved):
            w.put(t.ToolJudged(call_id=call_id, action_hash="h", verdict="allow", rule="r", reason="", policy="p"))
            w.put(
                t.ToolStarted(call_id=call_id, action_hash="h", effect="contained"),
                t.ToolInDoubt(call_id=call_id, why="x"),
            )
        w.put(msgspec.structs.replace(result, call_id=call_id))


def ended(status: str = "ok", preview: str = "out", **more: object) -> t.ToolEnded:
    return msgspec.convert({"call_id": "", "status": status, "preview": preview, **more}, t.ToolEnded)


def test_the_goal_stands_first_verbatim_and_is_said_once() -> None:
    goal = "  Make it so.\n\tExactly *this*.  "
    w = World(goal=goal)
    w.put(t.UserMessage(text=goal, origin="goal"), t.UserMessage(text="one more thing", origin="human"))
    (message,) = shape(w.view)
    assert [b["text"] for b in message["content"]] == [goal, "one more thing"]


def test_all_results_of_a_reply_come_in_one_message_in_its_order_before_any_text() -> None:
    w = World()
    w.ask()
    w.reply("tool_use", use(1), use(2))
    first, second = w.propose()
    w.put(t.UserMessage(text="hurry", origin="human"))
    w.end(second, preview="two")
    w.end(first, preview="one")
    assert [b.get("content", b.get("text")) for b in shape(w.view)[-1]["content"]] == ["one", "two", "hurry"]
    assert conversation.Talk().build(w.view).delivers == (first, second)


def test_a_missing_result_is_never_sent() -> None:
    w = World()
    w.ask()
    w.reply("tool_use", use(1))
    w.propose()
    with pytest.raises(conversation.Unanswered):
        conversation.Talk().build(w.view)


@pytest.mark.parametrize(
    ("result", "error", "says"),
    [
        (ended(preview=""), False, "(no output)"),
        (ended("error", "no such file", exit_code=2), True, "no such file\n[exit code 2]"),
        (ended("timeout", "…", ms=5000), True, "time limit after 5 s"),
        (ended("denied", "a human said no"), True, "denied; nothing ran"),
        (ended("cancelled", ""), True, "cancelled"),
        (ended("ok", "head", output={"sha": "0" * 64, "bytes": 90_000}), False, "90000 bytes in all"),
        (ended("ok", "head", truncated=True), False, "passed its limit"),
        (ended("ok", "bad \udcff byte"), False, "bad ? byte"),
        (
            t.ToolResolved(call_id="", resolution="unknown_told_model", evidence="killed at 10:00"),
            True,
            "outcome unknown: inspect before you repeat it.\nkilled",
        ),
        (t.ToolResolved(call_id="", resolution="confirmed_done"), False, "it is done"),
        (t.ToolResolved(call_id="", resolution="failed"), True, "failed"),
    ],
)
def test_what_the_model_is_told_of_a_result(result: t.Body, error: bool, says: str) -> None:
    w = World()
    if isinstance(result, t.ToolEnded) and "\udcff" in result.preview:
        w.ask()
        w.reply("tool_use", use(1))
        (call_id,) = w.propose()
        record = t.Record(w.view.state.seq + 1, "", "", 0, msgspec.structs.replace(result, call_id=call_id))
        apply.advance(w.view.state, record)
        w.view.take(record, lambda _: b"")
    else:
        answered(w, result)
    block = shape(w.view)[-1]["content"][0]
    assert says in block["content"]
    assert block.get("is_error", False) is error
    json.dumps(block, ensure_ascii=False).encode()


def test_a_call_that_was_resolved_as_not_done_waits_for_its_next_run() -> None:
    w = World()
    answered(w, t.ToolResolved(call_id="", resolution="confirmed_not_done"))
    with pytest.raises(conversation.Unanswered):
        conversation.Talk().build(w.view)


def test_content_goes_back_unchanged_and_the_log_is_not_touched() -> None:
    w = World()
    thinking = {"type": "thinking", "thinking": "…", "signature": "c2ln", "future": {"field": 1}}
    content = [thinking, text("ok"), use(1)]
    w.ask()
    w.reply("tool_use", *content)
    (call_id,) = w.propose()
    w.end(call_id)
    kept = copy.deepcopy(w.view.models[0].parts)
    messages = shape(w.view)
    assert messages[1]["content"] == content
    messages[1]["content"].clear()
    assert w.view.models[0].parts == kept


def test_a_reply_without_a_word_is_left_out() -> None:
    w = World()
    w.ask()
    w.reply("end_turn", text(" \n"))
    w.put(t.UserMessage(text="go on", origin="human"))
    assert len(shape(w.view)) == 1


def test_a_reply_from_a_blob() -> None:
    w = World()
    w.blobs["f" * 64] = msgspec.json.encode([message_parts.Text("from afar")])
    w.ask()
    ref = t.BlobRef("f" * 64, 10)
    w.put(
        t.ModelMessage(
            request_id="r",
            message_id="m",
            model="m",
            stop="done",
            usage=t.Usage(),
            cost_nano=0,
            parts_blob=ref,
        )
    )
    assert w.view.models[0].parts == (message_parts.Text("from afar"),)
    w.blobs["f" * 64] = b"{}"
    with pytest.raises(DamagedMessage, match="seq 5"):
        w.put(
            t.ModelMessage(
                request_id="r",
                message_id="m",
                model="m",
                stop="done",
                usage=t.Usage(),
                cost_nano=0,
                parts_blob=ref,
            )
        )


def long_session(turns: int, used: list[int], model: str = "claude-sonnet-4-5") -> World:
    """Each turn reads 4 KB; ``used[i]`` is the context that the reply of turn i reports."""
    w = World(model=model)
    for i in range(turns):
        w.ask()
        w.reply("tool_use", use(i), usage=t.Usage(cache_read=used[min(i, len(used) - 1)]))
        for call_id in w.propose():
            w.end(call_id, preview=f"{i:04d}" * 1000, files=["f"])
    return w


def test_at_most_four_breakpoints_and_never_on_the_models_words() -> None:
    w = long_session(4, [1000])
    messages = shape(w.view)
    marked = [(i, j) for i, m in enumerate(messages) for j, b in enumerate(m["content"]) if "cache_control" in b]
    assert marked == [(len(messages) - 3, 0), (len(messages) - 1, 0)]
    assert all(messages[i]["role"] == "user" for i, _ in marked)
    assert (
        sum(
            "cache_control" in b
            for b in conversation.cached_tools([tool.definition() for tool in registry.TABLE.values()])
        )
        == 1
    )
    assert "cache_control" not in [tool.definition() for tool in registry.TABLE.values()][-1]


@given(st.lists(st.text(max_size=200), min_size=1, max_size=4), st.integers(1, 100_000))
def test_the_bound_covers_what_is_added(previews: list[str], used: int) -> None:
    w = World()
    w.ask()
    w.reply("tool_use", *(use(i) for i in range(len(previews))), usage=t.Usage(input=used, output=5))
    for call_id, preview in zip(w.propose(), previews, strict=True):
        w.end(call_id, preview=preview.encode("utf-8", "replace").decode())
    talk = conversation.Talk().build(w.view)
    bound = conversation.estimate(w.view, talk)
    assert bound is not None
    assert bound >= used + 5 + sum(len(p.encode("utf-8", "replace")) for p in previews)


def test_no_bound_before_the_first_reply() -> None:
    w = World()
    assert conversation.estimate(w.view, conversation.Talk().build(w.view)) is None


def test_a_window_is_known_or_small() -> None:
    assert prompt.context_window("claude-opus-4-6-20260101") == 1_000_000
    assert prompt.context_window("claude-sonnet-4-5") == prompt.context_window("somebody-else") == 200_000

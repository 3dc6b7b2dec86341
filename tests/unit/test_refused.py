"""What an agent does when its endpoint refuses what was said, replies with nothing, or bills what cannot be:
decided from the log alone.
"""

from __future__ import annotations

import json

import pytest

from harness.agents import steps
from harness.agents.steps import Park, Say
from harness.brain import conversation, decide
from harness.brain.context.sizes import Sizes
from harness.domain.model_limits import ModelLimits
from harness.domain.states import ParkedFor
from harness.events import types as t
from tests.unit.test_brain_loop import World, text, use

SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"


def worked(turns: int = 4, size: int = 400) -> World:
    """A session that has had so many turns, and is about to ask again."""
    w = World()
    for number in range(1, turns + 1):
        w.ask()
        w.reply("tool_use", use(number))
        for call in w.propose():
            w.end(call, preview="y" * size, files=[f"f{number}"])
    return w


def sent(w: World) -> str:
    """The conversation of the next request."""
    return conversation.Talk().build(w.view).encoded.decode()


def refuse(w: World, kind: str = "history", message: str = SIGNATURE) -> str:
    """Ask and be refused; what was sent."""
    w.ask()
    shown = sent(w)
    w.fail(kind, message)
    return shown


@pytest.mark.parametrize("kind", ["history", "invalid"])
def test_a_history_that_is_refused_is_left_behind_once_by_itself_and_then_a_person_is_asked(kind: str) -> None:
    w = worked()
    before = refuse(w, kind)
    step = w.step()
    assert isinstance(step, decide.Shrink)
    assert isinstance(step.change, t.ContextReset)
    assert step.change.refused
    assert SIGNATURE in step.change.trigger
    w.ask()
    after = json.loads(sent(w))
    assert [m["role"] for m in after] == ["user"], "nothing of the agent's own words is sent again"
    assert "f4" in sent(w), "the hand-off says what was done"
    assert len(sent(w)) < len(before)
    w.reply("tool_use", use(9))
    for call in w.propose():
        w.end(call)
    again = refuse(w, kind)
    asked = w.step()
    assert isinstance(asked, Park)
    assert (asked.why, SIGNATURE in asked.detail) == (ParkedFor.HISTORY, True)
    w.put(t.SessionParked(why=asked.why, detail=asked.detail))
    assert again != before


def parked(w: World) -> str:
    """Bring a session to the question about its history; the history that was refused."""
    refuse(w)
    w.ask()
    w.reply("tool_use", use(9))
    for call in w.propose():
        w.end(call)
    shown = refuse(w)
    step = w.step()
    assert isinstance(step, Park)
    assert step.why == ParkedFor.HISTORY
    w.put(t.SessionParked(why=step.why, detail=step.detail))
    return shown


RESUMED = t.SessionDesired(state="running", reason="")
WAYS: dict[str, tuple[t.Body, ...]] = {
    "fresh": (t.ContextWanted(fresh=True), t.SessionDesired(state="running", reason="fresh")),
    "say": (t.UserMessage(text="go on"),),
    "compact": (t.ContextWanted(),),
    "resume": (RESUMED,),
    "pause and resume": (t.SessionDesired(state="paused"), RESUMED),
    "continue": (t.SessionDesired(state="stopped"), t.SessionEnded(outcome="stopped"), t.SessionContinued()),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_on_sends_a_refused_history_again(way: str) -> None:
    w = worked()
    refused = parked(w)
    w.put(*WAYS[way])
    step = w.step()
    assert isinstance(step, decide.Shrink), step
    w.ask()
    assert sent(w) != refused
    assert "assistant" not in sent(w)
    w.reply("end_turn", text("Done."))
    assert isinstance(w.step(), steps.End)


def test_a_retry_sends_it_once_more_and_then_begins_anew() -> None:
    w = worked()
    refused = parked(w)
    w.put(t.SessionDesired(state="running", reason="retry"))
    assert isinstance(w.step(), decide.Ask)
    assert refuse(w) == refused, "a person may have mended the endpoint"
    assert isinstance(w.step(), decide.Shrink)


def test_what_a_person_said_since_is_still_said() -> None:
    w = worked()
    w.put(t.UserMessage(text="use blue, not red"))
    refuse(w)
    w.ask()
    assert sent(w).count("use blue, not red") >= 1


def test_a_first_request_that_is_refused_has_nothing_to_leave_behind() -> None:
    w = World()
    refuse(w)
    step = w.step()
    assert isinstance(step, Park)
    assert step.why == ParkedFor.ERROR


def test_a_refused_setting_is_no_reason_to_leave_anything_behind() -> None:
    w = worked()
    w.ask()
    w.fail("setting", "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for m")
    assert isinstance(w.step(), decide.Ask)
    assert w.view.longest == 4096
    w.request(decide.Ask())
    w.fail("setting", "unknown beta header")
    step = w.step()
    assert isinstance(step, Park)
    assert step.why == ParkedFor.ERROR


# -- too many bytes --------------------------------------------------------------------------------


def test_a_request_with_too_many_bytes_is_made_shorter_until_it_fits_and_the_size_is_learned() -> None:
    w = worked(turns=6, size=8000)
    w.ask()
    size = len(sent(w))
    w.put(t.ModelFailed(request_id="r1", attempt=1, kind="too_big", message="<html>nginx</html>", bytes=size))
    assert w.view.refused_bytes == size
    step = w.step()
    assert isinstance(step, decide.Shrink)
    assert f"refused {size:,} bytes" in step.change.trigger
    w.ask()
    assert len(sent(w)) < size // 2
    w.reply("end_turn", text("Done."))
    assert isinstance(w.step(), steps.End)


def test_what_is_known_to_be_too_big_is_not_sent() -> None:
    w = worked(turns=3, size=8000)
    sizes = Sizes(bytes=5000)
    seen = []
    while len(sent(w)) >= 5000:
        made = decide.too_big(w.view, sizes, len(sent(w)))
        assert isinstance(made, decide.Shrink), made
        w.put(made.change)
        seen.append(type(made.change))
    assert seen == [t.ContextReset, t.ContextCleared]
    alone = decide.too_big(World().view, sizes, 6000)
    assert isinstance(alone, Park)
    assert "6,000 bytes, and the endpoint refused 5,000" in alone.detail


def test_a_size_that_was_refused_is_room_to_work_in() -> None:
    assert Sizes().room == 80_000
    assert Sizes(bytes=60_000).room == 15_000
    told = ModelLimits(200_000, 8192).beside(ModelLimits(bytes=70_000))
    assert told.beside(ModelLimits(bytes=60_000)) == ModelLimits(200_000, 8192, 60_000)


# -- replies without a word ------------------------------------------------------------------------

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


@pytest.mark.parametrize("content", [(), (text(" \n"),), (THOUGHT,)], ids=["nothing", "blank", "thinking"])
@pytest.mark.parametrize("checks", [(), ("make test",)])
def test_a_turn_that_ends_without_a_word_is_no_claim(
    content: tuple[dict[str, object], ...], checks: tuple[str, ...]
) -> None:
    w = World(checks=list(checks))
    w.ask()
    w.reply("tool_use", use(1))
    for call in w.propose():
        w.end(call)
    for _ in range(2):
        w.ask()
        w.put(reply(*content))
        step = w.step()
        assert isinstance(step, Say)
        w.put(t.UserMessage(text=step.text, origin="harness"))
        roles = [m["role"] for m in json.loads(sent(w))]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
        assert "thinking" not in sent(w), "no turn of mere thinking is sent back"
    w.ask()
    w.put(reply(*content))
    step = w.step()
    assert isinstance(step, Park)
    assert "3 replies in a row said nothing" in step.detail
    assert w.view.rounds == 0
    w.put(t.SessionParked(why=step.why, detail=step.detail), t.SessionDesired(state="running", reason="retry"))
    assert not isinstance(w.step(), (steps.End, steps.Check))


def reply(*content: dict[str, object], doubt: str = "") -> t.ModelMessage:
    from harness.events import messages_api

    return t.ModelMessage(
        request_id="r",
        message_id="m",
        model="m",
        stop="done",
        usage=t.Usage(input=10, output=5),
        cost_nano=1,
        parts=messages_api.parts_of(list(content)),
        doubt=doubt,
    )


# -- bills that cannot be --------------------------------------------------------------------------


def lie(w: World) -> None:
    w.ask()
    w.put(reply(text("?"), doubt="input_tokens -1"))
    w.put(t.UserMessage(text="and now?"))


def test_only_repeated_bills_that_cannot_be_hold_a_session_until_they_are_believed() -> None:
    w = worked(1)
    for _ in range(2):
        lie(w)
    w.ask()
    w.reply("end_turn", text("fine"))
    w.put(t.UserMessage(text="on"))
    for _ in range(3):
        lie(w)
    step = w.step()
    assert isinstance(step, Park)
    assert (step.why, "input_tokens -1" in step.detail) == (ParkedFor.BILL, True)
    w.put(t.SessionParked(why=step.why, detail=step.detail), t.BillsBelieved())
    for _ in range(9):
        lie(w)
    assert isinstance(w.step(), decide.Ask)

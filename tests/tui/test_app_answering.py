"""Answering a question where it is seen: offered answers by number and a second enter, words with one, and a draft that
no key loses.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.screens.dialogs.answering import AnswerDialog
from harness.tools.person_tool import read
from harness.views import attention
from harness.views.session_views import ApprovalView
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import PUSH, World, stamp

LONG = "\n".join(f"Point {n}: something to know." for n in range(30)) + "\n\nWhich of them stays?"
HOSTILE = "\x1b[2Jdrop\u202eit [bold]now[/]"


def asks(world: World, *, offered: bool = True) -> ApprovalView:
    detail: dict[str, object] = {"asks": LONG}
    if offered:
        detail["choices"] = ["keep it", HOSTILE, "ask the maintainers"]
    return world.ask(
        world.add("cart"),
        kind="question",
        title="Which of them stays?",
        options=["answer", "deny", "stop"],
        call_id="c7.0",
        risk="low",
        detail=detail,
    )


def asking(world: World) -> None:
    asks(world)


def dialog(s: Shown) -> AnswerDialog:
    assert isinstance(s.app.screen, AnswerDialog)
    return s.app.screen


@given(st.text(max_size=12), st.integers(0, 9))
def test_a_text_is_a_number_that_was_offered_or_words_and_never_lost(text: str, offered: int) -> None:
    clean = text.strip()
    number = int(clean) if clean.isascii() and clean.isdigit() and len(clean) < 3 and offered else None
    if not clean or (number is not None and not 1 <= number <= offered):
        with pytest.raises(ValueError, match=r"write something|there is no answer"):
            read(text, offered)
        return
    answer = read(text, offered)
    assert (answer.number, answer.message) == (number, clean if number is None else "")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", ["floor", "queue"])
async def test_an_offered_answer_takes_its_number_and_a_second_enter(
    tmp_path: Path, size: tuple[int, int], way: str
) -> None:
    async with shown(tmp_path, asking, size=size) as s:
        await s.see("Which of them stays?")
        await s.press(*(["2", "w"] if way == "queue" else ["w"]))
        await s.see("Answer cart", "Which of them stays?", " 1 keep it", " 3 ask the maintainers", "enter send")
        assert "1 to 3, or words of your own" in s.text
        assert "\x1b" not in s.text
        assert "\u202e" not in s.text
        await s.press("9", "enter")
        await s.see("there is no answer 9; choose 1 to 3")
        await s.press("backspace", "3")
        await s.until("the complaint gone with what it was about", lambda: "there is no answer" not in s.text)
        await s.press("enter")
        await s.see("enter again answers: ask the maintainers")
        assert not s.world.of("decide")
        await s.press("backspace", "1")
        assert "enter again" not in s.text
        await s.press("enter")
        await s.see("enter again answers: keep it")
        await s.press("enter")
        await s.until("the answer", lambda: s.world.of("decide"))
        (sent,) = s.world.of("decide")
        assert (sent["decision"], sent["value"], sent["message"]) == ("answer", 1, "")
        assert bool(sent.get("shown_hash")) == (way == "queue"), "only the queue showed the card"
        assert s.app.no_control.hits == 0


async def test_no_key_loses_what_was_written(tmp_path: Path) -> None:
    async with shown(tmp_path, asking) as s:
        await s.press("w", *"keep", "space", "both", "escape")
        await s.until("closed", lambda: not isinstance(s.app.screen, AnswerDialog))
        assert not s.world.of("decide")
        await s.press("2", "w")
        assert dialog(s).text.startswith("keep ")
        dialog(s).field.insert("\nof\nthem")
        s.world.refuse["decide"] = {"code": "mute", "message": "its log does not answer"}
        await s.press("enter")
        await s.see("its log does not answer")
        s.world.refuse.clear()
        await s.press("w")
        written = dialog(s).text
        assert written.endswith("of\nthem"), "a refused answer is still there"
        await s.press("enter")
        await s.until("accepted", lambda: len(s.world.of("decide")) == 2)
        assert s.world.of("decide")[1]["message"] == written.strip()
        await s.until("forgotten", lambda: not s.app.drafts)


async def test_a_row_that_asks_nothing_says_so(tmp_path: Path) -> None:
    async with shown(tmp_path, lambda world: world.add("quiet")) as s:
        await s.press("w")
        await s.see("quiet asks nothing")


async def test_a_row_that_asks_for_leave_says_where_it_is_decided(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.ask(world.add("pusher"), PUSH, ts=stamp(60))

    async with shown(tmp_path, scene) as s:
        await s.press("w")
        await s.see("asks nothing that a line", "2 opens its")


def test_the_question_of_a_session_is_its_oldest_that_words_can_answer() -> None:
    def view(name: str, kind: str, seq: int, *, deferred: str | None = None, sid: str = "s") -> ApprovalView:
        return ApprovalView(name, sid, "n", kind, "t", ["answer"], "low", "", seq, deferred=deferred)

    views = [
        view("a1", "tool", 1),
        view("a2", "question", 2, deferred=""),
        view("a3", "question", 4),
        view("a4", "refusal", 3),
        view("a5", "question", 0, sid="other"),
    ]
    assert getattr(attention.question_of(views, "s"), "approval_id", "") == "a4"
    assert attention.question_of(views[:1], "s") is None

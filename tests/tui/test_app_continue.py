"""Going on after the end, and answering what a reply asks, on the screen: what keys there are when, and what they
send.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.client import requests
from app.screens.queue import QueueScreen
from harness.events import types as t
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import World, stamp, work


def ended(world: World) -> None:
    world.add(
        "cart",
        *work(0),
        t.SessionEnded(outcome="failed", reason="1 of 2 checks still fail after 5 rounds: make \x1b[2J"),
    )


@pytest.mark.parametrize("size", SIZES)
async def test_the_dialog_sends_words_rounds_dollars_and_a_check(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, ended, size=size) as s:
        await s.see("cart")
        assert ("session.continue", "c", "continue") in s.help or size[0] < 80
        assert not {"session.resume", "session.pause", "session.stop", "session.say"} & {
            ident for ident, _, _ in s.help
        }
        await s.press("c")
        await s.see(
            "Continue cart",
            "It ended failed",
            "rounds: make ␛[2J",
            "Rounds",
            "Dollars",
            "New check",
            "ctrl+y continue",
            "esc cancel",
        )
        assert all(len(line) <= size[0] for line in s.grid)
        await s.press("g", "o")
        await s.press("tab", "3", "tab", "+", "2", "tab", "m", "a", "k", "e", "enter")
        assert not s.world.of("continue")
        await s.press("ctrl+y")
        await s.until("it is sent", lambda: s.world.of("continue"))
        sent = s.world.of("continue")[0]
        assert (sent["text"], sent["rounds"], sent["more"], sent["checks"]) == (
            "go",
            3,
            {"usd_nano": 2_000_000_000},
            ["make"],
        )
        await s.see("cart: goes on")
        await s.until(
            "its keys are those of a running session",
            lambda: "session.continue" not in {ident for ident, _, _ in s.help},
        )


async def test_what_cannot_be_used_is_said_beside_the_fields(tmp_path: Path) -> None:
    async with shown(tmp_path, ended) as s:
        await s.press("enter")
        await s.see("Plan & progress")
        await s.press("c")
        await s.see("Continue cart")
        await s.press("tab", "x", "ctrl+y")
        await s.see("Rounds: 'x' is not a whole number")
        await s.press("backspace", "tab", "l", "o", "t", "s", "ctrl+y")
        await s.see("Dollars: ")
        await s.press("escape")
        assert not s.world.of("continue")


async def test_what_was_typed_stays_when_it_is_refused(tmp_path: Path) -> None:
    async with shown(tmp_path, ended, size=(80, 24)) as s:
        s.world.refuse["continue"] = {
            "code": "bad_caps",
            "message": "that cap is used up \x1b[2J",
            "hint": "give more than that",
        }
        await s.press("c")
        await s.see("Continue cart")
        await s.press("g", "o", "ctrl+y")
        await s.see("that cap is used up ␛[2J; give more than that", "▊ go", "ctrl+y continue")
        s.world.refuse.clear()
        await s.press("ctrl+y")
        await s.see("cart: goes on")
        assert [call["text"] for call in s.world.of("continue")] == ["go", "go"]
        assert "Continue cart" not in s.text


@pytest.mark.parametrize("outcome", ["done", "failed", "stopped"])
async def test_the_palette_and_the_help_know_it(tmp_path: Path, outcome: str) -> None:
    def scene(world: World) -> None:
        world.add("cart", *work(0), t.SessionEnded(outcome=outcome))

    async with shown(tmp_path, scene) as s:
        await s.see("cart")
        await s.press("question_mark")
        await s.see("Continue the ended session", "Take it up again with words, rounds, dollars or another check.")
        await s.press("escape")
        await s.press("ctrl+p")
        await s.press("c", "o", "n", "t", "i", "n", "u")
        await s.see("Continue the ended session")


async def test_a_running_session_offers_no_continuing(tmp_path: Path) -> None:
    async with shown(tmp_path, lambda world: world.add("cart", *work(0))) as s:
        await s.see("cart")
        await s.press("c")
        assert "session.continue" not in {ident for ident, _, _ in s.help}
        assert "Continue cart" not in s.text


def asking(world: World) -> None:
    detail = {"asks": "There are two ways.\n\nShould I keep the old API?", "checks": "0 of 1 pass"}
    world.ask(
        world.add("cart"),
        kind="question",
        options=["answer", "done", "stop"],
        title="Should I keep the old API?",
        detail=detail,
        ts=stamp(60),
    )


@pytest.mark.parametrize("size", SIZES)
async def test_a_question_is_answered_from_the_queue(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, asking, size=size) as s:
        await s.press("2")
        await s.see(
            "cart asks you", "Should I keep the old API?", "THE AGENT'S WORDS", "┊ There are two ways.", "0 of 1 pass"
        )
        idents = {ident for ident, _, _ in s.help}
        assert {"queue.answer", "queue.accept"} <= idents
        assert "queue.done" not in idents
        await s.press("w")
        await s.see("Your text is its next")
        await s.press("y", "e", "s", "ctrl+y")
        await s.until("the answer", lambda: s.world.of("decide"))
        sent = s.world.of("decide")[0]
        assert (sent["decision"], sent["message"]) == ("answer", "yes")


def armed(s: Shown) -> bool:
    return isinstance(s.app.screen, QueueScreen) and s.app.screen.arming.armed(time.monotonic())


async def test_a_question_may_be_taken_as_the_end(tmp_path: Path) -> None:
    async with shown(tmp_path, asking) as s:
        await s.press("2")
        await s.see("THE AGENT'S WORDS")
        await s.until("the card was seen", lambda: armed(s))
        await s.press("d")
        await s.see("Take as finished cart")
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        assert s.world.of("decide")[0]["decision"] == "done"
        await s.see("cart: taken as finished")


def test_what_is_typed_becomes_the_arguments() -> None:
    typed = {"usd_nano": "+5", "tokens": "1_000", "wall_s": "2h", "tool_calls": " none "}
    assert requests.wish_of(" go ", "2", typed, ["a", " "]) == {
        "text": "go",
        "rounds": 2,
        "checks": ["a"],
        "replace_checks": False,
        "caps": {"tokens": 1000, "wall_s": 7200, "tool_calls": None},
        "more": {"usd_nano": 5_000_000_000},
    }
    assert requests.wish_of("", "", {"usd_nano": ""}, []) == {"text": "", "checks": [], "replace_checks": False}
    assert requests.wish_of("", "", {"wall_s": "+90", "usd_nano": "$3"}, [])["more"] == {"wall_s": 90}
    for rounds, caps, checks, replace, field in (
        ("x", {}, [], False, "rounds"),
        ("0", {}, [], False, "rounds"),
        ("", {"usd_nano": "much"}, [], False, "usd_nano"),
        ("", {"wall_s": "+soon"}, [], False, "wall_s"),
        ("", {"tool_calls": "-1"}, [], False, "tool_calls"),
        ("", {}, [" "], True, "checks"),
    ):
        with pytest.raises(requests.Unusable) as caught:
            requests.wish_of("", rounds, caps, checks, replace_checks=replace)
        assert caught.value.field == field

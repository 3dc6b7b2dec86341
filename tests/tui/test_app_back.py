"""Looking back on the screen: both lists at every size, each line opens its record, an absence opens it by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.client import last_seen
from app.screens.look_back import BackScreen
from harness.events import types as t
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import PUSH, World


def past(world: World) -> None:
    cart = world.add("cart")
    asked = world.ask(cart, PUSH)
    world.log(
        cart,
        t.ApprovalDecided(
            approval_id=asked.approval_id,
            decision_id="d1",
            decision="deny",
            call_id=asked.call_id,
            message="not \x1b[2J[bold]yet",
            shown_hash="f" * 64,
            by=t.By(client="tui"),
        ),
        t.ToolEnded(call_id=asked.call_id, status="denied", preview="The human denied this."),
        t.SessionEnded(outcome="failed", reason="1 of 2 checks fails: pytest"),
    )
    cart.views.clear()
    world.add("quiet")


def at(s: Shown) -> BackScreen:
    assert isinstance(s.app.screen, BackScreen)
    return s.app.screen


async def to_line(s: Shown, words: str) -> None:
    """Move the selection to the line with these words."""
    await s.see(words)
    place = next(i for i, e in enumerate(at(s).entries) if words in e.text)
    for _ in range(place):
        await s.press("j")


@pytest.mark.parametrize("size", SIZES)
async def test_both_lists_say_what_happened_and_each_line_opens_its_record(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with shown(tmp_path, past, size=size) as s:
        await s.press("b")
        await s.see(
            "Since you looked", "Decided requests", "Since 24 h ago" if size[0] > 200 else "Since ", "cart failed"
        )
        await to_line(s, "session failed" if "session failed" in s.text else "1 of 2 checks fails")
        await s.press("enter")
        await s.see("session.ended", "esc closes")
        await s.press("escape", "tab")
        await s.see("deny ", "cart wants to: git push origin main ·")
        if size[0] > 80:
            await s.see("· denied by you, on the screen · ")
        assert "\x1b" not in s.text
        await s.press("enter")
        await s.see("outcome", "effect", "asked", "#")
        await s.press("escape", "i")
        await s.until("its session", lambda: type(s.app.screen).__name__ == "SessionScreen")
        assert s.app.no_control.hits == 0


async def test_it_goes_on_from_where_it_was_shown_and_can_begin_earlier(tmp_path: Path) -> None:
    async with shown(tmp_path, past) as s:
        assert last_seen.last(s.app.folders.state) == ""
        await s.press("b")
        await s.see("cart failed")
        mark = last_seen.last(s.app.folders.state)
        assert mark
        await s.press("escape", "b")
        await s.see("cart failed", "you: continue it", "nothing new: quiet")
        assert any(line.startswith(" nothing new") for line in s.grid), "it is the fleet's line, not the last session's"
        await s.press("o")
        await s.see("cart failed")


async def test_an_empty_queue_leads_to_what_was_decided(tmp_path: Path) -> None:
    async with shown(tmp_path, lambda world: world.add("quiet")) as s:
        await s.press("2")
        await s.see("Nothing needs you", "h shows what was decided")
        await s.press("h")
        await s.see("Nobody was asked anything yet")
        assert last_seen.last(s.app.folders.state) == "", "nobody saw what happened"
        await s.press("enter")
        await s.see("this line stands for no record")


async def test_after_an_absence_it_opens_by_itself(tmp_path: Path) -> None:
    async with shown(tmp_path, past, away=True) as s:
        await s.see("Since you looked", "cart failed")
        await s.press("escape")
        await s.see("ERRORS")

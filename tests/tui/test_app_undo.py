"""Undo on the screen: the newest states to choose from, what each takes back, and nothing without the chord."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.screens.dialogs.undo import consequence, first_choice
from harness.views.undo_views import UndoPoint
from tests.tui.app_pilot import shown
from tests.tui.app_world import World, point, stamp, work
from widgets.base.help_bar import HelpBar


def worked(world: World) -> None:
    session = world.add("cart", *work(0), *work(1))
    world.points[session.sid] = [
        point("c40.0", "exec", "pytest -q", age=10),
        point("c30.0", "shell", "rm -rf src \x1b[2J\u202e", changed=12, age=70, left_out=2),
        point("c20.0", "write_file", "write_file src/a.py", changed=1, age=4000),
        point("c10.0", "exec", "make", changed=3, age=90_000, expired=True),
    ]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_dialog_says_what_is_taken_back_and_the_chord_does_it(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, worked, size=size) as s:
        await s.press("U")
        await s.see("Undo in cart", "rm -rf src ␛[2J⟨U+202E⟩", "write_file src/a.py", "ctrl+y undo", "itself be undone")
        await s.see("Takes back 2 calls that changed 12 names.", "Too large to be kept")
        assert all(len(line) <= size[0] for line in s.grid)
        await s.press("y", "enter")
        assert not s.world.of("undo")
        await s.press("down")
        await s.see("Takes back 3 calls that changed 13 names.")
        await s.press("ctrl+y")
        await s.until("the undo", lambda: s.world.of("undo"))
        assert s.world.of("undo")[0]["to"] == "c20.0"
        await s.see("undone to before c20.0")


async def test_the_dialog_says_that_a_persons_commit_goes_with_it(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        worked(world)
        listed = next(iter(world.points.values()))
        listed[1] |= {"yours": 2}

    async with shown(tmp_path, scene) as s:
        await s.press("U")
        await s.see("Takes back 2 calls that changed 12 names.", "Takes what you committed after")
        await s.press("up")
        await s.see("Takes back 1 call that changed 0 names.")
        assert "you committed" not in s.text


async def test_an_undo_is_undone_by_the_same_key(tmp_path: Path) -> None:
    async with shown(tmp_path, worked) as s:
        await s.press("U")
        await s.see("Undo in cart")
        await s.press("ctrl+y")
        await s.until("the undo", lambda: s.world.of("undo"))
        await s.press("U")
        await s.see("undo of c30.0 and all after it")
        await s.press("home", "ctrl+y")
        await s.until("the undo of the undo", lambda: len(s.world.of("undo")) == 2)
        assert s.world.of("undo")[1]["to"].startswith("u")


async def test_a_state_that_is_no_longer_kept_is_refused_in_the_dialog(tmp_path: Path) -> None:
    async with shown(tmp_path, worked) as s:
        await s.press("U")
        await s.see("Undo in cart")
        await s.press("end")
        await s.see("This state is no longer kept.")
        await s.press("ctrl+y")
        await s.see("choose a newer one")
        await s.press("escape")
        assert not s.world.of("undo")


async def test_it_works_on_the_session_screen_and_says_when_there_is_nothing(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.add("idle", *work(0))

    async with shown(tmp_path, scene) as s:
        await s.press("enter")
        await s.see("Plan & progress")
        await s.press("U")
        await s.see("idle: nothing to undo")
        s.world.refuse["undo_points"] = {"code": "busy", "message": "a call is running \x1b[2J"}
        await s.press("U")
        await s.see("idle: a call is running ␛[2J")


async def test_a_session_that_did_nothing_offers_no_undo(tmp_path: Path) -> None:
    async with shown(tmp_path, lambda world: world.add("fresh")) as s:
        await s.press("U")
        assert not s.world.of("undo_points")
        assert "session.undo" not in {entry[0] for bar in s.app.screen.query(HelpBar) for entry in bar.shown}


def made(
    call_id: str, changed: int = 0, *, tool: str = "exec", undone: bool = False, expired: bool = False
) -> UndoPoint:
    return UndoPoint(call_id, tool, "", stamp(1), "", undone=undone, changed=changed, expired=expired)


def test_the_first_choice_is_the_newest_call_whose_change_is_still_there() -> None:
    assert first_choice([made("u1", 5, tool="undo"), made("c3", 5, undone=True), made("c2"), made("c1", 2)]) == 3
    assert first_choice([made("c2"), made("c1", 1, expired=True)]) == 0
    assert first_choice([made("c2", 1, expired=True), made("c1")]) == 1


def test_what_is_taken_back_leaves_out_what_is_gone_already() -> None:
    points = [made("c4", 1), made("u1", 5, tool="undo"), made("c3", 5, undone=True), made("c2"), made("c1", 2)]
    what = consequence(points, 4)
    assert (what.calls, what.names) == (3, 8)

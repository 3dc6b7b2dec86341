"""The list paints again what looks different, and nothing that it shows is missed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import msgspec
import pytest
from textual.geometry import Region
from textual.scroll_view import ScrollView

from harness.views.session_views import SessionRow
from tests.tui.app_pilot import shown
from tests.tui.app_world import PUSH, World
from widgets.session.session_list import SessionList

OTHER: dict[str, object] = {
    "state": "failed",
    "group": "Errors",
    "cap_nano": 7,
    "spent_nano": 6,
    "checks_total": 3,
    "plan_total": 4,
    "no_criterion": True,
    "proof": "verified",
    "asks": "question",
    "next": "goes on by itself",
    "detail": "something else",
    "name": "another",
}
"""Values that show, for fields of a row."""


def changed(row: SessionRow, field: str) -> SessionRow:
    """The row with another value in this field."""
    value = getattr(row, field)
    other: object = OTHER.get(field)
    if other is None:
        match value:
            case bool():
                other = not value
            case int():
                other = value + 1
            case str():
                other = value + "x"
            case _:
                return row
    return msgspec.structs.replace(row, **{field: other})


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [2, 30], ids=["two lines each", "one line each"])
async def test_a_row_that_looks_different_is_painted_again(
    tmp_path: Path, sessions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scene(world: World) -> None:
        for n in range(sessions):
            world.add(f"job-{n:02d}")

    async with shown(tmp_path, scene) as s:
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now)  # or the clocks of the rows move by themselves
        shown_list = s.app.screen.query_one(SessionList)
        rows = list(shown_list.rows)
        shows: set[str] = set()
        for base in (rows[0], msgspec.structs.replace(rows[0], state="done", group="Done", checks_total=0)):
            shown_list.set_rows([base, *rows[1:]])
            await s.pilot.pause()
            before = s.grid
            for field in SessionRow.__struct_fields__:
                if field in ("sid", "since", "created"):  # its identity, its place, and its age, which moves by itself
                    continue
                shown_list.set_rows([changed(base, field), *rows[1:]])
                await s.pilot.pause()
                after = s.grid
                shown_list.refresh()
                await s.pilot.pause()
                assert after == s.grid, field
                if after != before:
                    shows.add(field)
                shown_list.set_rows([base, *rows[1:]])
                await s.pilot.pause()
        assert {"name", "state", "asks", "proof"} <= shows


@pytest.mark.parametrize(("size", "head"), [((80, 24), False), ((120, 40), False), ((200, 50), True)])
async def test_a_row_says_what_is_asked_and_a_table_names_its_columns(
    tmp_path: Path, size: tuple[int, int], head: bool
) -> None:
    def scene(world: World) -> None:
        world.ask(world.add("docs"), PUSH, title="git push origin docs/x")
        world.add("core")

    async with shown(tmp_path, scene, size=size) as s:
        await s.see("docs", "git push origin")
        titles = [line for line in s.grid if "NEEDS YOU" in line]
        assert len(titles) == 1
        assert (titles[0].split()[3:8] == ["pass", "±", "spent", "burn", "for"]) is head
        listed = [line[: s.app.screen.query_one(SessionList).region.right] for line in s.grid]
        assert not any("wants to" in line for line in listed[:-4]), "its mark and its group say so"
        if head:
            docs = next(line for line in listed if " docs " in line)
            assert "git push origin docs/x" in docs, "what has room is not cut for the sake of short names"


async def test_a_longer_name_makes_room_in_every_row(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.add("a")
        world.add("b")

    async with shown(tmp_path, scene, size=(200, 50)) as s:
        shown_list = s.app.screen.query_one(SessionList)
        rows = list(shown_list.rows)
        shown_list.set_rows([msgspec.structs.replace(rows[0], name="a-name-that-is-long"), *rows[1:]])
        await s.pilot.pause()
        after = s.grid
        shown_list.refresh()
        await s.pilot.pause()
        assert after == s.grid


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
async def test_one_line_a_session_says_what_it_does_too(tmp_path: Path, size: tuple[int, int]) -> None:
    def scene(world: World) -> None:
        for n in range(24):
            world.ask(world.add(f"job-{n:02d}"), PUSH, title=f"push to origin-{n}")

    async with shown(tmp_path, scene, size=size) as s:
        await s.see("NEEDS YOU 24", "job-03")
        shown_list = s.app.screen.query_one(SessionList)
        line = next(line for line in s.grid if "job-03" in line)[: shown_list.region.right]
        assert "push to or" in line, "its one line says it"


async def test_what_many_sessions_cost_is_not_to_ask_the_screen_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A widget's width is worked out from the styles and places of all that it stands in."""

    def scene(world: World) -> None:
        for n in range(300):
            world.add(f"job-{n:03d}")

    asked = 0
    width = cast("property", ScrollView.scrollable_content_region)

    def region(self: ScrollView) -> Region:
        nonlocal asked
        asked += 1
        return cast("Region", width.__get__(self))

    async with shown(tmp_path, scene) as s:
        monkeypatch.setattr(ScrollView, "scrollable_content_region", property(region))
        listed = s.app.screen.query_one(SessionList)
        listed.set_rows([msgspec.structs.replace(row, detail="elsewhere") for row in listed.rows])
        assert 0 < asked < 10

"""Every list in which something is selected: its keys move the selection, also when the list is longer than the
screen.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.memory.records import Place, Scope
from tests.tui.app_pilot import shown
from tests.tui.app_world import PUSH, World
from widgets.base.entry_list import EntryList
from widgets.base.selectable_lines import SelectingLines
from widgets.fleet.cost_table import CostTable
from widgets.fleet.fleet_table import FleetTable
from widgets.fleet.memory_list import MemoryList, name_of
from widgets.queue.queue_list import QueueList
from widgets.session.session_list import SessionList

_MANY = 40


def many(world: World) -> None:
    for n in range(_MANY):
        session = world.add(f"s{n}")
        if n % 2:
            world.ask(session, PUSH)
        world.remember(Place(Scope.REPOSITORY, "/srv/thing/.git"), f"key{n}", "value")


def _remembered(one: MemoryList) -> object:
    return None if one.selected is None else name_of(one.selected)


LISTS: tuple[tuple[str, type, Callable[..., object]], ...] = (
    ("1", SessionList, lambda one: one.selected),
    ("2", QueueList, lambda one: one.selected),
    ("3", CostTable, lambda one: one.selected),
    ("4", FleetTable, lambda one: one.selected),
    ("5", MemoryList, _remembered),
    ("b", EntryList, lambda one: one.at),
)


def test_no_list_is_left_out() -> None:
    assert set(SelectingLines.__subclasses__()) <= {kind for _, kind, _ in LISTS}


@pytest.mark.parametrize(("key", "kind", "selected"), LISTS)
async def test_first_last_and_by_screens(tmp_path: Path, key: str, kind: type, selected: Callable[..., object]) -> None:
    async with shown(tmp_path, many, size=(80, 24)) as s:
        await s.press(key)
        await s.until(
            "the list", lambda: s.app.screen.query(kind) and selected(s.app.screen.query_one(kind)) is not None
        )
        one = s.app.screen.query_one(kind)
        await s.until("it is longer than the screen", lambda: one.virtual_size.height > one.size.height)
        await s.press("home")
        first = selected(one)
        await s.press("end")
        last = selected(one)
        assert last != first
        assert one.scroll_offset.y > 0
        await s.press("up")
        assert selected(one) not in (first, last)
        await s.press("down")
        assert selected(one) == last, "down from the line above is the last one again"
        await s.press("home")
        assert selected(one) == first
        assert one.scroll_offset.y == 0
        if issubclass(kind, SelectingLines):
            await s.press("pagedown")
            assert selected(one) not in (first, last)
            await s.press("pageup")
            assert selected(one) == first

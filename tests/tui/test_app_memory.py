"""The screen of memory: lessons are believed or refused, memories rolled back, and nothing of them reaches the
terminal as it is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.memory.records import Place, Scope
from tests.tui.app_pilot import SIZES, shown
from tests.tui.app_world import World
from widgets.fleet.memory_list import MemoryList

REPO = Place(Scope.REPOSITORY, "/srv/thing/.git")


def remembered(world: World) -> None:
    world.remember(REPO, "build", "make")
    world.remember(REPO, "build", "POISON \x1b]0;x\x07 push elsewhere\nin two lines")
    world.remember(Place(Scope.USER), "tone", "short answers")
    world.propose(REPO, "tests", "run them with make check", "s1")
    world.propose(Place(Scope.USER), "style", "tabs everywhere", "s1")


@pytest.mark.parametrize("size", SIZES)
async def test_all_of_it_is_seen_and_decided(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, remembered, size=size) as s:
        await s.press("5")
        await s.see(
            "Memory: ? 2 lessons wait for you, 2 remembered",
            "whose",
            "run them with make check",
            "tabs everywhere",
            "short answers",
            "said by",
        )
        assert all(len(line) <= size[0] for line in s.grid)
        assert "\x1b" not in s.text
        await s.press("u")
        await s.see("this is no memory yet")
        await s.pilot.click(MemoryList, offset=(4, 3))
        await s.see("style, for you")
        await s.press("home")
        await s.press("a")
        await s.see("Believe tests", "Every session on this repository is shown it")
        assert not s.world.of("lesson_accept"), "a bare letter decides nothing"
        await s.press("ctrl+y")
        await s.until("it is believed", lambda: s.world.of("lesson_accept"))
        await s.see("· tests", "Memory: ? 1 lesson waits for you, 3 remembered")
        await s.press("home", "x")
        await s.see("Refuse style")
        await s.press(*"no", "enter")
        await s.until("it is refused", lambda: s.world.of("lesson_reject"))
        assert s.world.of("lesson_reject")[0]["why"] == "no"
        await s.until("no lesson waits", lambda: "?" not in {line[:1] for line in s.grid})


async def test_a_poisoned_memory_is_rolled_back(tmp_path: Path) -> None:
    async with shown(tmp_path, remembered) as s:
        await s.press("5")
        await s.see("POISON")
        await s.press("j", "j")
        await s.see("v2 modified", "v1 created")
        await s.press("u")
        await s.see("Roll back build", "nothing: it is forgotten", "1 ")
        await s.press("ctrl+y")
        await s.until("it is rolled back", lambda: s.world.of("memory_rollback"))
        asked = s.world.of("memory_rollback")[0]
        assert asked["to"] == 1
        assert asked["if_sha"], "only what was shown is rolled back"
        await s.see("v3 restored")
        await s.press("d")
        await s.see("Forget build")
        await s.press("ctrl+y")
        await s.until("it is gone", lambda: s.world.of("memory_remove"))
        await s.until("it is not shown", lambda: "build" not in s.text)


async def test_an_empty_memory_says_how_it_fills(tmp_path: Path) -> None:
    async with shown(tmp_path) as s:
        await s.press("5")
        await s.see("Nothing is remembered yet", "memory set")

"""The help bar of every screen in many states: what it offers is accepted, what it greys is refused for that reason."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.screen import Screen

from app.action_table.action import EVERYWHERE
from app.action_table.registry import ACTIONS, show_key
from app.screens.base import WatchScreen
from app.shell.help import KeyLine, KeyTable, lines
from harness.events import types as t
from tests.tui.app_pilot import Shown, shown
from tests.tui.app_world import World, crowd
from widgets.base.help_bar import HelpBar, KeyEntry, arrange, greyed
from widgets.session.session_list import SessionList

pytestmark = pytest.mark.slow

ROUTES: dict[str, tuple[str, ...]] = {
    "floor": (),
    "panes": ("tab",),
    "zoomed": ("tab", "z"),
    "queue": ("2",),
    "card": ("2", "tab"),
    "second request": ("2", "j"),
    "decided": ("2", "h"),
    "costs": ("3",),
    "fleet": ("4",),
    "marked": ("4", "asterisk"),
    "filtered": ("4", "slash", "c", "enter"),
    "typing": ("4", "slash", "c"),
    "timeline": ("4", "T"),
    "memory": ("5",),
    "since": ("b",),
    "session": ("enter",),
    "log": ("enter", "right_square_bracket"),
    "plan": ("enter", *("right_square_bracket",) * 2),
    "diff": ("enter", *("right_square_bracket",) * 3),
    "cost": ("enter", *("right_square_bracket",) * 4),
    "why": ("enter", *("right_square_bracket",) * 5),
    "review": ("d",),
}


def over(world: World) -> None:
    """Everything has ended, in every way."""
    for outcome in ("done", "failed", "stopped"):
        world.log(world.add(f"was-{outcome}"), t.SessionEnded(outcome=outcome, verified=False))


def questions(world: World) -> None:
    """Requests of every kind that offers something else."""
    for kind, options in (
        ("question", ["answer"]),
        ("cap", ["raise", "finish", "stop"]),
        ("in_doubt", ["done", "failed", "unknown"]),
        ("key", ["retry", "stop"]),
    ):
        world.ask(world.add(f"on-{kind}"), kind=kind, title=f"about {kind}", options=options)


SCENES: dict[str, Callable[[World], object]] = {
    "nothing": lambda world: None,
    "a crowd": crowd,
    "all over": over,
    "questions": questions,
}


MOMENTS = (
    "the card has only just appeared; look, then press again",
    "not all that decides was on screen yet; scroll on first",
)


@contextmanager
def explained(s: Shown) -> Iterator[list[str]]:
    """What is said of keys that do nothing."""
    said: list[str] = []
    with patch.object(s.app, "explain", said.append):
        yield said


def bound(s: Shown, entry: KeyEntry) -> bool:
    """The key of the entry runs its action, and nothing before it takes the key."""
    screen: Screen[object] = s.app.screen
    wanted = f"do('{entry.action}')"
    for key in s.app.keys.keys[entry.action]:
        if show_key(key) != entry.key:
            continue
        for _, bindings in screen._binding_chain:
            for binding in bindings.key_to_bindings.get(key, []):
                ident = binding.action.removeprefix("do('").removesuffix("')")
                if binding.action == wanted or (binding.action.startswith("do(") and s.screen.can(ident)):
                    return binding.action == wanted
    return False


async def hold(s: Shown) -> None:
    """What the bar says is true now."""
    screen = s.screen
    if not isinstance(screen, WatchScreen):
        return
    entries = screen.help_entries()
    offered = {entry.action for entry in entries if not entry.why}
    for entry in entries:
        if not entry.why:
            assert bound(s, entry), f"{entry.action} is offered and its key does something else"
    for action in ACTIONS:
        if not {EVERYWHERE, *screen.SCOPES} & set(action.scopes) or not (why := screen.why_not(action.id)):
            continue
        assert action.id not in offered
        calls = len(s.world.calls)
        with explained(s) as said:
            await screen.action_do(action.id)
        assert said == [why], action.id
        assert len(s.world.calls) == calls
        assert s.app.screen is screen


@pytest.mark.parametrize("scene", SCENES)
async def test_what_it_offers_is_accepted_and_all_else_is_refused_with_its_reason(tmp_path: Path, scene: str) -> None:
    async with shown(tmp_path, SCENES[scene], size=(200, 50)) as s:
        for route in ROUTES.values():
            await s.press(*route)
            await s.pilot.pause(0.05)
            await hold(s)
            await s.press("escape", "escape", "1")
            await s.until("the floor", lambda: len(s.app.screen_stack) == 1)
            s.app.screen.query_one(SessionList).focus()


async def test_without_a_supervisor_nothing_that_asks_it_is_offered(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        s.world.stopped_on_purpose()
        await s.world.stop()
        await s.until("it is known", lambda: not s.app.snapshot.live)
        for route in ("floor", "queue", "fleet", "session", "memory"):
            await s.press(*ROUTES[route])
            await s.pilot.pause(0.05)
            offered = {entry.action for entry in s.screen.help_entries() if not entry.why}
            assert not {action.id for action in ACTIONS if action.asks} & offered
            await hold(s)
            await s.press("escape", "1")


@pytest.mark.parametrize("seed", range(3))
async def test_a_walk_along_its_keys_is_never_refused(tmp_path: Path, seed: int) -> None:
    """Keys that it offers are pressed in any order, and what it says stays true wherever they lead."""
    choice = random.Random(seed)
    async with shown(tmp_path, (crowd, questions, over)[seed], size=(200, 50)) as s:
        walked: list[str] = []
        for _ in range(25):
            if not isinstance(s.app.screen, WatchScreen):
                await s.press("escape")
                await s.pilot.pause(0.05)
                continue
            await s.until("the bar is up to date", lambda: not s.screen.keys_asked)
            offered = [e for e in s.screen.help_entries() if not e.why and e.action != "app.detach"]
            entry = choice.choice(offered)
            key = next(k for k in s.app.keys.keys[entry.action] if show_key(k) == entry.key)
            walked.append(entry.action)
            with explained(s) as said:
                await s.press(key)
                await s.pilot.pause(0.05)
            assert said == [], walked
            if isinstance(s.app.screen, WatchScreen):
                await hold(s)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (100, 30), (120, 40), (200, 50)])
async def test_the_help_screen_greys_what_is_refused_with_the_whole_reason(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with shown(tmp_path, over, size=size) as s:
        floor = s.screen
        assert isinstance(floor, WatchScreen)
        found = lines(s.app.keys, floor.SCOPES, floor.refused_now)
        await s.press("question_mark")
        table = s.app.screen.query_one(KeyTable)
        refused = [line for line in found if line.why]
        assert "has ended" in next(line.why for line in refused if line.title == "Stop the session")
        assert not next(line for line in found if line.title == "Help").why
        for line in found:
            if not line.title:
                continue
            table.scroll_to(y=top_of(table, line), animate=False)
            whole = f"(not now: {line.why}) {line.help}" if line.why else line.help
            await s.until(
                f"{line.title} with all its words", lambda w=(line.title, whole): all(x in read(s) for x in w)
            )
        assert all(len(line) <= size[0] for line in s.grid)


def top_of(table: KeyTable, line: KeyLine) -> int:
    """The first of the lines that a line of the help takes up."""
    words = f"{line.keys}  {line.title}"
    return next(
        y for y in range(table.virtual_size.height) if words in table.render_line(y - table.scroll_offset.y).text
    )


def read(s: Shown) -> str:
    """What stands on the help screen, read on from line to line."""
    inside = [line.split("│")[1].strip("▁▂▃▄▅▆▇█ ") for line in s.grid if line.count("│") > 1]
    return " ".join(word for line in inside for word in line.split())


async def test_what_is_refused_for_a_moment_is_greyed_in_its_place(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        await s.press("2")
        await s.until("the card", lambda: s.app.screen.query(HelpBar))
        bar = s.app.screen.query_one(HelpBar)
        await s.until("armed, it is offered", lambda: "queue.approve" in {action for action, _, _ in bar.shown})
        await s.press("j")
        await s.until("greyed", lambda: "queue.approve" in dict(bar.greyed))
        assert dict(bar.greyed)["queue.approve"] in MOMENTS
        await s.until("offered again", lambda: "queue.approve" in {action for action, _, _ in bar.shown})


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (200, 50)])
async def test_the_reason_stands_where_there_is_room_and_a_click_says_it(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, over, size=size) as s:
        await s.press("4", "slash", "x", "x", "x", "enter")
        bar = s.app.screen.query_one(HelpBar)
        await s.until(
            "nothing is left to mark", lambda: "no session" in " ".join(why for _, why in bar.greyed) or size[0] < 200
        )
        line = s.grid[-1]
        assert len(line) == size[0]
        if size[0] == 200:
            (action, why) = bar.greyed[0]
            assert f"({why})" in line
            with explained(s) as said:
                bar.on_click(events.Click(bar, line.index(why), 0, 0, 0, 1, False, False, False))
                await s.until("it is said", lambda: said)
            assert said == [s.screen.why_not(action)]


ENTRY = st.builds(
    KeyEntry, st.text("abc", min_size=1, max_size=3), st.text("xyz", min_size=1, max_size=6), st.text("lmn", max_size=9)
)


@given(st.lists(ENTRY, min_size=1, max_size=12), st.lists(ENTRY, max_size=8), st.integers(20, 220))
def test_it_never_takes_more_cells_than_there_are(works: list[KeyEntry], refused: list[KeyEntry], width: int) -> None:
    kept = arrange(works, width)
    assert kept[-1] == works[-1]
    used = 1 + sum(entry.size for entry in kept)
    assert used <= width or len(kept) == 1
    found = greyed(refused, width - used)
    assert used + sum(e.size + len(why) + bool(why) for e, why in found) <= width + 1
    assert [e for e, _ in found] == refused[: len(found)]


async def test_a_title_and_its_words_stand_apart_however_long_it_is(tmp_path: Path) -> None:
    async with shown(tmp_path, size=(120, 200)) as s:
        await s.press("question_mark")
        await s.see("Start or reconnect the supervisor  ")
        assert any(len(action.title) > 32 for action in ACTIONS)


async def test_keys_that_do_nothing_now_stand_apart_too(tmp_path: Path) -> None:
    async with shown(tmp_path, size=(200, 40)) as s:
        await s.press("5")
        await s.see("a believe (", ")  x refuse")


async def test_nobody_wants_what_has_ended(tmp_path: Path) -> None:
    async with shown(tmp_path, over, size=(120, 40)) as s:
        await s.press("i")
        await s.see("last event", "repository")
        assert "you want it" not in s.text

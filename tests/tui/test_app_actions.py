"""Every action of the registry has somebody who does it, and a key that can do nothing now says why."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest
from textual.widgets._toast import Toast

from app.action_table.action import EVERYWHERE
from app.action_table.registry import ACTIONS, BY_ID
from app.framework.handlers import Handlers
from app.screens.base import WatchScreen
from app.screens.costs import CostsScreen
from app.screens.dialogs.form import Form
from app.screens.dialogs.together import TogetherScreen
from app.screens.fleet import FleetScreen
from app.screens.floor import FloorScreen
from app.screens.launch import LaunchForm
from app.screens.look_back import BackScreen
from app.screens.memory import MemoryScreen
from app.screens.queue import QueueScreen
from app.screens.review import ReviewScreen
from app.screens.rules import RulesScreen
from app.screens.session import SessionScreen
from app.shell.watch_app import WatchApp
from harness.events import types as t
from tests.tui.app_pilot import shown
from tests.tui.app_world import World, crowd

SCREENS: tuple[type[WatchScreen], ...] = (
    FloorScreen,
    QueueScreen,
    CostsScreen,
    SessionScreen,
    FleetScreen,
    MemoryScreen,
    BackScreen,
    ReviewScreen,
    RulesScreen,
    TogetherScreen,
)


def table(of: type[WatchScreen | Form | WatchApp]) -> Handlers:
    """What it does for which action, without a terminal."""
    return of.handlers(of.__new__(of))


OWN = {screen: set(table(screen)) for screen in SCREENS}
EVERY = set(table(WatchApp))
FORM = set(table(Form))
LAUNCH = set(table(LaunchForm))


def test_these_are_all_the_screens() -> None:
    found: set[type] = set()
    todo: list[type] = [WatchScreen]
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        found |= {kind} if getattr(kind, "SCOPES", ()) and kind.__module__.startswith("app.") else set()
    assert found == set(SCREENS)


def test_nobody_does_what_is_not_in_the_registry() -> None:
    assert set().union(EVERY, FORM, LAUNCH, *OWN.values()) <= BY_ID.keys()


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_does_what_belongs_to_its_scopes_and_nothing_else(screen: type[WatchScreen]) -> None:
    mine = {action.id for action in ACTIONS if set(action.scopes) & set(screen.SCOPES)}
    assert mine <= OWN[screen] | EVERY, "a binding without a handler"
    assert OWN[screen] <= mine, "a handler without a binding"


def test_every_action_has_a_handler() -> None:
    anywhere = {action.id for action in ACTIONS if EVERYWHERE in action.scopes}
    assert anywhere <= EVERY
    assert {action.id for action in ACTIONS if "form" in action.scopes} == FORM
    assert {action.id for action in ACTIONS if "launch" in action.scopes} == LAUNCH - FORM
    assert set().union(EVERY, FORM, LAUNCH, *OWN.values()) == BY_ID.keys()


async def test_a_key_that_can_do_nothing_says_why_once(tmp_path: Path) -> None:
    async with shown(tmp_path) as s:
        await s.press("p", "p", "p")
        await s.see("no session is selected")
        assert len(s.app.screen.query(Toast)) == 1
        await s.press("escape")
        await s.see("this is the floor; q detaches")
        for key in ("j", "P", "z"):
            await s.press("escape")
            await s.see("this is the floor; q detaches")
            await s.press(key)
            await s.until("the reason", lambda: s.text.count("there is no session yet") == 1)
        assert not [call for call in s.world.calls if call["op"] == "desire"]


async def test_a_key_with_two_meanings_says_why_only_when_neither_is_possible(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.press("j", "k", "l", "l")
        assert not s.app.screen.query(Toast)
        await s.press("home")
        await s.see("the panes have the focus, not the list")


async def test_what_an_ended_session_cannot_do_is_said_in_words(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.log(world.add("over"), t.SessionEnded(outcome="done", verified=True))

    async with shown(tmp_path, scene) as s:
        for key, why in (
            ("p", "over is done; nothing is going on that could be paused"),
            ("s", "over has ended; it can be continued"),
            ("U", "over has not called a tool yet"),
        ):
            await s.press(key)
            await s.see(why)
        await s.press("enter")
        await s.until("the session", lambda: isinstance(s.app.screen, SessionScreen))
        await s.press("n")
        await s.see("this is for the raw events; v shows them")
        await s.press("v", "n")
        await s.see("nothing was searched for yet")
        await s.press("right_square_bracket", "slash")
        await s.see("this is for the transcript and the log; go to their tabs")


async def test_the_queue_says_what_a_request_does_not_offer(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.press("2")
        await s.see("git push origin main")
        await s.press("plus")
        await s.see("this request is not about a cap")
        await s.press("d")
        await s.see("no call is in doubt in this request")
        await s.press("2")
        await s.see("this is the queue")
        assert not s.world.of("decide")


@pytest.mark.parametrize("scene", [lambda world: None, crowd])
async def test_every_action_is_possible_or_says_why_on_every_screen(tmp_path: Path, scene: object) -> None:
    async with shown(tmp_path, scene) as s:  # type: ignore[arg-type]
        for keys in ((), ("2",), ("3",), ("4",), ("5",), ("escape", "enter"), ("d",)):
            await s.press(*keys)
            await s.pilot.pause(0.05)
            possible = {action.id for action in s.screen.active_actions()}
            for action in ACTIONS:
                handler = s.screen.handler(action.id)
                if handler is not None and {EVERYWHERE, *s.screen.SCOPES} & set(action.scopes):
                    assert (handler.why_not() == "") == (action.id in possible), action.id


@pytest.mark.parametrize("preset", ["tmux", "zellij"])
async def test_a_key_that_a_preset_gives_to_a_second_action_keeps_its_first_meaning(
    tmp_path: Path, preset: str
) -> None:
    async with shown(tmp_path, crowd, preset=preset) as s:
        floor = s.screen
        assert isinstance(floor, FloorScreen)
        first = floor.list.selected
        await s.press("j")
        assert floor.list.selected != first
        await s.press("up")
        assert floor.list.selected == first
        await s.press("right")
        assert floor.in_panes


async def test_a_sequence_that_can_do_nothing_says_why(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, preset="tmux") as s:
        await s.press("ctrl+b", "left")
        await s.see("the list has the focus, not the panes")


async def test_what_is_selected_goes_to_the_clipboard_and_how_much_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    async with shown(tmp_path, crowd) as s:
        sent: list[str] = []
        monkeypatch.setattr(s.app, "to_terminal", sent.append)

        async def copied(key: str) -> str:
            before = len(sent)
            await s.press(key)
            await s.until("the clipboard", lambda: len(sent) > before)
            return b64decode(sent[-1].removeprefix("\x1b]52;c;").removesuffix("\a")).decode()

        row = s.screen.target  # type: ignore[attr-defined]
        assert await copied("y") == f"{row.name}  {row.sid}  {row.state}  {row.detail}"
        await s.see("copied its line")
        assert await copied("Y") == row.sid
        await s.press("2")
        await s.see("git push origin main")
        card = await copied("y")
        assert "wants to push to origin" in card
        await s.see(f"copied the card: {len(card):,} characters")
        assert await copied("Y") in {a.approval_id for a in s.app.snapshot.approvals}
        await s.press("3")
        await s.press("y")
        await s.see("nothing is selected that could be copied")

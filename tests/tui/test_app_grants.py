"""A rule from a request on the screen: previewed before it can be made, armed as a decision, typed where it is
critical.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from app.screens.dialogs.granting import GrantDialog
from app.screens.dialogs.together import TogetherScreen
from app.screens.queue import QueueScreen
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import PUSH, World, stamp
from tests.tui.test_app_queue import arm, one, queue

MARK = "\x1b[31mred\u202e"


def form(s: Shown) -> GrantDialog:
    assert isinstance(s.app.screen, GrantDialog)
    return s.app.screen


async def opened(s: Shown) -> None:
    await s.press("2")
    await arm(s)
    await s.press("A")
    await s.see("A rule from a request of", "exactly so")


@pytest.mark.parametrize("size", SIZES)
async def test_it_says_what_it_covers_and_makes_that(tmp_path: Path, size: tuple[int, int]) -> None:
    def hostile(world: World) -> None:
        one(world)
        world.words = [f"exec: {MARK} [bold]x[/]", *(f"effect network:host{n}.test" for n in range(30))]

    async with shown(tmp_path, hostile, size=size) as s:
        await opened(s)
        assert all(len(line) <= size[0] for line in s.grid)
        for words in (
            "For this",
            "[session] repository  fleet",
            "Ends after",
            "Or after",
            "May differ",
            "ctrl+y make the rule",
            "␛[31mred⟨U+202E⟩",
        ):
            assert words in s.text, f"{words} in\n{s.text}"
        assert s.app.no_control.hits == 0
        await s.press(*["delete"] * 8, "r", "tab", *["delete"] * 4, "2", "d", "tab", *["delete"] * 3, "5")
        await s.until("that is looked up", lambda: (s.world.of("grant_preview") or [{}])[-1].get("count") == 5)
        await s.until("and shown", lambda: form(s).looked_at.get("count") == 5)
        await s.press("ctrl+y")
        await s.until("it is made", lambda: s.world.of("grant"))
        (sent,) = s.world.of("grant")
        (view,) = s.world.approvals()
        assert (sent["scope"], sent["expires_s"], sent["count"]) == ("repository", 2 * 86_400, 5)
        assert (sent["first"], sent["under"], sent["action_hash"]) == (0, "", view.action_hash)
        await s.see("rule g0000000 stands")


async def test_it_takes_what_was_looked_at_and_nothing_else(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2")
        await arm(s)
        await s.press("A")
        await s.see("Of 7 requests it would have covered 1; 1 waits and runs now")
        await s.press("tab", "tab", "tab", "2")
        await s.see("a script gets a rule for exactly this")
        await s.press("ctrl+y")
        await s.see("look at what this covers first")
        await s.press("backspace", "x", "ctrl+y")
        await s.see("May differ: 'x' is not a whole number")
        await s.press("escape")
        assert not s.world.of("grant")


async def test_it_looks_once_as_it_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.screens.typing_rest.TYPING_S", 0.001)
    async with shown(tmp_path, one) as s:
        await opened(s)
        await s.pilot.pause(0.05)
        assert len(s.world.of("grant_preview")) == 1
        assert form(s).looked_at


async def test_what_is_critical_is_typed(tmp_path: Path) -> None:
    def critical(world: World) -> None:
        one(world)
        world.critical = True

    async with shown(tmp_path, critical) as s:
        await opened(s)
        await s.see("Type its name", "Critical: no rule covers this")
        await s.press("ctrl+y")
        await s.see("type the name of its session")
        await s.press("tab", "tab", "tab", "tab", *"cart-discount", "ctrl+y")
        await s.see("rule g0000000 stands")


async def test_a_rule_is_no_way_around_looking(tmp_path: Path) -> None:
    async with shown(tmp_path, one, size=(80, 24)) as s:
        await s.press("2", "A")
        assert not s.world.of("grant_preview")
        assert not isinstance(s.app.screen, GrantDialog)


def pushing(ref: str) -> dict[str, Any]:
    """A push to a ref of its own."""
    argv = ["git", "push", "origin", f"HEAD:{ref}"]
    changed = {"argv": argv, "refspecs": [["9" * 40, ref, "8" * 40]], "effects": [f"push:origin {ref}"]}
    return PUSH | changed | {"input": {"argv": argv, "access": "network"}}


def three(world: World) -> None:
    for name in ("alpha", "beta", f"gamma{MARK}"):
        world.ask(world.add(name), PUSH, alike="g", same="s", risk="medium", ts=stamp(60))
    world.ask(world.add("delta"), pushing("refs/heads/delta"), alike="g", same="d", risk="medium", ts=stamp(60))
    world.ask(world.add("apart"), PUSH, risk="medium", ts=stamp(50))


def looking(s: Shown) -> TogetherScreen:
    assert isinstance(s.app.screen, TogetherScreen)
    return s.app.screen


async def look_at_all(s: Shown) -> str:
    """Open the card of all that are alike and look at it to its end; what stood on it."""
    await s.press("2")
    await s.see("alike")
    await s.press("ctrl+a")
    await s.see("each decided alone")
    text = s.text
    while not looking(s).card.fully_shown:
        assert not looking(s).arming.armed(time.monotonic())
        await s.press("pagedown")
        text += s.text
    await s.until("armed", lambda: looking(s).arming.armed(time.monotonic()))
    return text


@pytest.mark.parametrize("size", SIZES)
async def test_requests_that_are_alike_are_one_item_and_decided_at_once(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, three, size=size) as s:
        await s.press("2")
        await s.see("4 alike")
        assert len(queue(s).requests.views) == 2
        assert all(len(line) <= size[0] for line in s.grid)
        await s.press("u")
        await s.until("each has its line", lambda: len(queue(s).requests.views) == 5)
        await s.press("u")
        await s.until("they are one again", lambda: len(queue(s).requests.views) == 2)
        text = await look_at_all(s)
        for words in ("THE SAME FOR ALL 4", "1 OF 4", "4 OF 4", "delta wants to push", "HEAD:refs/heads/delta"):
            assert words in text, f"{words} in\n{text}"
        assert "␛[31mred⟨U+202E⟩" in text
        assert not s.world.of("decide")
        await s.press("ctrl+y")
        await s.until("each is decided", lambda: len(s.world.of("decide")) == 4)
        sent = s.world.of("decide")
        assert {one["decision"] for one in sent} == {"allow"}
        assert len({one["approval_id"] for one in sent}) == 4
        assert len({one["action_hash"] for one in sent}) == 4, "each for its own action"
        assert len({one["shown_hash"] for one in sent}) == 1, "one card was seen"
        await s.until("the other stays", lambda: len(s.world.approvals()) == 1)


@pytest.mark.parametrize("how", ["withdrawn", "changed"])
async def test_one_that_goes_or_changes_while_all_are_looked_at_disarms(tmp_path: Path, how: str) -> None:
    async with shown(tmp_path, three) as s:
        await look_at_all(s)
        session, view = next(
            (session, view)
            for session in s.world.sessions.values()
            for view in session.views.values()
            if view.session_name == "delta"
        )
        del session.views[view.approval_id]
        if how == "changed":
            s.world.ask(session, pushing("refs/heads/other"), alike="g", same="d", risk="medium", ts=stamp(60))
        s.world.push_approvals()
        await s.see("1 request changed or went while you looked", "THE SAME FOR ALL 3")
        await s.press("ctrl+y")
        assert not s.world.of("decide")
        while not looking(s).card.fully_shown:
            await s.press("pagedown")
        await s.until("armed anew", lambda: looking(s).arming.armed(time.monotonic()))
        await s.press("ctrl+y")
        await s.until("the others are decided", lambda: len(s.world.of("decide")) == 3)
        assert view.approval_id not in {one["approval_id"] for one in s.world.of("decide")}


def two(world: World) -> None:
    for name in ("alpha", "beta"):
        world.ask(world.add(name), PUSH, alike="g", same="s", risk="medium", ts=stamp(60))


def withdraw(s: Shown, *names: str) -> None:
    for session in s.world.sessions.values():
        for view in [v for v in session.views.values() if v.session_name in names]:
            del session.views[view.approval_id]
    s.world.push_approvals()


@pytest.mark.parametrize("left", [1, 0])
async def test_a_group_that_goes_below_another_screen_takes_nothing_else_away(tmp_path: Path, left: int) -> None:
    async with shown(tmp_path, two) as s:
        await look_at_all(s)
        group = looking(s)
        await s.press("question_mark")
        over = s.app.screen
        assert over is not group
        withdraw(s, "beta", *(() if left else ("alpha",)))
        await s.until("it is known", lambda: len(s.app.snapshot.approvals) == left)
        await s.settle()
        assert s.app.screen is over, "help stays"
        await s.press("escape")
        await s.until("the queue", lambda: isinstance(s.app.screen, QueueScreen))
        await s.see("changed or went while you looked")
        await s.press("ctrl+y")
        assert not s.world.of("decide")


async def test_a_toast_from_elsewhere_covers_no_line_of_the_group(tmp_path: Path) -> None:
    async with shown(tmp_path, two) as s:
        await look_at_all(s)
        group = looking(s)
        await s.screen.action_do("app.help")
        await s.until("help is on top", lambda: s.app.screen is not group)
        s.app.notify("X" * 300, timeout=60)
        await s.until("a toast", lambda: list(s.app.screen.query("Toast")))
        await s.press("escape")
        await s.until("the group again", lambda: s.app.screen is group)
        await s.until("no toast", lambda: not list(s.app.screen.query("Toast")))


async def test_a_group_that_went_before_its_card_came_opens_nothing(tmp_path: Path) -> None:
    async with shown(tmp_path, two) as s:
        await s.press("2")
        await s.see("alike")
        queue = s.app.screen
        assert isinstance(queue, QueueScreen)
        view = queue.deciding
        withdraw(s, "alpha", "beta")
        s.app.push_screen(TogetherScreen(list(s.app.snapshot.approvals)))
        await s.until("the queue is empty", lambda: not s.app.snapshot.approvals)
        await s.until("the queue", lambda: s.app.screen is queue)
        assert view is queue.deciding
        assert not s.world.of("decide")


async def test_what_comes_while_all_are_looked_at_is_not_decided(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await look_at_all(s)
        late = s.world.ask(s.world.add("late"), PUSH, alike="g", same="s", risk="medium", ts=stamp(1))
        s.world.push_approvals()
        await s.until("it is known", lambda: s.app.snapshot.approval(late.approval_id))
        await s.until("armed", lambda: looking(s).arming.armed(time.monotonic()))
        await s.press("ctrl+y")
        await s.until("the four are decided", lambda: len(s.world.of("decide")) == 4)
        assert late.approval_id not in {one["approval_id"] for one in s.world.of("decide")}


async def test_what_is_critical_is_never_decided_with_others(tmp_path: Path) -> None:
    def critical(world: World) -> None:
        for name in ("alpha", "beta"):
            world.ask(world.add(name), PUSH, alike="g", risk="critical", ts=stamp(60))

    async with shown(tmp_path, critical) as s:
        await s.press("2")
        await s.see("2 alike")
        await s.press("ctrl+a")
        await s.see("what is critical is decided one by one")
        assert not s.world.of("decide")


async def test_a_selection_stays_when_one_like_it_comes_and_follows_its_like_when_it_goes(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await s.press("2")
        await s.see("4 alike")
        chosen = queue(s).requests.selected
        s.world.ask(s.world.add("first"), PUSH, alike="g", same="s", risk="critical", ts=stamp(9000))
        s.world.push_approvals()
        await s.see("5 alike")
        assert queue(s).requests.selected == chosen
        session = next(x for x in s.world.sessions.values() if chosen in x.views)
        del session.views[chosen]
        s.world.push_approvals()
        await s.until("another is selected", lambda: queue(s).requests.selected not in ("", chosen))
        view = queue(s).requests.group[0]
        assert (view.alike, len(queue(s).requests.group)) == ("g", 4)


async def test_one_alone_is_not_decided_with_others(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2")
        await arm(s)
        await s.press("ctrl+a")
        await s.see("no other open request is the same")
        await s.press("u")
        await s.see("no other open request is like this one")
        assert not s.world.of("decide")

"""A rule from a request on the screen: previewed before it can be made, armed as a decision, typed where it is
critical.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from app.screens.granting import GrantDialog
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


@pytest.mark.parametrize("size", [(60, 20), *SIZES])
async def test_it_says_what_it_covers_and_makes_that(tmp_path: Path, size: tuple[int, int]) -> None:
    def hostile(world: World) -> None:
        one(world)
        world.words = [f"exec: {MARK} [bold]x[/]", *(f"effect network:host{n}.test" for n in range(30))]

    async with shown(tmp_path, hostile, size=size) as s:
        await opened(s)
        assert all(len(line) <= size[0] for line in s.grid)
        for words in ("For this", "Ends after", "Or after", "May differ", "ctrl+y make the rule", "␛[31mred⟨U+202E⟩"):
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
    monkeypatch.setattr("app.screens.granting._TYPING_S", 0.001)
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


def three(world: World) -> None:
    for name in ("alpha", "beta", f"gamma{MARK}"):
        world.ask(world.add(name), PUSH, alike="g", same="s", ts=stamp(60))
    world.ask(world.add("delta"), PUSH, alike="g", same="other", ts=stamp(60))
    world.ask(world.add("apart"), PUSH, ts=stamp(50))


@pytest.mark.parametrize("size", [(60, 20), *SIZES])
async def test_the_same_request_of_three_is_one_item_and_decided_at_once(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, three, size=size) as s:
        await s.press("2")
        await s.see("4 alike")
        assert len(queue(s).requests.views) == 2
        assert all(len(line) <= size[0] for line in s.grid)
        await s.press("u")
        await s.until("each has its line", lambda: len(queue(s).requests.views) == 5)
        await s.press("u")
        await s.until("they are one again", lambda: len(queue(s).requests.views) == 2)
        mine = queue(s).view
        assert mine is not None
        if mine.same != "s":
            queue(s).choose(next(v.approval_id for v in s.world.approvals() if v.same == "s"))
        await arm(s)
        await s.press("ctrl+a")
        await s.see("Approve 3 requests", "approve all of them", "␛[31mred⟨U+202E⟩")
        assert not s.world.of("decide")
        await s.press("ctrl+y")
        await s.until("each is decided", lambda: len(s.world.of("decide")) == 3)
        sent = s.world.of("decide")
        assert {(one["decision"], one["approval_id"]) for one in sent} == {
            ("allow", one["approval_id"]) for one in sent
        }
        assert len({one["approval_id"] for one in sent}) == 3
        assert sum(bool(one.get("shown_hash")) for one in sent) == 1, "one card was seen"
        await s.until("the others stay", lambda: len(s.world.approvals()) == 2)


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

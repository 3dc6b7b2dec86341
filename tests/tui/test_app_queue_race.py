"""Ten thousand requests arrive and go while keys are pressed: a decision is always about what was painted, by its own
hash.
"""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual import events
from textual.keys import key_to_character

from harness.domain.actions.action import action_hash
from harness.views.session_views import ApprovalView
from tests.tui.app_pilot import Shown, shown
from tests.tui.app_world import PUSH, World, stamp
from tests.tui.test_app_queue import arm, queue
from widgets.card.card_text import shown_hash

BURSTS = 40
EACH = 250
OPEN = 100
_MARK = re.compile(r"request-(\d{6})-x")
_KEYS = ("j", "k", "ctrl+y", "end", "home", "u", "ctrl+a", "pagedown", "ctrl+y", "escape", "2")


class Flood:
    """Requests that differ in one word of their command and in nothing that a list shows."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sessions = [world.add(f"busy-{n}") for n in range(8)]
        self.made: dict[int, ApprovalView] = {}
        self._like = world.ask(self.sessions[0], PUSH, risk="medium", ts=stamp(60))
        self.sessions[0].views.clear()
        self._random = random.Random(7)

    def more(self, count: int) -> None:
        """So many new ones, among them some that are alike, some of them of higher risk than all before."""
        for number in range(len(self.made), len(self.made) + count):
            session = self._random.choice(self.sessions)
            action = PUSH | {"argv": ["git", "push", "origin", f"request-{number:06d}-x"], "session": session.sid}
            letters = "".join(chr(ord("a") + int(digit)) for digit in f"{number:06d}")
            view = msgspec.structs.replace(
                self._like,
                approval_id=f"a{letters}x",
                sid=session.sid,
                session_name=session.state.name,
                title="git push origin",
                action=action,
                action_hash=action_hash(action),
                risk=self._random.choice(["low", "medium", "high"]),
                alike=self._random.choice(["", "", "g", "h"]),
                ts=stamp(self._random.randrange(1, 100_000)),
            )
            self.made[number] = view
            session.views[view.approval_id] = view

    def fewer(self, left: int, keep: str) -> None:
        """Withdraw some, never ``keep``, until no more than so many others are open."""
        open_ = [(session, name) for session in self.sessions for name in session.views if name != keep]
        for session, name in self._random.sample(open_, max(0, len(open_) - left)):
            session.views.pop(name, None)


def _painted(s: Shown) -> set[int]:
    """The requests whose command is on screen: the card's, as lists do not show it."""
    return {int(found) for found in _MARK.findall(s.text)}


def _press(s: Shown, key: str) -> None:
    """As the terminal does it: the key waits behind whatever is being done."""
    event = events.Key(key, key_to_character(key))
    event.set_sender(s.app)
    s.app.post_message(event)


@pytest.mark.slow
async def test_ten_thousand_inserts_and_no_wrong_decision(tmp_path: Path) -> None:
    floods: list[Flood] = []

    def scene(world: World) -> None:
        floods.append(Flood(world))
        floods[0].more(30)

    async with shown(tmp_path, scene, size=(120, 40)) as s:
        (flood,) = floods
        dice = random.Random(11)
        await s.press("2")
        await s.until("a card", lambda: _painted(s))
        done: list[dict[str, Any]] = []
        pressed: list[tuple[set[int], ApprovalView]] = []
        for burst in range(BURSTS):
            armed = burst % 8 == 0
            if armed:
                flood.world.push_approvals()
                await arm(s)
            await asyncio.sleep(0.04)  # the pace of a hand
            painted = _painted(s)
            looked = queue(s).view
            flood.more(EACH)
            flood.fewer(OPEN, looked.approval_id if armed and looked is not None else "")
            flood.world.push_approvals()  # is on its way while the key is
            key = "ctrl+y" if armed else dice.choice(_KEYS)
            if key == "ctrl+y" and looked is not None:
                pressed.append((painted, looked))
            _press(s, key)
            await s.pilot.pause(0.02)
            if armed:
                await s.until("what was seen is decided", lambda: len(s.world.of("decide")) > len(done))
            for sent in s.world.of("decide")[len(done) :]:
                number = next(n for n, view in flood.made.items() if view.approval_id == sent["approval_id"])
                assert sent["action_hash"] == flood.made[number].action_hash
                # it may have been on its way while the key after it was pressed
                meant = [view for numbers, view in pressed[-2:] if number in numbers]
                assert meant, f"burst {burst}: {sent} while {pressed[-2:]} was painted"
                assert sent["shown_hash"] in [shown_hash(view) for view in meant]
            done.extend(s.world.of("decide")[len(done) :])
            if s.app.screen.is_modal:
                _press(s, "escape")
                await s.until("the question closed", lambda: not s.app.screen.is_modal)
            if type(s.app.screen).__name__ != "QueueScreen":
                await s.press("2")
            await s.until("a card", lambda: queue(s).view is None or _painted(s))
        assert len(flood.made) >= BURSTS * EACH
        assert len(done) >= BURSTS // 8


@pytest.mark.parametrize("key", ["z", "r", "w", "s", "e", "A", "ctrl+y", "enter"])
async def test_no_key_acts_on_what_took_the_place_of_what_was_seen(tmp_path: Path, key: str) -> None:
    def thirty(world: World) -> None:
        for n in range(30):
            world.ask(
                world.add(f"asks-{n:02d}"), PUSH, risk="medium", ts=stamp(60 + n), alike="g" if key == "ctrl+a" else ""
            )

    async with shown(tmp_path, thirty, size=(120, 40)) as s:
        await s.press("2")
        for _ in range(3):
            await arm(s)
            seen = queue(s).view
            assert seen is not None
            (asked,) = (one for one in s.world.sessions.values() if one.sid == seen.sid)
            asked.views.clear()
            s.world.push_approvals()
            await s.until("another in its place", lambda seen=seen: queue(s).view not in (None, seen))
            _press(s, key)
            await s.until("it is said", lambda: "taken the place" in s.text or "only just appeared" in s.text)
            assert type(s.app.screen).__name__ == "QueueScreen"
            assert not {call["op"] for call in s.world.calls} & {"decide", "defer", "grant", "snooze"}
        await arm(s)
        before = len(s.world.calls)
        _press(s, key)
        await s.until("it acts", lambda: type(s.app.screen).__name__ != "QueueScreen" or len(s.world.calls) > before)


async def test_what_one_did_away_with_makes_room_without_a_wait(tmp_path: Path) -> None:
    def three(world: World) -> None:
        for n in range(3):
            world.ask(world.add(f"asks-{n}"), PUSH, risk="medium", ts=stamp(60 + n))

    async with shown(tmp_path, three, size=(120, 40)) as s:
        await s.press("2")
        await arm(s)
        first = queue(s).view
        await s.press("z")
        await s.until("it is put last", lambda: queue(s).view != first or s.world.of("defer"))
        await s.press("z")
        await s.until("both are", lambda: len(s.world.of("defer")) == 2)

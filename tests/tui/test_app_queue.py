"""The queue: nothing is ever decided by accident, and a decision is always for what was on screen."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual import events
from textual.keys import key_to_character

from app.input.arming import ARM_S
from app.screens.queue import QueueScreen
from harness.domain.actions.action import action_hash
from harness.events import types as t
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import NANO, PUSH, SCENES, World, crowd, stamp
from widgets.card.card_text import shown_hash


def one(world: World) -> None:
    world.ask(world.add("cart-discount"), PUSH, claim="all tests pass", ts=stamp(60))


def queue(s: Shown) -> QueueScreen:
    assert isinstance(s.app.screen, QueueScreen)
    return s.app.screen


async def arm(s: Shown) -> None:
    """Look at all of the card, and wait until it was whole for half a second."""
    await s.until("the card painted", lambda: queue(s).card.size.height)
    while not queue(s).card.fully_shown and queue(s).card.scroll_offset.y < queue(s).card.max_scroll_y:
        await s.press("pagedown")
    await s.until("the card armed", lambda: queue(s).arming.armed(time.monotonic()))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scene", ["empty", "crowd", "hostile"])
async def test_every_size_shows_the_list_and_the_card(tmp_path: Path, scene: str, size: tuple[int, int]) -> None:
    async with shown(tmp_path, SCENES[scene], size=size) as s:
        await s.press("2")
        await s.see("Nothing needs you" if scene == "empty" else "RISK", "? help")
        assert all(len(line) <= size[0] for line in s.grid)
        assert s.app.no_control.hits == 0


@pytest.mark.parametrize("width", [80, 97, 120, 150])
async def test_no_cell_of_a_wrapped_line_is_hidden(tmp_path: Path, width: int) -> None:
    old = "".join("0123456789abcdef"[i % 16] for i in range(40))
    long = "".join(chr(ord("A") + i % 26) for i in range(400))
    action = PUSH | {"argv": ["git", long], "refspecs": [["9" * 40, "refs/heads/main", old]]}
    async with shown(tmp_path, lambda world: world.ask(world.add("x"), action), size=(width, 60)) as s:
        await s.press("2")
        await s.see("WILL RUN")
        await s.press("i")
        await s.see("▾ ", old[-20:])
        card = queue(s).card.region
        text = "".join(line[card.x : card.right].strip().removeprefix("↪ ") for line in s.grid[card.y : card.bottom])
        assert long in text
        assert old in text


async def test_approving_takes_a_chord_and_half_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown(tmp_path, one) as s:
        view = s.world.approvals()[0]
        # a busy machine may take half a second between two keys of a test
        monkeypatch.setattr("app.input.arming.ARM_S", 60.0)
        await s.press("2")
        await s.press("a", "y", "enter", "escape", "Y", "A")
        await s.press("2", "ctrl+y")
        assert not s.world.of("decide")
        await s.see("look, then press again")
        monkeypatch.undo()
        await arm(s)
        await s.see("ctrl+y approves exactly this, once")
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        (sent,) = s.world.of("decide")
        assert sent["decision"] == "allow"
        assert sent["action_hash"] == view.action_hash == action_hash(view.action or {})
        assert sent["shown_hash"] == shown_hash(view)
        await s.see("Nothing needs you")


class Clock:
    """The queue's clock, moved by the test: a busy machine may take half a second between two keys."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


async def test_a_held_or_replayed_chord_never_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("app.screens.dialogs.card_screen.time", clock)
    monkeypatch.setattr("app.shell.watch_app.WatchApp.input_age", lambda _: 0.0)  # which is by the real clock
    async with shown(tmp_path, one) as s:
        await s.press("2")
        await s.until("the whole card seen", lambda: queue(s).arming.since is not None)
        for _ in range(20):
            clock.now += ARM_S / 5
            await s.press("ctrl+y")
        assert not s.world.of("decide")
        clock.now += 2 * ARM_S
        await s.press("ctrl+y")
        await s.until("the decision, half a second after the last key", lambda: s.world.of("decide"))


async def test_keys_faster_than_a_person_never_decide(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2")
        await arm(s)
        now = time.monotonic()
        for offset, key in ((0.0, "down"), (0.01, "ctrl+y")):
            event = events.Key(key, None)
            event.time = now + offset
            s.app.post_message(event)
        await s.see("faster than a person types")
        assert not s.world.of("decide")


async def test_a_key_counts_for_what_was_on_screen_when_it_was_pressed(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2")
        await arm(s)
        late = events.Key("ctrl+y", None)
        # made before the card had been looked at, handled after
        late.time = (queue(s).arming.since or 0.0) + ARM_S / 2
        s.app.post_message(late)
        await s.see("look, then press again")
        assert not s.world.of("decide")


async def test_a_paste_never_decides(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2")
        await arm(s)
        s.app.screen.post_message(events.Paste("\x19y\r\n\x19"))
        s.app.post_message(events.Paste("\x19"))
        await s.pilot.pause(0.1)
        assert not s.world.of("decide")
        assert len(s.app.screen_stack) == 2


async def test_a_long_card_must_be_seen_to_its_end(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.ask(
            world.add("padded"),
            PUSH | {"argv": ["sh", "-c", "true" + " " * 5000 + "; rm -rf /"] + ["x"] * 60},
            ts=stamp(60),
        )

    async with shown(tmp_path, scene, size=(80, 24)) as s:
        await s.press("2")
        await s.see("more below")
        await s.pilot.pause(2 * ARM_S)
        await s.press("ctrl+y")
        await s.see("scroll on first")
        assert not s.world.of("decide")
        await arm(s)
        await s.see("approves exactly this, once")
        assert "scroll on first" not in s.text, "what is done is not asked for any more"
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))


async def test_a_page_key_right_behind_the_one_that_opens_the_queue_skips_nothing(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.ask(world.add("long"), PUSH, claim="because\n" * 20, diff="\n".join(f"+line {n}" for n in range(60)))

    async with shown(tmp_path, scene, size=(80, 24)) as s:
        for key in ("2", "space"):
            pressed = events.Key(key, key_to_character(key))
            pressed.set_sender(s.app)
            s.app.post_message(pressed)
        await s.see("more below")
        assert queue(s).card.scroll_offset.y == 0, "no page is turned that was not painted"
        await arm(s)
        await s.see("approves exactly this, once")


async def test_a_resize_shows_the_card_anew_and_disarms_it(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2")
        await arm(s)
        await s.pilot.resize_terminal(80, 24)
        await s.see("more below")
        await s.press("ctrl+y")
        assert not s.world.of("decide")


async def test_new_requests_never_move_the_selection_or_take_the_focus(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2")
        await arm(s)
        chosen = queue(s).requests.selected
        focused = s.app.focused
        for index in range(40):
            world_session = s.world.add(f"noisy-{index}")
            s.world.ask(
                world_session, PUSH | {"argv": ["rm", "-rf", f"/{index}"]}, risk="critical", ts=stamp(100_000 - index)
            )
            s.world.push_rows(world_session)
            s.world.push_approvals()
            await s.pilot.pause(0.005)
        await s.until("all of them listed", lambda: len(queue(s).requests.views) == 41)
        assert queue(s).requests.selected == chosen
        assert s.app.focused is focused
        assert queue(s).requests.views[0].approval_id != chosen
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        assert s.world.of("decide")[0]["approval_id"] == chosen


@pytest.mark.parametrize("moved", [False, True])
async def test_a_stale_request_is_followed_by_the_one_that_is_asked_anew(tmp_path: Path, moved: bool) -> None:
    def scene(world: World) -> None:
        one(world)
        for name in ("second", "third"):
            world.ask(world.add(name), PUSH, ts=stamp(30))

    async with shown(tmp_path, scene) as s:
        await s.press("2")
        await arm(s)
        session = next(x for x in s.world.sessions.values() if x.state.name == "cart-discount")
        (view,) = session.views.values()
        queue(s).choose(view.approval_id)
        await s.see("cart-discount wants to push")
        await arm(s)
        s.world.refuse["decide"] = {"code": "stale", "message": "what it would run on has changed"}
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        s.world.refuse.clear()
        del session.views[view.approval_id]
        s.world.push_approvals()
        await s.until("the request gone", lambda: queue(s).view and queue(s).view.approval_id != view.approval_id)
        between = queue(s).view
        assert between is not None
        if moved:
            await s.press("end" if queue(s).requests.views[-1].approval_id != between.approval_id else "home")
        chosen = queue(s).requests.selected
        other = (view.action or {}) | {"argv": ["git", "push", "--force", "origin", "main"]}
        again = msgspec.structs.replace(
            view,
            approval_id="aagainxy",
            action=other,
            action_hash=action_hash(other),
            detail={"changed": ["argv: git push → git push --force"]},
        )
        session.views[again.approval_id] = again
        s.world.push_approvals()
        await s.see("changed since you looked: ")
        assert queue(s).requests.selected == (chosen if moved else "aagainxy")
        if moved:
            return
        await s.see("CHANGED SINCE YOU LOOKED", "argv: git push → git push --force")
        await s.press("ctrl+y")
        assert len(s.world.of("decide")) == 1
        await arm(s)
        await s.press("ctrl+y")
        await s.until("the second decision", lambda: len(s.world.of("decide")) == 2)
        assert s.world.of("decide")[1]["action_hash"] == action_hash(other)


async def test_keys_that_turn_a_page_are_always_the_cards(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        for n in range(8):
            long = PUSH | {"env": {f"NAME_{i}": "x" * 70 for i in range(30)}}
            world.ask(world.add(f"many-{n}"), long, ts=stamp(60))

    async with shown(tmp_path, scene, size=(80, 24)) as s:
        await s.press("2")
        await s.see("wants to push")
        for focused in ("QueueList", "ApprovalCard"):
            queue(s).query_one(focused).focus()
            for key in ("pagedown", "space", "ctrl+d"):
                queue(s).card.scroll_to(0, 0, animate=False)
                chosen = queue(s).requests.selected
                await s.until("the top", lambda: queue(s).card.scroll_offset.y == 0)
                await s.pilot.pause()
                await s.press(key)
                await s.until(f"{key} turned the card", lambda: queue(s).card.scroll_offset.y > 0)
                assert queue(s).requests.selected == chosen
        queue(s).query_one("QueueList").focus()
        await s.press("end")
        await s.until("the last", lambda: queue(s).requests.selected == queue(s).requests.views[-1].approval_id)


async def test_what_approving_does_is_called_by_its_name(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.ask(world.add("failed"), kind="restart", title="it fails", options=["retry", "stop"], ts=stamp(60))

    async with shown(tmp_path, scene, size=(120, 40)) as s:
        await s.press("2")
        await s.see("ctrl+y try again", "tries again")
        assert "approve" not in s.grid[-1]


async def test_critical_needs_the_name_typed(tmp_path: Path) -> None:
    async with shown(tmp_path, lambda world: world.ask(world.add("prod"), PUSH, risk="critical", ts=stamp(60))) as s:
        await s.press("2")
        await arm(s)
        await s.press("ctrl+y")
        await s.see("Type the session's name")
        await s.press("ctrl+y")
        await s.see("type prod to approve this")
        await s.press("p", "r", "o", "d", "enter")
        assert not s.world.of("decide")
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))


async def test_what_is_critical_needs_the_name_typed_edited_too(tmp_path: Path) -> None:
    from textual.widgets import TextArea

    async with shown(tmp_path, lambda world: world.ask(world.add("prod"), PUSH, risk="critical", ts=stamp(60))) as s:
        await s.press("2")
        await arm(s)
        await s.press("e")
        await s.see("Edit and approve for prod")
        area = s.app.screen.query_one(TextArea)
        area.text = "[" * 20_000
        await s.press("ctrl+y")
        await s.see("this is not JSON")
        area.text = '{"argv": ["git", "push", "origin", "HEAD:refs/heads/review"], "access": "network"}'
        await s.press("ctrl+y")
        await s.see("Type the session's name")
        assert not s.world.of("decide")
        await s.press("p", "r", "o", "d", "ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        (sent,) = s.world.of("decide")
        assert sent["decision"] == "allow_edited"
        assert sent["edited"]["argv"][-1] == "HEAD:refs/heads/review"


async def test_deny_with_a_reason_is_easy_and_cancelling_is_easier(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2", "r")
        await s.see("Deny cart-discount")
        await s.press("escape")
        await s.press("x", "enter")
        await s.see("write something first")
        await s.press(*"no", "enter")
        await s.until("the decision", lambda: s.world.of("decide"))
        (sent,) = s.world.of("decide")
        assert (sent["decision"], sent["message"]) == ("deny", "no")


async def test_a_small_screen_says_how_many_wait_beside_those_it_lists(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        for at, name in enumerate(("first", "second", "third", "fourth")):
            world.ask(world.add(name), PUSH | {"argv": ["git", "push", "origin", name]}, ts=stamp(90 - at))

    async with shown(tmp_path, scene, size=(80, 24)) as s:
        await s.press("2")
        for at in range(1, 5):
            await s.see(f"{at} of 4")
            await s.press("down")
        assert len(queue(s).requests.views) == 4


async def test_who_pasted_a_reason_is_told_the_key_that_sends_it(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2", "r")
        await s.see("Deny cart-discount")
        pasted = events.Paste("not this")
        enter = events.Key("enter", None)
        for event in (pasted, enter):
            event.set_sender(s.app)
            s.app.post_message(event)
        await s.see("a paste has just ended; wait a second, then press enter again")


async def test_answer_and_defer(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2", "z")
        await s.until("the deferral", lambda: s.world.of("defer"))
        await s.see("deferred")
        await s.press("w")
        await s.see("Your text becomes the result")
        await s.press("4", "2", "ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        assert s.world.of("decide")[0]["decision"] == "answer"
        assert s.world.of("decide")[0]["message"] == "42"


async def test_approve_edited_sends_the_whole_changed_input(tmp_path: Path) -> None:
    from textual.widgets import TextArea

    async with shown(tmp_path, one) as s:
        await s.press("2")
        await arm(s)
        await s.press("e")
        await s.see("Edit and approve for cart-discount", "ctrl+y approve edited")
        await s.press("ctrl+y")
        await s.see("nothing was changed")
        area = s.app.screen.query_one(TextArea)
        area.text = "{nonsense"
        await s.press("ctrl+y")
        await s.see("this is not JSON")
        area.text = '{"argv": ["git", "push", "origin", "HEAD:refs/heads/review"], "access": "network"}'
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        (sent,) = s.world.of("decide")
        assert sent["decision"] == "allow_edited"
        assert sent["edited"]["argv"][-1] == "HEAD:refs/heads/review"
        assert sent["action_hash"]


def capped(world: World) -> None:
    detail: dict[str, Any] = {"cap": "session.usd", "used": 1_990_000_000, "limit": 2 * NANO, "need": 60_000_000}
    world.ask(
        world.add("thirsty"),
        kind="cap",
        title="session cap of $2 reached",
        options=["raise", "finish", "stop"],
        risk="medium",
        detail=detail,
        ts=stamp(60),
    )


async def test_a_cap_is_raised_finished_or_stopped(tmp_path: Path) -> None:
    async with shown(tmp_path, capped) as s:
        await s.press("2")
        assert {action for action, _, _ in s.help} >= {"queue.raise", "queue.finish", "queue.stop"}
        assert not {action for action, _, _ in s.help} & {"queue.approve", "queue.edit", "queue.deny"}
        await s.press("plus")
        await s.see("Raise the cap of thirsty", "4.00")
        await s.press(*["backspace"] * 4, "1", "ctrl+y")
        await s.see("must be above $2.00")
        await s.press("backspace", "3", "ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        (sent,) = s.world.of("decide")
        assert (sent["decision"], sent["value"]) == ("raise", 3 * NANO)


async def test_a_cap_is_raised_by_so_much_and_enter_names_the_key_that_sends(tmp_path: Path) -> None:
    async with shown(tmp_path, capped) as s:
        await s.press("2", "plus", *["backspace"] * 4, *"+0.5", "enter")
        await s.see("enter does not send this; ctrl+y does")
        assert not s.world.of("decide")
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        assert s.world.of("decide")[0]["value"] == 2_500_000_000


async def test_a_cap_on_time_is_raised_in_the_words_of_the_command_line(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        detail = {"cap": "session.wall", "used": 3600, "limit": 3600, "need": 0}
        world.ask(world.add("slow"), kind="cap", title="its time", options=["raise", "stop"], detail=detail)

    async with shown(tmp_path, scene) as s:
        await s.press("2", "plus")
        await s.see("Raise the cap of slow", "The cap is 1h now", "7200")
        await s.press(*["backspace"] * 4, "2", "h", "ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        assert s.world.of("decide")[0]["value"] == 7200


async def test_a_cap_that_nobody_here_knows_is_not_raised(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.ask(world.add("new"), kind="cap", title="more", options=["raise", "stop"], detail={"cap": "session.joy"})

    async with shown(tmp_path, scene) as s:
        await s.press("2", "plus")
        await s.see("this version does not know that cap")
        assert not s.world.of("decide")


async def test_finishing_up_waits_for_the_card_like_everything_else(tmp_path: Path) -> None:
    async with shown(tmp_path, capped) as s:
        await s.press("2", "f")
        assert "Finish up thirsty" not in s.text
        await arm(s)
        await s.press("f")
        await s.see("Finish up thirsty", "one last reply", "ctrl+y finish up")
        await s.press("escape")
        await arm(s)
        await s.press("f")
        assert not s.world.of("decide"), "a letter alone ends no session"
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        assert s.world.of("decide")[0]["decision"] == "finish"


@pytest.mark.parametrize(
    ("key", "decision", "asked"),
    [
        ("d", "done", "Was done, in doubtful"),
        ("o", "failed", "Was not done, in doubtful"),
        ("v", "unknown", "Unknown, in doubtful"),
    ],
)
async def test_a_call_in_doubt_is_settled_by_word_and_asked_about(
    tmp_path: Path, key: str, decision: str, asked: str
) -> None:
    def scene(world: World) -> None:
        world.ask(
            world.add("doubtful"),
            PUSH,
            kind="in_doubt",
            options=["done", "failed", "unknown"],
            title="did the push arrive?",
            ts=stamp(60),
        )

    async with shown(tmp_path, scene) as s:
        await s.press("2")
        await arm(s)
        await s.press("ctrl+y")
        assert not s.world.of("decide")
        await s.press(key)
        await s.see(asked)
        assert not s.world.of("decide")
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        assert s.world.of("decide")[0]["decision"] == decision


async def test_a_refused_key_is_retried_with_the_one_configured_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-new")

    def scene(world: World) -> None:
        world.ask(
            world.add("locked"), kind="auth", options=["retry", "stop"], title="401: the key was refused", ts=stamp(60)
        )

    async with shown(tmp_path, scene) as s:
        await s.press("2")
        await arm(s)
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        assert s.world.of("decide")[0]["credential"]["key"] == "sk-test-new"
        assert "sk-test-new" not in s.text


async def test_without_a_supervisor_a_decision_says_that_nothing_was_sent(tmp_path: Path) -> None:
    async with shown(tmp_path, one) as s:
        await s.press("2")
        await arm(s)
        await s.world.stop()
        await s.until("the link lost", lambda: not s.app.snapshot.live)
        await s.see("not answering")
        await s.pilot.pause(0.2)
        await arm(s)
        await s.press("ctrl+y")
        await s.see("nothing was sent", "WILL RUN")


async def test_the_next_request_follows_and_is_not_armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("app.screens.dialogs.card_screen.time", clock)
    async with shown(tmp_path, crowd) as s:
        await s.press("2")
        await s.press("down", "up")
        await s.until("the whole card seen", lambda: queue(s).arming.since is not None)
        clock.now += 2 * ARM_S
        first = queue(s).requests.selected
        await s.press("ctrl+y", "ctrl+y", "ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        await s.until("the next request shown", lambda: queue(s).requests.selected not in ("", first))
        assert len(s.world.of("decide")) == 1


async def test_notices_never_cover_the_card(tmp_path: Path) -> None:
    from textual.widgets._toast import Toast

    async with shown(tmp_path, one) as s:
        await s.press("2")
        s.app.tell("a notice")
        await s.see("a notice")
        assert not s.app.screen.query(Toast)


def hanging(world: World) -> None:
    world.add("cart", t.SessionEnded(outcome="failed", reason="2 of 3 checks fail: pytest \x1b[2J"))
    world.add("quiet", t.SessionEnded(outcome="done", reason="3 of 3 checks passed", verified=True))


@pytest.mark.parametrize("size", SIZES)
async def test_a_failed_session_is_an_item_that_says_what_to_do_and_takes_no_decision(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with shown(tmp_path, hanging, size=size) as s:
        await s.see("✗ 1 error" if size[0] >= 80 else "cart")
        await s.press("2")
        await s.see("needs you: 2 of 3 checks fail", "continue it with words")
        assert "quiet" not in "\n".join(s.grid)
        await s.see("c has it go on; enter opens its session")
        for key in ("ctrl+y", "w", "r", "d"):
            await s.press(key)
        await s.press("c")
        await s.see("Continue cart")
        await s.press("escape")
        assert not s.world.of("decide")
        assert not s.world.of("snooze")
        await s.press("z")
        await s.until("it is put off", lambda: s.world.of("snooze"))
        assert not s.world.of("defer")
        await s.see("deferred", "needs you: 2 of 3 checks fail")
        await s.press("z")
        await s.see("it is put off already")
        assert len(s.world.of("snooze")) == 1
        assert s.app.no_control.hits == 0
        await s.press("enter")
        await s.see("watchfloor continue" if size[0] >= 120 else "cart")
        assert type(s.app.screen).__name__ == "SessionScreen"


async def test_an_alarm_is_dealt_with_where_it_is_read(tmp_path: Path) -> None:
    alarm = t.AlarmRaised(alarm="silent", words="nothing came of it for 40m", value=2400, limit=1800, evidence=[9])

    def scene(world: World) -> None:
        world.log(world.add("cart"), alarm)

    async with shown(tmp_path, lambda world: (one(world), scene(world))) as s:
        await s.see("1 open request · 1 session to look at")
        await s.press("2", "end")
        await s.see("nothing came of it for 40m", "record 9 of its log")
        await s.press("m")
        await s.see("Say to cart")
        await s.press("escape", "s")
        await s.see("Stop cart")
        await s.press("escape", "p")
        await s.until("it is paused", lambda: s.world.of("desire"))
        assert not s.world.of("decide")


@pytest.mark.parametrize("size", SIZES)
async def test_the_key_that_defers_puts_the_alarm_of_a_session_off(tmp_path: Path, size: tuple[int, int]) -> None:
    alarm = t.AlarmRaised(alarm="silent", words="nothing came of it for 40m \x1b[2J", value=2400, limit=1800)

    def scene(world: World) -> None:
        world.log(world.add("cart"), alarm)

    async with shown(tmp_path, scene, size=size) as s:
        await s.press("2")
        await s.see("nothing came of it for 40m", "z puts its alarm off for an hour")
        if size[0] >= 120:
            await s.see("z snooze 1h")
        await s.press("z")
        await s.until("asked", lambda: s.world.of("snooze"))
        (asked,) = s.world.of("snooze")
        (row,) = s.app.snapshot.rows.values()
        assert (asked["sid"], asked["seconds"]) == (row.sid, 3600)
        assert not s.world.of("defer")
        session = s.world.sessions[row.sid]
        s.world.log(session, t.AlarmCleared(alarm="silent", why="it is over"))
        s.world.push_rows(session)
        await s.see("Nothing needs you")
        await s.press("z")
        assert len(s.world.of("snooze")) == 1
        assert s.app.no_control.hits == 0

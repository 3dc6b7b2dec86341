"""What an open screen writes to its terminal when nobody watches it: nothing that anybody else wrote can act there."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from textual import events

from app.terminal.bell import Calling, escapes
from app.terminal.terminal_title import TerminalTitle
from harness.protocol.config.sections import NotifyConfig
from harness.views.notifications import Notice, Want
from harness.views.session_views import ApprovalView
from tests.tui.app_pilot import shown
from tests.tui.app_world import World

SOON = NotifyConfig(dwell=1, cool_down=1, screen="osc777")


def view(name: str, ident: str = "a1", deferred: str | None = None) -> ApprovalView:
    return ApprovalView(ident, "s1", name, "tool", "rm -rf /", [], "low", "", 0, deferred=deferred)


def rung(name: str, kind: str = "osc777") -> list[str]:
    written: list[str] = []
    calling = Calling(NotifyConfig(dwell=1, cool_down=1, screen=kind), written.append)
    for now in range(1000, 1010):
        calling.look([view(name)], now, watched=False)
    return written


@given(st.text(max_size=60))
def test_a_name_can_neither_end_the_sequence_nor_begin_another(name: str) -> None:
    for kind, form in (
        ("osc9", r"\a\x1b\]9;[^\x00-\x1f\x7f-\x9f]+\a"),
        ("osc777", r"\a\x1b\]777;notify;[^\x00-\x1f\x7f-\x9f;]+;[^\x00-\x1f\x7f-\x9f;]+\a"),
    ):
        (written,) = rung(name, kind)
        assert re.fullmatch(form, written.replace("\x1bPtmux;", "").replace("\x1b\x1b", "\x1b").removesuffix("\x1b\\"))
        assert "rm -rf" not in written


def test_a_name_that_looks_like_a_secret_is_left_out() -> None:
    (written,) = rung("uses sk-ant-api03-abcdefghijklmnop")
    assert "sk-ant" not in written
    assert ";s1: asks to do something" in written


def test_the_bell_alone_or_nothing() -> None:
    assert rung("x", "bell") == ["\a"]
    assert rung("x", "off") == []


def test_tmux_is_asked_to_hand_it_on() -> None:
    notice = Notice((Want("a1", "x", "question"),), False, False)
    assert escapes("osc9", notice, in_tmux=True) == (
        "\a\x1bPtmux;\x1b\x1b]9;Watchfloor: 1 thing needs you: x: asks you something\a\x1b\\"
    )


def test_what_was_put_off_and_what_is_watched_rings_nothing() -> None:
    written: list[str] = []
    calling = Calling(SOON, written.append)
    for now in range(1000, 1010):
        calling.look([view("x"), view("y", "a2", deferred="later")], now, watched=True)
    for now in range(1010, 1020):
        calling.look([view("x"), view("y", "a2", deferred="later")], now, watched=False)
    assert written == []


async def test_a_screen_that_lost_the_focus_rings_and_one_that_has_it_does_not(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.ask(world.add("fixer"))

    async with shown(tmp_path, scene) as s:
        written: list[str] = []
        s.app.attention.calling = Calling(SOON, written.append)
        assert s.app.attention.watched
        s.app.post_message(events.AppBlur())
        await s.until("it rings", lambda: written)
        assert not s.app.attention.watched
        assert "fixer" in written[0]
        s.app.post_message(events.AppFocus())
        await s.until("it is watched", lambda: s.app.attention.watched)
        s.world.ask(s.world.add("later"))
        s.world.push_rows()
        s.world.push_approvals()
        await s.until("it is there", lambda: len(s.app.snapshot.needs()) == 2)
    assert len(written) == 1


@given(st.lists(st.integers(0, 5), max_size=30))
def test_the_title_counts_is_written_when_it_changes_and_is_given_back_once(counts: list[int]) -> None:
    written: list[str] = []
    title = TerminalTitle(written.append, on=True)
    for count in counts:
        title.show(count)
    changes = [count for count, before in zip(counts, [None, *counts], strict=False) if count != before]
    assert [text.removeprefix("\x1b[22;2t") for text in written] == [
        f"\x1b]2;{f'◆ {count} · ' if count else ''}Watchfloor\a" for count in changes
    ]
    assert "".join(written).count("\x1b[22;2t") == bool(counts)
    title.give_back()
    title.give_back()
    assert "".join(written).count("\x1b[23;2t") == bool(counts)


def test_a_title_that_is_not_ours_is_left_alone() -> None:
    written: list[str] = []
    title = TerminalTitle(written.append, on=False)
    title.show(3)
    title.give_back()
    assert written == []


async def test_the_supervisor_hears_when_nobody_watches_and_not_while_the_terminal_gives_the_notice(
    tmp_path: Path,
) -> None:
    def scene(world: World) -> None:
        world.ask(world.add("fixer"))

    async with shown(tmp_path, scene) as s:
        s.app.post_message(events.AppBlur())
        await s.until("it is told", lambda: not s.world.watching)
        s.app.post_message(events.AppFocus())
        await s.until("it is told again", lambda: s.world.watching)
        s.app.attention.calling = Calling(SOON, lambda text: None)
        s.app.post_message(events.AppBlur())
        await s.until("nobody watches", lambda: not s.app.attention.watched)
        await s.pilot.pause(1.2)
        assert s.world.watching

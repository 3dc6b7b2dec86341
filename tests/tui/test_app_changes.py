"""What a card cannot hold is named on it, and all of it can be read from the queue; reading decides nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.screens.dialogs.changes import PART, ChangesScreen, parts
from harness.supervisor.calls.queue.comparison import Side, compare, on_card
from tests.tui.app_pilot import Shown, shown
from tests.tui.app_world import PUSH, World, stamp
from widgets.card.card_text import CardLine, diff_lines

WRITE: dict[str, Any] = {
    **{k: v for k, v in PUSH.items() if k not in ("argv", "remote", "url", "refspecs")},
    "tool": "write_file",
    "kind": "file",
    "path": "/etc/cron.d/x",
    "effects": ["outside:/etc/cron.d/x"],
    "outside": ["/etc/cron.d/x"],
    "input_blob": {"sha": "a" * 64, "bytes": 400_000},
}
WRITE.pop("input")


def content(size: int = 1500) -> bytes:
    return "".join(
        f"# padding {i:05d} {'-' * 48}\n" if i != size // 2 else "* * * * * root /tmp/payload\0\n" for i in range(size)
    ).encode()


def padded(world: World) -> None:
    whole = compare(Side(None, "nothing there"), Side.of(content()))
    view = world.ask(
        world.add("cron"), WRITE, diff=on_card(whole), title="write_file /etc/cron.d/x", risk="critical", ts=stamp(60)
    )
    world.whole[view.approval_id] = whole
    world.piece = 10_000


async def read_all(s: Shown) -> str:
    """Page through everything, as a person does."""
    assert isinstance(s.app.screen, ChangesScreen)
    seen = ""
    while s.text not in seen:
        seen += s.text
        await s.press("space")
    return seen


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_card_names_what_it_leaves_out_and_a_key_shows_it(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, padded, size=size) as s:
        await s.press("2")
        await s.see("Not all of what it changes is on this card", "SHA-256")
        assert "queue.changes" in {action for action, _, _ in s.help} or size[0] < 100
        await s.press("c")
        await s.see("part 1 of", "nothing there")
        if size[0] > 100:
            assert "* * * * * root /tmp/payload␀" in await read_all(s)
        await s.press("ctrl+y", "escape")
        await s.see("CRITICAL")
        assert not s.world.of("decide")


async def test_a_small_change_is_whole_on_its_card(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        text = on_card(compare(Side.of(b"one\n"), Side.of(b"two\0\n")))
        world.ask(world.add("small"), WRITE, diff=text, ts=stamp(60))

    async with shown(tmp_path, scene, size=(120, 60)) as s:
        await s.press("2")
        await s.see("-one", "+two␀", "now 4 bytes, then 5 bytes")
        assert "Not all of what it changes" not in s.text


async def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    async with shown(tmp_path, padded) as s:
        s.world.refuse["changes"] = {"code": "not_open", "message": "it was decided meanwhile"}
        await s.press("2", "c")
        await s.see("it was decided meanwhile")


def test_parts_hold_everything_in_order() -> None:
    lines = [*diff_lines(compare(Side.of(b"a"), Side.of(b"b" * 300_000 + b"\n" + content()))), CardLine("")]
    made = parts(lines)
    assert len(made) > 3
    assert all(sum(len(line.text) for line in part) <= PART for part in made)
    assert "".join(line.text for part in made for line in part) == "".join(line.text for line in lines)

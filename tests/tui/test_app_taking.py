"""Taking a session's work on the screen: merging it, what does not fit handed back, another session from here."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.screens.floor import FloorScreen
from harness.events import types as t
from harness.projections.state.merging import MergeLook
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import World
from tests.tui.taking_world import kept

HOSTILE = "evil\x1b[2J[bold]\u202e"


def done(world: World) -> None:
    session = world.add("cart")
    session.diff = {"files": [], "patch": ""}
    world.log(session, t.SessionEnded(outcome="done", verified=True))


def clashing(world: World) -> None:
    done(world)
    world.conflicts |= set(world.sessions)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("from_review", [False, True])
async def test_a_merge_sends_what_the_fields_say(tmp_path: Path, size: tuple[int, int], from_review: bool) -> None:
    async with shown(tmp_path, done, size=size) as s:
        await s.see("cart")
        if from_review:
            await s.press("d")
            await s.see("Review cart")
            if size[0] >= 80:
                await s.until("the step to come", lambda: any(action == "session.merge" for action, _, _ in s.help))
        await s.press("M")
        await s.see(
            "Merge cart", "How", "Into", "Message", "Check first", "Commit rest", "ctrl+y merge", "tab next field"
        )
        assert all(len(line) <= size[0] for line in s.grid)
        await s.see("[merge] squash  rebase  resolve", "[yes] no", "yes [no]")
        await s.press("left")
        await s.see(" merge  squash  rebase [resolve]")
        await s.press("right", "right")
        await s.see(" merge [squash] rebase  resolve")
        await s.press("tab", *"side", "tab", *"words", "tab", "n")
        await s.press("enter")
        assert not s.world.of("merge"), "only the chord sends"
        await s.press("ctrl+y")
        await s.until("it is sent", lambda: s.world.of("merge"))
        (sent,) = s.world.of("merge")
        assert {name: sent[name] for name in ("how", "into", "message", "checks", "commit")} == {
            "how": "squash",
            "into": "side",
            "message": "words",
            "checks": False,
            "commit": False,
        }
        assert len(sent.get("seen", "")) == (64 if from_review else 0), "only what was looked at is held to it"
        await s.see("cart: merged into")
        s.world.looks = MergeLook(repo="/home/you/shop", into="main", commits=2)
        await s.press("M")
        await s.see("Merge cart")
        await s.until("it was looked again", lambda: "main; 2 commits to bring" in flat(s))
        await s.press("ctrl+y")
        await s.until("a merge that was taken back is made again", lambda: len(s.world.of("merge")) == 2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("into", "no", "said"),
    [
        ("main", "", ("is on branch main; 2 commits to bring",)),
        (f"{HOSTILE}side", "", ("is on branch evil␛[2J[bold]",)),
        ("main", "2 files in it are changed", ("is on branch main", "Not now: 2 files in it are changed; commit them")),
        ("", "it is on no branch", ("no branch (its HEAD is detached)", "Not now: it is on no branch")),
    ],
)
async def test_it_names_the_checkout_and_what_is_in_the_way_there(
    tmp_path: Path, size: tuple[int, int], into: str, no: str, said: tuple[str, ...]
) -> None:
    async with shown(tmp_path, done, size=size) as s:
        s.world.looks = MergeLook(repo="/home/you/shop", into=into, commits=2, no=no, hint="commit them" if no else "")
        await s.see("cart")
        await s.press("M")
        await s.until("it was looked", lambda: "Your checkout /home/you/shop" in flat(s))
        for words in (*said, "Commit rest", "ctrl+y merge"):
            assert words in flat(s), f"{words} in\n{s.text}"
        assert s.app.no_control.hits == 0


@pytest.mark.parametrize("size", SIZES)
async def test_it_counts_the_comments_that_were_not_sent_back(tmp_path: Path, size: tuple[int, int]) -> None:
    def changed(world: World) -> None:
        done(world)
        (session,) = world.sessions.values()
        patch = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new\n"
        session.diff = {"files": [{"path": "x.py", "status": "M", "added": 1, "removed": 1}], "patch": patch}

    async with shown(tmp_path, changed, size=size) as s:
        await s.see("cart")
        await s.press("d")
        await s.see("new")
        await s.press("c", *"why", "ctrl+y")
        await s.press("M")
        await s.see("Merge cart", "1 comment of yours not sent back", "ctrl+y merge")
        await s.press("escape", "escape", "M")
        await s.see("Merge cart", "1 comment of yours not sent back")


def flat(s: Shown) -> str:
    """The words of the question in one line."""
    inside = s.app.screen.query_one("#dialog").content_region
    return " ".join(" ".join(line[inside.x : inside.right] for line in s.grid).split())


async def test_what_does_not_fit_is_said_in_place_and_handed_back(tmp_path: Path) -> None:
    async with shown(tmp_path, clashing) as s:
        await s.see("cart")
        await s.press("M")
        await s.see("Merge cart")
        s.world.refuse["merge"] = {"code": "dirty", "message": f"{HOSTILE} is changed", "hint": "commit it"}
        await s.press("ctrl+y")
        await s.see("is changed; commit it", "evil␛[2J[bold]")
        s.world.refuse.clear()
        await s.press("ctrl+y")
        await s.see(
            "not merged into main, conflicts: both sides changed src/cart.py",
            "and its agent settles it",
        )
        await s.press(*"res", "tab", "tab", *"mine", "ctrl+y")
        await s.see("it brings main into its work")
        assert s.world.of("resolve")[0]["text"] == "mine"
        assert isinstance(s.app.screen, FloorScreen)
        await s.press("M")
        await s.see("has not ended; its work may still change")
        assert s.app.no_control.hits == 0


@pytest.mark.parametrize("size", SIZES)
async def test_a_fork_begins_where_the_arrows_say(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, done, size=size) as s:
        s.world.kept += [kept("k2", "check", f"pytest passes {HOSTILE}"), kept("k1", "hand", "before the change")]
        await s.see("cart")
        await s.press("F")
        await s.see("Fork cart", "as it is now", "k2", "k1", "before the change", "Goal", "Name", "ctrl+y fork")
        await s.press("down", "down", "tab", *"else", "tab", *"two", "ctrl+y")
        await s.until("it is sent", lambda: s.world.of("fork"))
        (sent,) = s.world.of("fork")
        assert (sent["checkpoint"], sent["goal"], sent["name"]) == ("k1", "else", "two")
        await s.see("two goes on from")
        assert s.app.no_control.hits == 0

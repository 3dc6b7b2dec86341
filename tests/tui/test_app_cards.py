"""A routine card at every size: what decides is read without a scroll, and two keys approve it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.screens.queue import QueueScreen
from harness.domain.actions.action import from_wire
from harness.domain.calls.card_facts import LAST_SEEN, CardNotes, CommitNote, Fact, FileCount, Outgoing, in_detail
from harness.policy.shape import facts_of, kind_of
from tests.tui.app_pilot import SIZES, shown
from tests.tui.app_world import PUSH, World, stamp

ROUTINE = CardNotes(
    of=kind_of(from_wire(PUSH)),
    facts=facts_of(from_wire(PUSH)),
    before=12,
    outgoing=[
        Outgoing(
            "refs/heads/main",
            False,
            [
                CommitNote("7dec9de0123456789", "Mention the tests", [FileCount("CHANGELOG.md", 2, 0)]),
                CommitNote("1c0ffee0123456789", "Weigh carts by line", [FileCount("shop/cart.py", 14, 3)]),
            ],
        )
    ],
    goal="Give carts a discount, and push it for review",
    step="F3: Discounts are per line",
    checks=2,
    passed=2,
)


def asking(world: World, notes: CardNotes) -> None:
    world.ask(
        world.add("cart-discount"), PUSH, claim="all tests pass", risk="medium", detail=in_detail(notes), ts=stamp(60)
    )


@pytest.mark.parametrize("size", SIZES)
async def test_a_routine_push_takes_two_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, lambda world: asking(world, ROUTINE), size=size) as s:
        await s.press("2")
        await s.see("cart-discount wants to push", "7dec9de012")
        screen = s.app.screen
        assert isinstance(screen, QueueScreen)
        assert all(len(line) <= size[0] for line in s.grid)
        if size[0] >= 80:
            await s.see("Mention the tests", "CHANGELOG.md  +2 -0", "same shape as 12 approved before")
            assert "environment" not in s.text
        while not screen.card.fully_shown:
            await s.press("pagedown")
        await s.until("the card armed", lambda: screen.arming.armed(time.monotonic()))
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))


async def test_folded_facts_unfold_and_fold_and_an_unusual_one_has_to_be_seen(tmp_path: Path) -> None:
    unusual = CardNotes(of=ROUTINE.of, facts=ROUTINE.facts, unusual=[Fact.PLACE])

    def scene(world: World) -> None:
        asking(world, ROUTINE)
        world.ask(world.add("odd"), PUSH, risk="low", detail=in_detail(unusual), ts=stamp(30))

    async with shown(tmp_path, scene, size=(120, 40)) as s:
        await s.press("2")
        await s.see("▸ ", "i facts")
        screen = s.app.screen
        assert isinstance(screen, QueueScreen)
        await s.until("armed", lambda: screen.arming.armed(time.monotonic()))
        await s.press("i")
        await s.see("▾ ", "EACH ARGUMENT BY ITSELF")
        await s.until("armed again without the rest", lambda: screen.arming.armed(time.monotonic()))
        await s.press("i")
        await s.see("▸ ")
        await s.press("end")
        await s.see("odd wants to push", "those that differ from what you approved before", "RUNS IN")
        assert "EACH ARGUMENT BY ITSELF" not in s.text, "what does not differ is a line until it is asked for"
        await s.until("armed without the rest", lambda: screen.arming.armed(time.monotonic()))
        await s.press("i")
        await s.see("▾ ", "EACH ARGUMENT BY ITSELF")
        s.world.ask(
            s.world.add("done-here"), kind="question", options=["answer"], title="Why?", risk="low", ts=stamp(1)
        )
        s.world.push_approvals()
        await s.until("it is listed", lambda: "done-here" in s.text)
        await s.press("end")
        await s.see("done-here asks you")
        await s.press("i")
        await s.see("nothing of this card is folded")


PATHS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FIRST = CardNotes(
    of=ROUTINE.of,
    unusual=[Fact.DESTINATION],
    first=True,
    outgoing=[
        Outgoing(
            "refs/heads/docs/unreleased",
            True,
            [CommitNote("9" * 40, "Mention the tests and the rules in the log", [FileCount("CHANGELOG.md", 2, 0)])],
            against=f"origin {LAST_SEEN}",
        )
    ],
    goal="Add an entry on the README to the changelog, commit it, and push it to origin as docs/unreleased for review.",
    checks=1,
    passed=1,
)


@pytest.mark.parametrize(("size", "others"), [((60, 20), 0), ((80, 24), 0), ((80, 24), 1), ((80, 24), 3)])
async def test_the_first_push_of_all_fits_a_small_screen_too(
    tmp_path: Path, size: tuple[int, int], others: int
) -> None:
    ref = "refs/heads/docs/unreleased"
    argv = ["git", "push", "origin", f"HEAD:{ref}"]
    environment = {
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": "/home/you",
        "LANG": "C.UTF-8",
        "PATH": PATHS,
        "SHELL": "/bin/sh",
    }
    url = "/home/you/.local/state/watchfloor-demo/20261124T031428-c59f/remote/tally.git"
    local = {"folder": url, "hooks": [], "programs": []}
    push = PUSH | {"argv": argv, "env": environment, "local": local, "effects": [f"push:origin {ref}"]}
    push |= {"refspecs": [["9" * 40, ref, "absent"]], "url": url}

    def scene(world: World) -> None:
        said = {"claim": "publish the changelog entry for review", "risk": "medium", "rule": "default"}
        world.ask(world.add("changelog"), push, **said, detail=in_detail(FIRST), ts=stamp(90))
        for number in range(others):
            world.ask(world.add(f"other-{number}"), PUSH, risk="low", ts=stamp(60 - number))

    async with shown(tmp_path, scene, size=size) as s:
        await s.press("2")
        await s.see("changelog wants to push", "nothing of this kind was approved before", "it has no hooks")
        await s.see("BRINGS 1 commit to NEW branch docs/unreleased", *(["low", "other-0"] if others else []))
        assert "environment" not in s.text
        screen = s.app.screen
        assert isinstance(screen, QueueScreen)
        await s.until("armed without a scroll", lambda: screen.arming.armed(time.monotonic()))
        room = screen.card.size
        s.world.ask(s.world.add("later"), PUSH, risk="low", ts=stamp(1))
        s.world.push_approvals()
        await s.until("another one came", lambda: len(screen.requests.views) == others + 2)
        assert screen.card.size == room, "what comes while it is read takes no room from it"
        assert screen.arming.armed(time.monotonic())
        await s.press("ctrl+y")
        await s.until("the decision", lambda: s.world.of("decide"))
        await s.see("other-0 wants to push" if others else "later wants to push")

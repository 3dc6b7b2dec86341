"""Two screens in real terminals on a real supervisor, keys at any moment, while requests come, go and change under
them: what is approved is what stood on the card when the key was pressed, and what then ran.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from harness.events import types as t
from harness.views.session_views import ApprovalView
from tests.e2e.terminal import Tmux, have_tmux, in_tmux
from tests.e2e.test_decisions_tmux import second_screen
from tests.fleetlib import Fleet, fleet, git, make_repository, play, wait_for
from widgets.card.card_text import shown_hash

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.sandbox,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not have_tmux(), reason="tmux is not installed"),
]
SECONDS = 12.0
SESSIONS = 5
TURNS = 12
_LONG = "nothing that tells one from another " * 6
"""A list shows a request by the beginning of its command, so that its mark stands on its card alone."""
_MARK = re.compile(r"mark-(\d+-\d+)-x")
_CALM = (*["C-y"] * 6, *["Space"] * 3, "Escape", "2")
_WILD = (*["C-y"] * 8, *["Space"] * 4, *"yAd123jz", "Down", "Up", *["Escape"] * 3)
_LATE_S = 3.0
"""Within this time a key has had its effect, however much the machine has to do."""
_PASTE = "x\x19y\x19\n\x19"


@dataclass
class Watched:
    """One screen: when ctrl+y was pressed there, and what its card showed just before."""

    tmux: Tmux
    pressed: list[tuple[float, set[str]]] = field(default_factory=list)

    def press(self, key: str) -> None:
        shown = set(_MARK.findall(self.tmux.screen.replace("\n", " ")))
        if key == "C-y":
            self.pressed.append((time.time(), shown))
        self.tmux.run("send-keys", key)

    def paste(self) -> None:
        self.tmux.run("set-buffer", _PASTE)
        self.tmux.run("paste-buffer")


def script(number: int, turn: int) -> list[str]:
    return ["/bin/sh", "-c", f"true {_LONG}; ./step; echo mark-{number}-{turn}-x >> ran.txt"]


def asks(number: int) -> str:
    """Asks for one thing after the other, and takes each answer."""
    calls = [("exec", {"argv": script(number, turn), "access": "network", "why": "Next."}) for turn in range(TURNS)]
    return play(*([call] for call in calls), "Done.")


@contextmanager
def at_work(work: Callable[[random.Random], None], seed: int, over: threading.Event) -> Iterator[None]:
    """This, again and again, until the time is over; what it raises fails the test."""
    broken: list[BaseException] = []

    def loop() -> None:
        dice = random.Random(seed)
        try:
            while not over.is_set():
                work(dice)
        except BaseException as exc:
            broken.append(exc)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if broken:
        raise broken[0]


def keys(screen: Watched, among: Sequence[str]) -> Callable[[random.Random], None]:
    def press(dice: random.Random) -> None:
        time.sleep(dice.uniform(0, 0.6))
        if dice.random() < 0.05:
            screen.paste()
        else:
            screen.press(dice.choice(among))

    return press


class World:
    """All that changes under a card: files, answers of others, sessions that end and new ones."""

    def __init__(self, f: Fleet) -> None:
        self.f = f
        self.repo = make_repository(f.root / "repo", {"step": "#!/bin/sh\ntrue\n"})
        (self.repo / "step").chmod(0o755)
        git(self.repo, "commit", "-q", "-am", "executable")
        self.sids: list[str] = []
        self.cards: dict[str, set[str]] = {}
        """The hashes of each request's card, as it was while it was open."""
        for _ in range(SESSIONS):
            self.more()

    def more(self) -> None:
        number = len(self.sids)
        self.sids.append(self.f.launch(asks(number), repo=self.repo, name=f"asks-{number}"))

    def change(self, dice: random.Random) -> None:
        time.sleep(dice.uniform(0.05, 0.4))
        sid = dice.choice(self.sids)
        match dice.randrange(6):
            case 0 | 1 | 2:
                with suppress(OSError):
                    (self.f.folders.worktrees / sid / "step").write_text(f"#!/bin/sh\ntrue {dice.random()}\n")
            case 3:
                self.decide(dice, "reject")
            case 4:
                self.decide(dice, "approve")
            case _:
                self.f.run("stop", sid, check=False)
                self.more()

    def decide(self, dice: random.Random, how: str) -> None:
        open_ = self.f.requests()
        for one in open_:
            self.cards.setdefault(one["approval_id"], set()).add(shown_hash(msgspec.convert(one, ApprovalView)))
        if open_:
            one = dice.choice(open_)
            more = ("--hash", one["action_hash"]) if how == "approve" else ("not now",)
            self.f.run(how, one["approval_id"], *more, check=False)


def attack(f: Fleet, seconds: float, seed: int) -> tuple[int, int]:
    """(approvals by a key, all decisions): play for this time, then compare screens, logs and what ran."""
    world = World(f)
    over = threading.Event()
    gone = threading.Event()
    with in_tmux(f.root, 120, 40) as first, second_screen(f) as second:
        screens = [Watched(first), Watched(second)]
        for screen in screens:
            screen.tmux.see("NEEDS YOU")
            screen.tmux.keys("2")
        with at_work(keys(screens[0], _CALM), seed, over), at_work(world.change, seed + 2, over):
            with at_work(keys(screens[1], _WILD), seed + 1, gone):
                gone.wait(seconds)
                wait_for("an approval by a key", lambda: any(_by_key(f, sid) for sid in world.sids))
            screens[1].press("C-y")
            second.close()  # in the middle of a key
            over.wait(1)
    for sid in world.sids:
        f.run("stop", sid, check=False)
    for sid in world.sids:
        f.wait_state(sid, "stopped", "done", "failed")
    found = [judged(f, sid, screens, world.cards) for sid in world.sids]
    assert f.violations() == []
    return sum(one for one, _ in found), sum(both for _, both in found)


def _by_key(f: Fleet, sid: str) -> bool:
    decided = [r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalDecided)]
    return any((body.by.client, body.decision) == ("tui", "allow") for body in decided)


def judged(f: Fleet, sid: str, screens: list[Watched], cards: dict[str, set[str]]) -> tuple[int, int]:
    """Hold one session's log against the screens and against what ran; the figures of `attack`."""
    records = f.records(sid)
    shown = {r.body.call_id: r.body for r in records if isinstance(r.body, t.ToolProposed)}
    asked = {r.body.approval_id: r.body for r in records if isinstance(r.body, t.ApprovalRequested)}
    decided = [(r.ts, r.body) for r in records if isinstance(r.body, t.ApprovalDecided)]
    allowed = {body.decision_id: body for _, body in decided if body.decision == "allow"}
    assert len({body.approval_id for _, body in decided}) == len(decided), "each is decided once"
    by_key = 0
    for ts, body in decided:
        assert body.action_hash == asked[body.approval_id].action_hash
        if body.by.client != "tui" or body.decision != "allow":
            continue
        by_key += 1
        known = cards.get(body.approval_id)
        assert known is None or body.shown_hash in known, "the card that was seen is the request's own"
        (mark,) = _MARK.findall(str(shown[body.call_id].input))
        when = datetime.fromisoformat(ts).timestamp()
        meant = [seen for screen in screens for at, seen in screen.pressed if when - _LATE_S <= at <= when + 0.05]
        assert any(mark in seen for seen in meant), f"{mark} was approved; on the cards stood {meant}"
    started = [r.body for r in records if isinstance(r.body, t.ToolStarted) and r.body.call_id in shown]
    for one in started:
        assert one.decision_id in allowed, f"{one} ran without a word"
        assert one.action_hash == allowed[one.decision_id].action_hash, "what was allowed is what ran"
    assert len({one.decision_id for one in started}) == len(started), "a word lets run once"
    ran = _ran(f.folders.worktrees / sid / "ran.txt")
    assert len(ran) == len(set(ran)) <= len(started)
    return by_key, len(decided)


def _ran(path: Path) -> list[str]:
    return _MARK.findall(path.read_text()) if path.exists() else []


def test_what_is_approved_is_what_stood_on_the_card() -> None:
    with fleet() as f:
        by_key, decided = attack(f, SECONDS, 7)
        assert decided > by_key >= 1

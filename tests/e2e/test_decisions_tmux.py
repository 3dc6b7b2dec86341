"""Decisions in real terminals on a real supervisor: two screens on one card, a supervisor that is killed behind the
key, and requests decided together while another screen decides one of them. Never twice, never lost, each on record.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.events import types as t
from tests.e2e.terminal import Tmux, have_tmux, in_tmux
from tests.e2e.test_queue_tmux import ARMED, asking, read_to_the_end
from tests.fleetlib import Fleet, fleet, kill, play, wait_for

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.sandbox,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not have_tmux(), reason="tmux is not installed"),
]
STEPS = ["asked", "shown", "decided", "taken", "effect", "delivered"]
ALL_ARMED = "● ctrl+y approves these {}, each once"
FOLDERS = {"state": "state", "runtime": "run", "config": "config"}


@contextmanager
def second_screen(f: Fleet) -> Iterator[Tmux]:
    """Another terminal on the same fleet."""
    root = f.root / "second"
    root.mkdir()
    same = {f"WATCHFLOOR_{name.upper()}": str(f.root / folder) for name, folder in FOLDERS.items()}
    with in_tmux(root, 120, 40, **same) as made:
        yield made


def decisions(f: Fleet, sid: str) -> list[t.ApprovalDecided]:
    return [r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalDecided)]


def test_two_screens_that_approve_the_same_card_at_once_let_it_run_once() -> None:
    with fleet() as f:
        sid = asking(f, "echo ran >> ran.txt", "network")
        with in_tmux(f.root, 120, 40) as first, second_screen(f) as second:
            for screen in (first, second):
                read_to_the_end(screen)
            for screen in (first, second):
                screen.run("send-keys", "C-y")
            f.wait_state(sid, "done")
            for screen in (first, second):
                screen.see("Nothing needs you")
        assert [one.decision for one in decisions(f, sid)] == ["allow"]
        assert effect(f, sid) == "ran\n"
        assert f.violations() == []


@pytest.mark.parametrize("later", [False, True])
def test_a_supervisor_that_is_killed_behind_the_key_neither_loses_nor_repeats_it(later: bool) -> None:
    """Right behind the key, or once the screen has sent it."""
    with fleet() as f:
        sid = asking(f, "echo ran >> ran.txt", "network")
        request = str(f.approval(sid)["approval_id"])
        with in_tmux(f.root, 120, 40) as screen:
            read_to_the_end(screen)
            pid = f.supervisor_pid()
            screen.run("send-keys", "C-y")
            if later:
                wait_for("the key to have its effect", lambda: ARMED not in screen.screen)
            kill(pid)
            wait_for("what became of it", lambda: standing(f, sid, request))

            def decided() -> bool:
                """A person whose key met no supervisor sees the card again, armed, and presses again."""
                if ARMED in screen.screen and not decisions(f, sid):
                    screen.keys("C-y")
                return bool(decisions(f, sid))

            wait_for("its decision", decided)
            f.wait_state(sid, "done")
        assert [one.decision for one in decisions(f, sid)] == ["allow"]
        assert effect(f, sid) == "ran\n"
        (receipt,) = f.json("receipts", request)
        assert [step["stage"] for step in receipt["steps"]] == STEPS
        assert f.violations() == []


def test_requests_decided_together_leave_out_what_another_screen_refused_meanwhile() -> None:
    with fleet() as f:
        call = ("exec", {"argv": ["/bin/sh", "-c", "echo ran >> ran.txt"], "access": "network", "why": "Needed."})
        sids = [f.launch(play([call], "Done."), name=f"asker-{name}") for name in "abc"]
        for sid in sids:
            f.approval(sid)
        with in_tmux(f.root, 120, 40) as screen:
            screen.see("3 open requests")
            screen.keys("2")
            screen.see("WILL RUN")
            screen.keys("C-a")
            screen.see("3 requests", ALL_ARMED.format(3))
            refused = f.approval(sids[1])["approval_id"]
            f.run("deny", refused, "not this one")
            screen.see("2 requests", ALL_ARMED.format(2))
            screen.keys("C-y")
            for sid in sids:
                f.wait_state(sid, "done")
            screen.see("Nothing needs you")
        assert [[one.decision for one in decisions(f, sid)] for sid in sids] == [["allow"], ["deny"], ["allow"]]
        assert [effect(f, sid) for sid in (sids[0], sids[2])] == ["ran\n"] * 2
        assert not (f.folders.worktrees / sids[1] / "ran.txt").exists()
        assert f.violations() == []


def standing(f: Fleet, sid: str, request: str) -> str:
    """Whether the request is decided or still open, as a new supervisor knows it."""
    done = f.run("approvals", "--json", check=False)
    if decisions(f, sid):
        return "decided"
    return "open" if done.returncode == 0 and request in done.stdout else ""


def effect(f: Fleet, sid: str) -> str:
    return (f.folders.worktrees / sid / "ran.txt").read_text()

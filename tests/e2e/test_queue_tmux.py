"""The whole way in a real tmux: a real agent asks its real supervisor, ctrl+y lets the tool run, and no paste presses
it.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.input.typing_pace import QUIET_S
from harness.events import types as t
from tests.e2e.terminal import HUMAN_S, Tmux, have_tmux, in_tmux, see_one, wait_for
from tests.fleetlib import Fleet, fleet, play

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.sandbox,
    pytest.mark.skipif(not have_tmux(), reason="tmux is not installed"),
]
ARMED = "● ctrl+y approves exactly this, once"
UNREAD = "▼ more below"
SIZES = [(80, 24), (120, 40)]


def asking(f: Fleet, script: str, access: str) -> str:
    """A session that waits with one call that leaves the sandbox."""
    sid = f.launch(
        play([("exec", {"argv": ["/bin/sh", "-c", script], "access": access, "why": "The task needs it."})], "Done."),
        name="asker",
    )
    f.approval(sid)
    return sid


def read_to_the_end(tmux: Tmux, *, opened: bool = False) -> None:
    """Open the queue, unless it is, and page through the card until it can be approved."""
    if not opened:
        tmux.see("NEEDS YOU")
        tmux.keys("2")
    tmux.see("WILL RUN")
    while see_one(lambda: tmux.screen, (ARMED, UNREAD)) == UNREAD:
        tmux.keys("space")


def ended(f: Fleet, sid: str) -> list[t.ToolEnded]:
    return [r.body for r in f.records(sid) if isinstance(r.body, t.ToolEnded)]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_chord_lets_the_tool_run(width: int, height: int) -> None:
    with fleet() as f:
        sid = asking(f, "echo ran > ran.txt", "network")
        worktree = Path(f.row(sid)["worktree"])
        with in_tmux(f.root, width, height) as tmux:
            read_to_the_end(tmux)
            assert not (worktree / "ran.txt").exists()
            tmux.keys("C-y")
            tmux.see("approved; it runs now, once")
            f.wait_state(sid, "done")
            assert (worktree / "ran.txt").read_text() == "ran\n"
            assert [body.status for body in ended(f, sid)] == ["ok"]
            tmux.see("Nothing needs you")
        assert f.violations() == []


def test_a_critical_call_runs_after_the_name_was_typed() -> None:
    with fleet() as f:
        mark = f.root / "mark"
        sid = asking(f, f"echo ran > {mark}", "unsandboxed")
        with in_tmux(f.root, 120, 40) as tmux:
            read_to_the_end(tmux)
            tmux.keys("C-y")
            tmux.see("Approve for asker")
            tmux.keys(*"asker")
            assert not mark.exists()
            tmux.keys("C-y")
            tmux.see("approved; it runs now, once")
            f.wait_state(sid, "done")
            assert mark.read_text() == "ran\n"
            assert [body.status for body in ended(f, sid)] == ["ok"]


@pytest.mark.parametrize("brackets", ["-p", ""])
@pytest.mark.parametrize("payload", ["x\x1b[201~\x19asker\x19", "\x1b" + "z" * 31 + "\x19"])
def test_no_paste_lets_it_run(payload: str, brackets: str) -> None:
    with fleet() as f:
        mark = f.root / "mark"
        sid = asking(f, f"echo ran > {mark}", "unsandboxed")
        (request,) = f.json("approvals")
        with in_tmux(f.root, 120, 40) as tmux:
            read_to_the_end(tmux)
            tmux.run("set-buffer", payload)
            tmux.run("paste-buffer", *brackets.split())
            tmux.help()
            assert [a["approval_id"] for a in f.json("approvals")] == [request["approval_id"]]
            assert not any(isinstance(r.body, (t.ApprovalDecided, t.ToolStarted)) for r in f.records(sid))
            assert not mark.exists()


def test_the_person_who_presses_right_after_a_paste_is_told_and_can_press_again() -> None:
    with fleet() as f:
        sid = asking(f, "echo ran > ran.txt", "network")
        with in_tmux(f.root, 120, 40) as tmux:
            read_to_the_end(tmux)
            tmux.run("set-buffer", "just text")
            tmux.run("paste-buffer", "-p")

            def told() -> bool:
                time.sleep(HUMAN_S)
                tmux.run("send-keys", "C-y")
                return "a paste has just ended" in tmux.screen

            wait_for("the refusal in words", told, lambda: tmux.screen)
            assert not any(isinstance(r.body, t.ApprovalDecided) for r in f.records(sid))

            # The presses may arrive later than they were sent, and each starts the wait over.
            tmux.keys("F1")
            tmux.see("esc closes")
            tmux.keys("Escape")
            tmux.see(ARMED)
            time.sleep(QUIET_S + 0.1)  # what the screen asks of a person
            tmux.keys("C-y")
            tmux.see("approved; it runs now, once")
            f.wait_state(sid, "done")
            assert [body.status for body in ended(f, sid)] == ["ok"]

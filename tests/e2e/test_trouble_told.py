"""Trouble in a running fleet as a person meets it: in `ls`, `show` and `doctor`, and on the screen."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from harness.domain.problems import FLEET, SESSION
from tests.e2e.terminal import in_tmux
from tests.fleetlib import HOLD, Fleet, fleet, kill, play, wait_for

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(240)]


def found(f: Fleet, about: str) -> dict[str, Any]:
    """What `doctor` says of a session or the fleet."""
    done = f.run("doctor", "--json", check=False)
    return next(
        (
            {**line, "exit": done.returncode}
            for line in map(json.loads, done.stdout.splitlines())
            if line["what"] == about
        ),
        {},
    )


def test_a_damaged_log_is_named_with_what_to_do() -> None:
    with fleet() as f:
        broken = f.launch(play([HOLD], "Done."), name="broken")
        fine = f.launch(play([HOLD], "Done."), name="fine")
        f.wait_event(broken, "tool.started")
        f.wait_event(fine, "tool.started")
        path = f.folders.session(broken).log / "000001.jsonl"
        data = path.read_bytes()
        keeper = f.keeper_pid(broken)
        with path.open("r+b") as file:  # before its keeper dies: the next one comes at once
            file.seek(data.index(b"keeper", data.index(b"\n")))
            file.write(b"kooper")
        kill(keeper)
        row = f.wait_state(broken, "failed")
        words = SESSION["damaged"]
        assert (row["detail"], row["group"], row["next"]) == (words.headline, "errors", words.next)
        told = found(f, "broken")
        assert (told["level"], told["exit"]) == ("bad", 1)
        assert told["detail"].startswith(words.headline)
        assert words.next in told["detail"]
        assert "watchfloor verify" in told["detail"]
        assert "000001.jsonl" in told["detail"], "and where it is"
        assert not found(f, "fine")
        shown = f.run("show", broken).stdout
        assert words.next in shown
        assert words.do in shown
        with in_tmux(f.root, 80, 24) as screen:
            screen.see("ERRORS 1", words.headline)


def test_what_waits_by_itself_is_no_failure() -> None:
    """A keeper that stands still, and a supervisor that is new to it."""
    with fleet() as f:
        sid = f.launch(play([HOLD], "Done."), name="frozen")
        f.wait_event(sid, "tool.started")
        keeper = f.keeper_pid(sid)
        os.kill(keeper, signal.SIGSTOP)
        try:
            kill(f.supervisor_pid())
            f.run("supervisor", "start")
            row = f.wait_state(sid, "limited")
            assert (row["detail"], row.get("group")) == (SESSION["mute"].headline, "running")
            assert row["next"] == SESSION["mute"].next
            told = wait_for("a word of the doctor", lambda: found(f, "frozen"))
            assert told["detail"].startswith(SESSION["mute"].headline)
            with in_tmux(f.root, 140, 45) as screen:
                screen.see(SESSION["mute"].headline)
                screen.keys("Enter")
                screen.see(SESSION["mute"].headline, "next: ")
        finally:
            os.kill(keeper, signal.SIGCONT)
        f.run("resume", sid)
        f.wait_state(sid, "running")
        wait_for("nothing to tell any more", lambda: not found(f, "frozen"))
        f.release(sid)
        f.wait_state(sid, "done")


def test_trouble_of_the_fleet_is_told_and_ends() -> None:
    with fleet() as f:
        f.run("supervisor", "start")
        assert wait_for("a calm fleet", lambda: found(f, "right now"))["level"] == "ok"
        f.folders.policy_file.write_text("[[rule]]\nnonsense = 1\n")
        told = wait_for("the wrong policy", lambda: found(f, "the fleet"))
        assert (told["level"], told["exit"]) == ("bad", 1)
        assert told["detail"].startswith(FLEET["policy"].headline)
        assert FLEET["policy"].next in told["detail"]
        assert "policy.toml" in told["detail"]
        with in_tmux(f.root, 80, 24) as screen:
            screen.see(FLEET["policy"].headline, "running")
            f.folders.policy_file.unlink()
            screen.see("today")
        wait_for("a calm fleet again", lambda: found(f, "right now"))

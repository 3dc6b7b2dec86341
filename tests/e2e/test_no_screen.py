"""Where there is no screen: pipes that close, terminals that can draw nothing, and a demo that needs none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from tests.fleetlib import COMMAND, HOLD, Fleet, fleet, play

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(180)]


def follow(f: Fleet, sid: str, *more: str) -> subprocess.Popen[str]:
    """``watchfloor logs -f``, its output on a pipe."""
    return subprocess.Popen(
        [COMMAND, "logs", sid, "-f", *more],
        env=f.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_follow_ends_with_the_session() -> None:
    with fleet() as f:
        sid = f.launch(play([HOLD], "Done."))
        f.wait_event(sid, "tool.started")
        with follow(f, sid) as tail:
            assert tail.stdout is not None
            assert "the process that keeps its log" in tail.stdout.readline()
            f.release(sid)
            said, complaint = tail.communicate(timeout=60)
        assert (tail.returncode, complaint) == (0, "")
        assert said.rstrip().splitlines()[-1].split()[0] == str(f.records(sid)[-1].seq), (
            "it left before the last record"
        )
        again = f.run("logs", sid, "-f", "--after", str(f.records(sid)[-1].seq))  # nothing is left to wait for
        assert again.stdout == ""


def test_follow_ends_when_nobody_reads_any_more() -> None:
    """As with ``| head -1``, also while the session is silent."""
    with fleet() as f:
        sid = f.launch(play([HOLD], "Done."))
        f.wait_event(sid, "tool.started")
        with follow(f, sid) as tail:
            assert tail.stdout is not None
            assert tail.stderr is not None
            assert "the process that keeps its log" in tail.stdout.readline()
            tail.stdout.close()
            assert tail.wait(60) == 0
            assert tail.stderr.read() == ""
        assert f.row(sid)["state"] == "running", "the session goes on without its reader"
        script = f'"$0" logs {sid} -f | head -1; echo "${{PIPESTATUS[@]}}"'
        done = subprocess.run(
            ["bash", "-c", script, COMMAND],
            env=f.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        assert done.stderr == ""
        assert done.stdout.splitlines()[1] == "0 0"


@pytest.mark.parametrize("set_to", [{"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}])
def test_a_terminal_that_can_draw_nothing(set_to: dict[str, str]) -> None:
    """One that shows other characters than were meant would also cut what a card says."""
    with fleet() as f:
        for verb in ((), ("demo",)):
            env = f.env | {"TERM": "xterm"} | set_to
            screen = pexpect.spawn(COMMAND, list(verb), env=env, dimensions=(24, 80), timeout=60)
            screen.expect("TERM=dumb" if "TERM" in set_to else "ascii and not UTF-8")
            screen.expect("watchfloor ls" if not verb else "--headless")
            screen.expect(pexpect.EOF)
            screen.close()
            assert screen.exitstatus == 2
        assert not f.folders.supervisor_socket.exists(), "nothing was started for a screen that cannot be"


def test_a_demo_without_a_terminal_plays_headless(tmp_path: Path) -> None:
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "WATCHFLOOR_STATE": str(tmp_path / "state"),
        "WATCHFLOOR_CONFIG": str(tmp_path / "config"),
    }
    program = [sys.executable, "-P", "-s", "-m", "app.main", "demo"]
    done = subprocess.run(program, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no terminal" in done.stderr
    assert done.stdout.count('"ok":true') == 4

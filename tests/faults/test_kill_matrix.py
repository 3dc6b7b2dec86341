"""``kill -9`` of each process at each arrow of the action road, with real processes, against the one invariant
checker.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fleetlib import Fleet, alive, fleet, kill, play, wait_for

ARROWS = [
    "tool.proposed",
    "tool.judged",
    "approval.requested",
    "approval.decided",
    "tool.started",
    "tool.ended",
    "model.message",
]
"""The arrows of the road; the last stands for "delivered": the reply after the results went back."""


def marked(path: Path) -> str:
    """Reads, then one effect outside the sandbox that must happen at most once and lasts while `hold` is there, then a
    write, then the end.
    """
    return play(
        [("read_file", {"path": "README.md"})],
        [
            (
                "exec",
                {
                    "argv": ["/bin/sh", "-c", f"echo run >> {path}; while [ -e {hold(path)} ]; do sleep 0.02; done"],
                    "access": "unsandboxed",
                },
            )
        ],
        [("write_file", {"path": "out.txt", "content": "done\n"})],
        "All done.",
    )


def hold(path: Path) -> Path:
    return path.with_name(path.name + ".hold")


def tool_pids(f: Fleet, marker: Path) -> list[int]:
    """Processes that carry out the marked call."""
    return [pid for pid, text in f.processes() if str(hold(marker)) in text]


def answer_all(f: Fleet, sid: str) -> Callable[[], bool]:
    """Approve what is asked, settle what is in doubt, until the session has ended."""

    def step() -> bool:
        done = f.run("approvals", "--json", check=False)
        if done.returncode == 0:
            import json

            for item in map(json.loads, done.stdout.splitlines()):
                if item["sid"] != sid:
                    continue
                choice = ["--choose", "unknown"] if item["kind"] == "in_doubt" else []
                f.approve(item["approval_id"], *choice, check=False)
        state = f.state(sid)
        return state.ended is not None

    return step


def run_cell(f: Fleet, part: str, arrow: str) -> None:
    marker = f.root / f"marker-{part}-{arrow}"
    if arrow == "tool.started":
        hold(marker).touch()
    sid = f.launch(marked(marker), name=f"{part}-{arrow}".replace(".", "-"))
    effect_seq = -1
    if arrow == "approval.decided":
        f.approve(f.approval(sid)["approval_id"])
    elif arrow in ("tool.started", "tool.ended", "model.message"):
        f.approve(f.approval(sid)["approval_id"])
        effect_seq = max(r.seq for r in f.records(sid) if r.type == "approval.decided")
    wait_for(f"{arrow} in {sid}", lambda: any(r.type == arrow and r.seq > effect_seq for r in f.records(sid)), 60)
    if part == "supervisor":
        kill(f.supervisor_pid())
    elif part == "keeper":
        kill(f.keeper_pid(sid))
    elif part == "brain":
        pid = f.brain_pid(sid)
        if pid and alive(pid):
            kill(pid)
    elif part == "tool":
        if arrow == "tool.started":
            wait_for("the tool's process", lambda: marker.exists() and tool_pids(f, marker))
        for pid in tool_pids(f, marker):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    hold(marker).unlink(missing_ok=True)
    wait_for(f"{sid} to end after kill -9 of the {part} at {arrow}", answer_all(f, sid), 60)
    ended = f.state(sid).ended
    assert ended is not None
    assert ended.outcome == "done", ended
    runs = marker.read_text().count("run") if marker.exists() else 0
    assert runs <= 1, f"the effect ran {runs} times"
    if part in ("supervisor", "brain"):
        assert runs == 1, "neither supervisor nor brain carries out the effect, so it must have happened"


@pytest.mark.sandbox
@pytest.mark.parametrize("part", ["supervisor", "keeper", "brain", "tool"])
def test_kill_at_each_arrow(part: str) -> None:
    with fleet() as f:
        for arrow in ARROWS:
            run_cell(f, part, arrow)
        wait_for("no violated invariant", lambda: not f.violations())


@pytest.mark.sandbox
def test_screen_killed_changes_nothing() -> None:
    """The TUI is the fifth process: killed at each arrow, the session neither notices nor loses anything."""
    from tests.bench.screen import Screen
    from tests.fleetlib import COMMAND

    with fleet() as f:
        f.run("supervisor", "start")
        for arrow in ARROWS:
            marker = f.root / f"marker-tui-{arrow}"
            screen = Screen([COMMAND], f.env | {"TERM": "xterm-256color"})
            sid = f.launch(marked(marker), name=f"tui-{arrow}".replace(".", "-"))
            screen.quiet(0.3, 2)
            if arrow not in ("tool.proposed", "tool.judged", "approval.requested"):
                f.approve(f.approval(sid)["approval_id"])
            f.wait_event(sid, arrow)
            screen.close()
            wait_for(f"{sid} to end", answer_all(f, sid), 60)
            assert marker.read_text() == "run\n"
        assert f.violations() == []


@pytest.mark.sandbox
def test_stopped_stays_stopped() -> None:
    with fleet() as f:
        sid = f.launch(play([("exec", {"argv": ["sleep", "30"]})], "Done."))
        f.wait_event(sid, "tool.started")
        f.run("stop", sid, "--reason", "enough")
        kill(f.supervisor_pid())
        f.wait_state(sid, "stopped")
        before = len(f.records(sid))
        f.run("supervisor", "stop")
        f.run("supervisor", "start")
        other = f.launch(play("Done."), name="other")
        f.wait_state(other, "done")  # what would be started again by mistake would be by now
        assert f.row(sid)["state"] == "stopped"
        assert [
            r.type for r in f.records(sid)[before:] if r.type.startswith(("lease.granted", "model.", "tool.started"))
        ] == []
        assert f.violations() == []

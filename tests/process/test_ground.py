"""The harness's own failures cost nothing: git broken, worktree or private folder gone.

The session is held, says why, and goes on when it is mended.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.events import types as t
from harness.protocol.paths import Folders
from tests.fleetlib import HOLD, Fleet, fleet, play, wait_for

pytestmark = pytest.mark.timeout(300)
WRITE = [("write_file", {"path": "new.txt", "content": "new"})]
COMMIT = [("shell", {"script": "git add -A && git commit -qm work"})]
GIT = """#!/bin/sh
if [ -e "{mark}" ]; then echo "error while loading shared libraries: libpcre2.so" >&2; exit 127; fi
exec {git} "$@"
"""


@pytest.fixture
def f() -> Iterator[Fleet]:
    """A fleet whose git is a program that breaks while a file named ``broken`` is there."""
    with fleet() as made:
        tools = made.root / "tools"
        tools.mkdir()
        program = tools / "git"
        program.write_text(GIT.format(mark=made.root / "broken", git=shutil.which("git")))
        program.chmod(0o755)
        made.extra["PATH"] = f"{tools}:{os.environ['PATH']}"
        yield made


@dataclass(frozen=True)
class Harm:
    """Something of ours that breaks, how it is mended, and words that must be told."""

    name: str
    do: Callable[[Fleet, str], None]
    undo: Callable[[Fleet, str], None]
    told: str


def worktree(f: Fleet, sid: str) -> Path:
    return f.folders.worktrees / sid


def private(f: Fleet, sid: str) -> Path:
    return Folders.session(f.folders, sid).git / "private"


def aside(path: Path) -> Path:
    return path.with_name(f"{path.name}-aside")


HARMS = (
    Harm(
        "git",
        lambda f, _: (f.root / "broken").touch(),
        lambda f, _: (f.root / "broken").unlink(),
        "error while loading shared libraries",
    ),
    Harm(
        "worktree",
        lambda f, s: worktree(f, s).rename(aside(worktree(f, s))),
        lambda f, s: aside(worktree(f, s)).rename(worktree(f, s)),
        "is gone",
    ),
    Harm(
        "private folder",
        lambda f, s: private(f, s).rename(aside(private(f, s))),
        lambda f, s: aside(private(f, s)).rename(private(f, s)),
        "is gone",
    ),
)


def requests(f: Fleet, sid: str) -> int:
    return sum(r.type == "model.request" for r in f.records(sid))


@pytest.mark.parametrize("harm", HARMS, ids=lambda h: h.name)
def test_broken_ground_holds_the_session_at_no_cost(f: Fleet, harm: Harm) -> None:
    """Broken while a call runs whose commits must be published and whose successor must be judged; mended while it is
    held.
    """
    f.run("supervisor", "start")
    sid = f.launch(play([HOLD], COMMIT, WRITE, "Done."))
    f.wait_event(sid, "tool.started")
    if harm.name == "git":
        f.release(sid)
        harm.do(f, sid)
    else:
        # a sandbox holds its folders: they are broken between its call and the next, while the endpoint is silent
        f.simulator.send_signal(signal.SIGSTOP)
        f.release(sid)
        f.wait_event_count(sid, "model.request", 2)
        harm.do(f, sid)
        f.simulator.send_signal(signal.SIGCONT)
    held = f.wait_state(sid, "parked", timeout=90)
    assert harm.told in held["evidence"], held
    assert "goes on by itself" in held["next"]
    assert held["group"] == "errors"
    assert not [item for item in f.json("approvals") if item["options"]], "nobody is asked what has to be mended"
    before = requests(f, sid)
    f.run("resume", sid)  # looks at once; nothing is mended yet
    f.wait_state(sid, "parked")
    assert requests(f, sid) == before, "no turn is paid for meanwhile"
    harm.undo(f, sid)
    f.wait_state(sid, "done", timeout=90)
    ended = [r.body for r in f.records(sid) if isinstance(r.body, t.ToolEnded)]
    assert all("could not examine" not in e.preview for e in ended), "the agent was not bothered"
    assert f.violations() == []


def test_a_held_session_can_be_stopped(f: Fleet) -> None:
    f.run("supervisor", "start")
    sid = f.launch(play([HOLD], COMMIT, WRITE, "Done."))
    f.wait_event(sid, "tool.started")
    (f.root / "broken").touch()
    f.release(sid)
    f.wait_state(sid, "parked", timeout=90)
    f.run("stop", sid)
    f.wait_state(sid, "stopped")
    (f.root / "broken").unlink()


def test_a_brain_that_dies_again_and_again_is_tried_again_and_asks_nobody(f: Fleet) -> None:
    """Killed five times within seconds, while no reply is under way."""
    f.run("supervisor", "start")
    sid = f.launch(play([HOLD], "Done."))
    f.wait_event(sid, "tool.started")
    gens = set()
    f.run("pause", sid)
    f.release(sid)
    f.wait_event(sid, "session.parked")
    wait_for("its brain to leave", lambda: f.state(sid).lease is None)
    os.kill(f.simulator.pid, signal.SIGSTOP)  # no reply comes, so that no brain gets anything done
    try:
        f.run("resume", sid)
        for _ in range(4):
            pid = wait_for(
                "another brain",
                lambda: (lease := f.state(sid).lease) is not None and lease.gen not in gens and lease.pid,
                90,
            )
            gens.add(f.state(sid).lease_gen)
            os.kill(pid, signal.SIGKILL)
            wait_for("its lease to end", lambda: f.state(sid).lease is None)
        wait_for("it is said what comes next", lambda: "tried again" in f.row(sid)["next"])
        assert f.state(sid).quarantined is None
        assert f.json("approvals") == []
    finally:
        os.kill(f.simulator.pid, signal.SIGCONT)
    f.run("resume", sid)
    f.wait_state(sid, "done", timeout=90)
    assert f.violations() == []

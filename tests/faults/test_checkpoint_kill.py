"""kill -9 in the middle of making a checkpoint and of going back to one: it is there or not, and what was begun is
finished by whoever comes next.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from harness.protocol.client import SupervisorError, Unreachable
from harness.vault.export import EXPORT
from tests.faults.test_undo_kill import vault_of
from tests.fleetlib import COMMAND, Fleet, fleet, git, kill, play, wait_for
from tests.process.keeperlib import wait_gone
from tests.process.undolib import State, dump

pytestmark = pytest.mark.sandbox
MANY = 3000
ASK: tuple[str, dict[str, Any]] = ("exec", {"argv": ["true"], "access": "unsandboxed", "why": "because"})
FILL = f"mkdir many; for i in $(seq {MANY}); do echo $i > many/$i; done; echo secret > .env; chmod 600 .env"
EMPTY = "rm -rf many .env; mkdir many; for i in $(seq 300); do echo new > many/new$i; done"


def bodies(f: Fleet, sid: str, kind: type[t.Body]) -> list[Any]:
    return [r.body for r in f.records(sid) if isinstance(r.body, kind)]


def tree(f: Fleet, sid: str) -> State:
    return {name: value for name, value in dump(Path(f.row(sid)["worktree"])).items() if name != b".git"}


def begin(f: Fleet, *args: str) -> subprocess.Popen[bytes]:
    """A command that nobody waits for: what it asks of will be killed."""
    return subprocess.Popen([COMMAND, *args], env=f.env | f.extra, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def answers(f: Fleet, sid: str, dead: int) -> None:
    """Wait until another supervisor has taken the session up."""

    def probe() -> bool:
        try:
            return f.supervisor_pid() != dead and f.row(sid)["state"] == "waiting"
        except (Unreachable, SupervisorError):
            return False

    wait_for("another supervisor has the session", probe)


def held(f: Fleet, sid: str) -> dict[str, str]:
    """The checkpoints in the store: number and commit."""
    told = git(f.folders.session(sid).checkpoints, "for-each-ref", "--format=%(refname) %(objectname)")
    return {line.split()[0].rpartition("/")[2]: line.split()[1] for line in told.splitlines()}


def recorded(f: Fleet, sid: str) -> dict[str, str]:
    return {b.checkpoint_id[1:]: b.commit for b in bodies(f, sid, t.CheckpointCreated)}


def test_a_checkpoint_is_whole_or_not_there_and_a_restore_is_finished() -> None:
    with fleet() as f:
        sid = f.launch(play([("shell", {"script": FILL})], [ASK], [("shell", {"script": EMPTY})], [ASK], "Done."))
        f.wait_state(sid, "waiting")
        stream = f.folders.session(sid).root / EXPORT
        supervisor = f.supervisor_pid()
        making = begin(f, "checkpoint", sid)
        wait_for("its commit is being made", lambda: stream.exists() or making.poll() is not None)
        kill(supervisor)
        making.wait(60)
        answers(f, sid, supervisor)
        f.run("checkpoint", sid, "--label", "full")
        assert held(f, sid) == recorded(f, sid)
        assert not stream.exists()
        wanted = tree(f, sid)
        name = bodies(f, sid, t.CheckpointCreated)[-1].checkpoint_id

        f.approve(f.approval(sid)["approval_id"])
        f.wait_event_count(sid, "tool.ended", 3)
        wait_for("it asks again", lambda: f.row(sid)["state"] == "waiting")
        destroyed = tree(f, sid)
        many = Path(f.row(sid)["worktree"]) / "many"
        going = begin(f, "restore", sid, name)
        wait_for(
            "some files are back", lambda: many.is_dir() and sum(n.isdigit() for n in os.listdir(many)) > MANY // 10
        )
        keeper = f.keeper_pid(sid)
        supervisor = f.supervisor_pid()
        vault = vault_of(keeper)
        os.kill(vault, signal.SIGSTOP)
        assert len(os.listdir(many)) < MANY, "it was stopped before it was done"
        kill(supervisor)
        kill(keeper)
        wait_gone(vault)
        going.wait(60)
        f.wait_event(sid, "checkpoint.restored")
        answers(f, sid, supervisor)
        assert tree(f, sid) == wanted
        (restored,) = bodies(f, sid, t.CheckpointRestored)
        (undone,) = bodies(f, sid, t.UndoEnded)
        assert (restored.checkpoint_id, restored.undo_id) == (name, undone.undo_id)
        told = [b for b in bodies(f, sid, t.UserMessage) if f"checkpoint {name}" in b.text]
        assert len(told) == 1
        before = next(b for b in bodies(f, sid, t.CheckpointCreated) if b.why == "restore")
        f.run("restore", sid, before.checkpoint_id)
        assert tree(f, sid) == destroyed, "nothing was lost by it"
        assert held(f, sid) == recorded(f, sid)
        assert f.violations() == []

"""The runtime folder vanishes under a fleet at work: at a last logout, or by something that cleans up."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.fleetlib import HOLD, Fleet, fleet, kill, play, wait_for


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def test_everything_goes_on_when_the_runtime_folder_was_removed(f: Fleet) -> None:
    sid = f.launch(play([HOLD], [("exec", {"argv": ["true"]})], "Done."), name="one")
    f.wait_event(sid, "tool.started")
    supervisor = f.supervisor_pid()
    keeper = f.keeper_pid(sid)
    shutil.rmtree(f.folders.runtime)
    kill(f.brain_pid(sid))  # the next one needs both sockets
    (f.folders.worktrees / sid / "notes.txt").unlink()
    f.wait_event(sid, "session.ended")
    assert sum(r.type == "lease.granted" for r in f.records(sid)) < 10, (
        "no brain after the other is spent on a missing socket"
    )
    assert f.supervisor_pid() == supervisor
    assert f.keeper_pid(sid) == keeper
    for folder in (f.folders.runtime, f.folders.keeper_sockets):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert (f.folders.runtime / "owner.json").exists()
    assert "made again" in f.supervisor_log()
    new = f.launch(play("Done."), name="new")
    f.wait_state(new, "done")
    assert f.violations() == []


def test_a_supervisor_that_cannot_have_its_socket_again_makes_way(f: Fleet) -> None:
    sid = f.launch(play([HOLD], "Done."), name="one")
    f.wait_event(sid, "tool.started")
    first = f.supervisor_pid()
    shutil.rmtree(f.folders.runtime)
    f.folders.runtime.write_text("in the way")
    wait_for("the guardian to say that the supervisor left", lambda: "it starts again in" in f.supervisor_log())
    assert "made again" not in f.supervisor_log(), "nothing is said that is not so"
    f.folders.runtime.unlink()
    (f.folders.worktrees / sid / "notes.txt").unlink()
    f.wait_state(sid, "done")
    assert f.supervisor_pid() != first
    assert f.violations() == []

"""A disk that is full for a while, under a real fleet: the row and the fleet say so, nobody is asked, and everything
goes on by itself.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.budget.ledger_types import Raised, Reserved, decode, to_wire
from harness.eventlog.reader import read, verify
from harness.eventlog.writer import LogWriter
from harness.events import types as t
from tests.fleetlib import HOLD, Fleet, fleet, kill, make_repository, play, wait_for

PATIENCE = 180.0
"""Seconds; a fleet that does several turns on a busy machine takes its time, and only ever the awaited state counts."""
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def small(folder: Path, size: str) -> Iterator[Path]:
    """A real file system of ``size`` on ``folder``; gives the name of a file that can fill it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _libc.mount(b"none", os.fsencode(folder), b"tmpfs", 0, f"size={size},mode=700".encode()) != 0:
        pytest.skip("mounting a small file system needs the rights of root")
    try:
        yield folder / "filler"
    finally:
        _libc.umount2(os.fsencode(folder), 2)


def fill(filler: Path) -> None:
    """Until not one byte more fits."""
    fd = os.open(filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for size in (1 << 16, 1 << 10, 1):
        try:
            while os.write(fd, b"\0" * size) == size:
                pass
        except OSError:
            continue
    os.close(fd)


def warned(f: Fleet) -> str:
    return " ".join(f.json("cost")[0]["fleet"].get("warnings", []))


def limited(f: Fleet, sid: str) -> dict[str, Any]:
    """The row once it says so: a keeper that fell with the disk is first called again."""

    def said() -> dict[str, Any] | None:
        row = f.row(sid)
        return row if row["state"] == "limited" and "goes on once there is room" in row.get("next", "") else None

    row = wait_for("it to wait for room", said, PATIENCE)
    assert row["group"] == "running"
    assert f.json("approvals") == []
    return row


def reserved(f: Fleet) -> list[Reserved]:
    return [r for line in read(f.folders.ledger) if isinstance(r := decode(line), Reserved)]


WORK = play(
    [("exec", {"argv": ["sh", "-c", "echo one >> effects"]})],
    [HOLD],
    [("exec", {"argv": ["sh", "-c", "echo two >> effects"]})],
    "Done.",
)


def undisturbed(f: Fleet, sid: str) -> None:
    """Every effect once, every record whole, nobody asked, nothing parked for a person."""
    row = f.wait_state(sid, "done", timeout=PATIENCE)
    assert (Path(row["worktree"]) / "effects").read_text() == "one\ntwo\n"
    types = [r.type for r in f.records(sid)]
    assert "approval.requested" not in types
    assert not [r for r in f.records(sid) if isinstance(r.body, t.SessionParked)]
    assert verify(f.folders.session(sid).log).ok
    assert verify(f.folders.ledger).ok
    assert f.violations() == []


def test_a_ledger_without_space_makes_sessions_wait() -> None:
    with fleet() as f, small(f.folders.ledger, "128k") as filler:
        # their records do not fit into what is left of the ledger's last page
        more = [[("exec", {"argv": ["echo", str(n)]})] for n in range(6)]
        sid = f.launch(
            play(
                [("exec", {"argv": ["sh", "-c", "echo one >> effects"]})],
                [HOLD],
                *more,
                [("exec", {"argv": ["sh", "-c", "echo two >> effects"]})],
                "Done.",
            )
        )
        f.wait_event_count(sid, "tool.started", 2)
        fill(filler)
        f.release(sid)
        wait_for("the ledger's trouble, in words", lambda: "the ledger cannot be written" in warned(f))
        limited(f, sid)
        before = reserved(f)
        filler.unlink()
        undisturbed(f, sid)
        assert reserved(f)[: len(before)] == before
        assert len(reserved(f)) == f.state(sid).requests
        wait_for("no word of it any more", lambda: "ledger" not in warned(f))
        f.stop()


def test_a_full_disk_of_the_sessions_is_waited_out() -> None:
    with fleet() as f, small(f.folders.sessions, "24m") as filler:
        sid = f.launch(WORK)
        f.wait_event_count(sid, "tool.started", 2)
        fill(filler)
        f.release(sid)
        limited(f, sid)
        assert "is full; free some space" in warned(f)
        filler.unlink()
        undisturbed(f, sid)
        f.stop()


def test_a_keeper_and_a_supervisor_that_fall_while_the_disk_is_full_come_back() -> None:
    """The whole state is on the full disk: the keeper cannot be started, the supervisor cannot take its epoch; both
    only wait.
    """
    with fleet() as f, small(f.folders.state, "32m") as filler:
        sid = f.launch(WORK, repo=None)
        f.wait_event_count(sid, "tool.started", 2)
        pid = f.supervisor_pid()
        fill(filler)
        kill(f.keeper_pid(sid))
        limited(f, sid)
        kill(pid)
        wait_for(
            "the next supervisor",
            lambda: any("harness.supervisor.main" in line and p != pid for p, line in f.processes()),
        )
        filler.unlink()
        row = f.wait_state(sid, "running", "done", "starting")
        if (Path(row["worktree"]) / "notes.txt").exists():
            f.release(sid)
        row = f.wait_state(sid, "done", timeout=PATIENCE)
        assert (Path(row["worktree"]) / "effects").read_text() == "one\ntwo\n"
        assert "approval.requested" not in [r.type for r in f.records(sid)]
        assert f.violations() == []
        f.stop()


def test_a_worktree_that_does_not_fit_is_made_when_there_is_room() -> None:
    with fleet() as f, small(f.folders.worktrees, "256k") as filler:
        f.run("supervisor", "start")
        fill(filler)
        sid = f.launch(play([("exec", {"argv": ["sh", "-c", "echo one >> effects; echo two >> effects"]})], "Done."))
        limited(f, sid)
        filler.unlink()
        undisturbed(f, sid)
        f.stop()


def test_a_repository_on_a_full_disk_is_begun_from_when_there_is_room() -> None:
    with fleet() as f, small(f.root / "small", "2m") as filler:
        repo = make_repository(f.root / "small" / "repo")
        fill(filler)
        sid = f.launch(play("Nothing to do."), repo=repo)
        limited(f, sid)
        filler.unlink()
        f.wait_state(sid, "done")


def test_a_raise_that_the_ledger_cannot_take_follows_its_decision() -> None:
    """Killed between both, and started again: the decision stands, the raise follows by itself, once."""
    with fleet(config="[caps]\nday_usd = 0.000001\n") as f, small(f.folders.ledger, "64k") as filler:
        whole_pages(f.folders.ledger)
        sid = f.launch(play("Done."))
        asked = f.approval(sid)
        fill(filler)
        f.run("approve", asked["approval_id"], "--raise-to", "5")
        decided = f.wait_event(sid, "approval.decided").body
        assert isinstance(decided, t.ApprovalDecided)
        assert raises(f) == []
        old = f.supervisor_pid()
        kill(old)
        wait_for("the next supervisor", lambda: (f.run("supervisor", "start"), f.supervisor_pid())[1] != old)
        limited(f, sid)
        assert raises(f) == []
        filler.unlink()
        f.wait_state(sid, "done", timeout=PATIENCE)
        assert [(r.limit, r.decision) for r in raises(f)] == [(5 * 10**9, decided.decision_id)]
        assert f.violations() == []
        f.stop()


def whole_pages(folder: Path) -> None:
    """A ledger that ends exactly with a page of the disk, so that its next record needs another one."""
    log = LogWriter.open(folder, "ledger")

    def write(source: str) -> int:
        kind, data = to_wire(Raised(cap="fleet.usd", limit=1, base=0, day="2026-01-01", decision=source))
        before = log.size
        log.append(kind, data, actor="supervisor")
        log.commit(True)
        return log.size - before

    bare = write("x") - 1
    write("x" * (4096 - (log.size + bare) % 4096))
    assert log.size % 4096 == 0
    log.close()


def raises(f: Fleet) -> list[Raised]:
    return [r for line in read(f.folders.ledger) if isinstance(r := decode(line), Raised) and r.cap == "day.usd"]

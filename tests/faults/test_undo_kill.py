"""kill -9 of the keeper and of its vault in the middle of a snapshot and of an undo: nothing acknowledged is lost, and
what was begun is finished.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.keeperlib import Keepers, keepers, wait_gone, wait_until
from tests.process.undolib import Session, repository

pytestmark = pytest.mark.sandbox
LARGE = 40 << 20
MANY = 3000


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    with keepers(tmp_path) as fleet:
        yield fleet


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"README.md": "# Thing\n", "src/a.txt": "alpha\n"})


def vault_of(keeper: int) -> int:
    """The vault's process: the child of the keeper that holds a pack open, once there is one."""
    return int(wait_until("the keeper has a vault", lambda: _vault(keeper)))


def _vault(keeper: int) -> int | None:
    for child in Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError):
            for fd in list(Path(f"/proc/{child}/fd").iterdir()):
                with contextlib.suppress(FileNotFoundError):
                    if "/vault/" in os.readlink(fd):
                        return int(child)
    return None


def packed(session: Session) -> int:
    """Bytes in the packs of a session."""
    return sum(path.stat().st_size for path in session.fleet.folder().vault.glob("*.pack"))


def add_large(session: Session) -> None:
    """What the next snapshot has to read for a while."""
    for number in range(4):
        (session.root / f"large{number}").write_bytes(random.Random(number).randbytes(LARGE))


def half_kept(session: Session, before: int) -> int:
    """The vault, stopped in the middle of a snapshot: a part of it is in the pack and the rest is not."""
    wait_until("a part of the snapshot is in the pack", lambda: packed(session) > before)
    vault = vault_of(session.pid)
    os.kill(vault, signal.SIGSTOP)
    assert packed(session) < before + 4 * LARGE, "it was stopped before it was done"
    return vault


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_gone(pid)


def test_a_vault_killed_in_a_snapshot_keeps_it_again(fleet: Keepers, repo: Path) -> None:
    session = Session(fleet, repo)
    first = session.run("echo one > one")[1]["snapshot"]
    add_large(session)
    before = packed(session)
    files = session.files()
    call_id, number = session.begin("rm large*; echo two > two")
    os.kill(half_kept(session, before), signal.SIGKILL)
    assert session.link.reply(number)["started"] is True, "the keeper asked a new vault"
    session.ended(call_id)
    started = session.one("tool.started", call_id=call_id)
    assert session.undo(started["snapshot"])["refused"] == []
    assert session.files() == files
    assert session.undo(first)["refused"] == []
    assert not (session.root / "one").exists()


def test_a_keeper_killed_in_a_snapshot_has_started_nothing(fleet: Keepers, repo: Path) -> None:
    session = Session(fleet, repo)
    first = session.run("echo one > one")[1]["snapshot"]
    add_large(session)
    before = packed(session)
    files = session.files()
    call_id, _ = session.begin("rm large*")
    vault = half_kept(session, before)
    end(session.pid)
    wait_gone(vault)
    session.again(2)
    assert session.find("tool.started", call_id=call_id) is None
    assert session.files() == files
    assert session.link.call("execute", call_id=call_id)["started"] is True
    session.ended(call_id)
    assert session.undo(session.one("tool.started", call_id=call_id)["snapshot"])["refused"] == []
    assert session.files() == files
    assert session.undo(first)["refused"] == []


class Undone:
    """A session whose many files were all changed, and the states that an undo has to bring about."""

    def __init__(self, fleet: Keepers, repo: Path, **spawn: str) -> None:
        session = Session(fleet, repo)
        self.session = session
        session.run(f"mkdir many; for i in $(seq {MANY}); do echo $i > many/$i; done; git add -A; git commit -qm many")
        session.run("echo secret > .env; chmod 600 .env")
        self.wanted = session.state()
        self.call_id, started = session.run(
            "rm -rf .env many src; git reset -q --hard HEAD~1; mkdir many; for i in $(seq 500); do echo new >"
            " many/new$i; done"
        )
        self.snapshot = str(started["snapshot"])
        self.destroyed = session.state()
        assert self.destroyed != self.wanted
        if spawn:
            end(session.pid)
            session.again(2, **spawn)

    def half_done(self) -> int:
        """Ask for the undo and stop the vault when some of the files are back and others are not; its process."""
        self.session.ask_undo(self.snapshot, self.call_id)
        many = self.session.root / "many"
        old = MANY // 10
        wait_until(
            "some files are back", lambda: many.is_dir() and sum(name.isdigit() for name in os.listdir(many)) > old
        )
        vault = vault_of(self.session.pid)
        os.kill(vault, signal.SIGSTOP)
        assert len(os.listdir(many)) < MANY, "it was stopped before it was done"
        return vault

    def check(self, epoch: int) -> None:
        """The undo is finished, by whoever; then it is itself undone."""
        session = self.session
        done = session.wait("undo.ended")
        assert (done.get("error"), done["refused"]) == (None, [])
        begun = session.one("undo.started")
        assert (begun["undo_id"], begun["snapshot"]) == (done["undo_id"], self.snapshot)
        assert session.state() == self.wanted
        assert session.undo(begun["before"], begun["undo_id"])["refused"] == []
        assert session.state() == self.destroyed
        assert session.undo(self.snapshot, self.call_id)["refused"] == []
        assert session.state() == self.wanted
        spare = [name for name in session.files() if b".watchfloor-undo-" in name]
        assert spare == []


@pytest.mark.parametrize("how", ["kill", "block"])
def test_an_undo_on_record_is_carried_out_by_the_next_keeper(fleet: Keepers, repo: Path, how: str) -> None:
    undone = Undone(fleet, repo, fault=f"keeper.undo_started:{how}")
    session = undone.session
    session.ask_undo(undone.snapshot, undone.call_id)
    if how == "block":
        mark = fleet.folder().root / "keeper.err"
        wait_until(
            "the keeper stands at the point",
            lambda: mark.exists() and "block at keeper.undo_started" in mark.read_text(),
        )
        os.kill(session.pid, signal.SIGKILL)
    wait_gone(session.pid)
    assert session.state() == undone.destroyed, "nothing was done before it was on record"
    session.again(3)
    undone.check(3)


def test_a_keeper_killed_in_an_undo_leaves_it_to_the_next(fleet: Keepers, repo: Path) -> None:
    undone = Undone(fleet, repo)
    vault = undone.half_done()
    end(undone.session.pid)
    wait_gone(vault)
    undone.session.again(2)
    undone.check(2)


def test_a_vault_killed_in_an_undo_is_replaced(fleet: Keepers, repo: Path) -> None:
    undone = Undone(fleet, repo)
    os.kill(undone.half_done(), signal.SIGKILL)
    undone.check(1)


def test_both_killed_in_an_undo_again_and_again(fleet: Keepers, repo: Path) -> None:
    undone = Undone(fleet, repo)
    vault = undone.half_done()
    for epoch in (2, 3, 4):
        end(undone.session.pid)
        wait_gone(vault)
        undone.session.again(epoch)
        vault = vault_of(undone.session.pid)
    undone.check(4)

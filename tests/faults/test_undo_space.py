"""No room, or no way to keep the state before a call: the call waits or asks, and nothing is lost."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.eventlog.reader import verify
from harness.events import types as t
from harness.workspace.facts.gather import Kept
from tests.fleetlib import fleet, play, wait_for
from tests.process.keeperlib import Keepers, Refused, allowed, keepers
from tests.process.undolib import Session, repository

pytestmark = pytest.mark.sandbox
_libc = ctypes.CDLL(None, use_errno=True)
FILES: dict[str, bytes | str] = {"README.md": "# Thing\n", "src/a.txt": "alpha\n"}


@pytest.fixture
def small_vault(tmp_path: Path) -> Iterator[Keepers]:
    """Keepers whose vault has a real file system of 1 MiB; the log and the worktree have room."""
    with keepers(tmp_path) as made:
        vault = made.folder().vault
        vault.mkdir(parents=True, mode=0o700)
        for folder in (made.folders.state, made.folder().root):
            folder.chmod(0o700)
        if _libc.mount(b"none", os.fsencode(vault), b"tmpfs", 0, b"size=1m,mode=700") != 0:
            pytest.skip("mounting a small file system needs the rights of root")
        try:
            yield made
        finally:
            _libc.umount2(os.fsencode(vault), 2)


def test_a_full_vault_makes_calls_wait_and_loses_nothing(small_vault: Keepers, tmp_path: Path) -> None:
    session = Session(small_vault, repository(tmp_path / "repo", FILES))
    first = session.run("echo one > one")[1]["snapshot"]
    filler = small_vault.folder().vault / "filler"
    (session.root / "large").write_bytes(random.Random(1).randbytes(400_000))
    filler.write_bytes(bytes(700_000))
    files = session.files()
    call_id, number = session.begin("rm large one")
    for _ in range(3):
        with pytest.raises(Refused, match="cannot be kept") as refused:
            session.link.reply(number)
        assert refused.value.code == "no_space"
        assert session.find("tool.started", call_id=call_id) is None
        assert session.files() == files
        number = session.link.send("execute", call_id=call_id)
    with pytest.raises(Refused) as refused:
        session.link.reply(number)
    with pytest.raises(Refused, match="nothing was undone") as refused:
        session.undo(first)
    assert refused.value.code == "no_space"
    assert session.files() == files
    filler.unlink()
    assert session.link.call("execute", call_id=call_id)["started"] is True
    session.ended(call_id)
    assert session.undo(session.one("tool.started", call_id=call_id)["snapshot"])["refused"] == []
    assert session.files() == files
    assert session.undo(first)["refused"] == []
    assert not (session.root / "one").exists()
    assert verify(small_vault.folder().log).ok


def test_what_a_setting_leaves_out_is_on_record_and_untouched(tmp_path: Path) -> None:
    with keepers(tmp_path) as made:
        session = Session(made, repository(tmp_path / "repo", FILES))
        (session.root / "large").write_bytes(bytes(5000))
        small = {"file_bytes": 1000, "tree_bytes": 1 << 20, "names": 1000, "history_bytes": 1 << 20}
        call_id, started = session.run("rm README.md; echo x >> large", undo_limits=small)
        assert (started["left_out"], started["left_out_names"]) == (1, ["large"])
        done = session.undo(started["snapshot"], call_id)
        assert [line.split(":")[0] for line in done["refused"]] == ["large"]
        assert (session.root / "README.md").read_text() == "# Thing\n"
        assert (session.root / "large").stat().st_size == 5002
        made.kill(session.pid)
        session.again(2)
        assert session.run("true")[1]["left_out"] == 1, "a keeper that nobody told keeps to the last setting"


@pytest.mark.parametrize("wrong", [{"names": -1}, {"names": True}, {"other": 1}, [], "many"])
def test_limits_that_are_none_are_refused(tmp_path: Path, wrong: object) -> None:
    with keepers(tmp_path) as made:
        session = Session(made, repository(tmp_path / "repo", FILES))
        _, number = session.begin("true", undo_limits=wrong)
        with pytest.raises(Refused, match="undo limits") as refused:
            session.link.reply(number)
        assert refused.value.code == "bad_request"


def test_too_many_names_run_only_for_who_was_told(tmp_path: Path) -> None:
    few = {"file_bytes": 1000, "tree_bytes": 1 << 20, "names": 10, "history_bytes": 1 << 20}
    with keepers(tmp_path) as made:
        session = Session(made, repository(tmp_path / "repo", FILES))
        session.run("for i in $(seq 30); do touch f$i; done")
        call_id, number = session.begin("rm f1", undo_limits=few)
        why = session.link.reply(number)["unprotected"]
        assert "more than 10 names" in why
        assert session.find("tool.started", call_id=call_id) is None
        told = session.action("rm f1", Kept(unprotected=why))
        assert told["effects"] == ["no-undo"]
        session.link.append(*allowed(told))
        assert session.link.call("execute", call_id=told["call"])["started"] is True
        session.ended(told["call"])
        assert "snapshot" not in session.one("tool.started", call_id=told["call"])
        assert not (session.root / "f1").exists()


def test_a_session_that_cannot_be_kept_asks_and_runs_after_a_yes() -> None:
    with fleet(config="[undo]\nnames = 200\n") as f:
        make = [("shell", {"script": "for i in $(seq 300); do touch f$i; done"})]
        sid = f.launch(
            play(make, [("shell", {"script": "rm -f f1"})], [("read_file", {"path": "README.md"})], "All done.")
        )
        asked = f.approval(sid)
        card = f.run("approvals", asked["approval_id"]).stdout
        assert "f1" in card
        request = f.wait_event(sid, "approval.requested").body
        assert isinstance(request, t.ApprovalRequested)
        assert request.detail is not None
        assert request.detail["effects"] == ["no-undo"]
        assert (Path(f.row(sid)["worktree"]) / "f1").exists()
        f.approve(asked["approval_id"])
        f.wait_state(sid, "done", "waiting")
        wait_for("the file is gone", lambda: not (Path(f.row(sid)["worktree"]) / "f1").exists())
        bodies = [r.body for r in f.records(sid)]
        assert sum(isinstance(b, t.ApprovalRequested) for b in bodies) == 1, "reading asks nobody"
        assert [b.status for b in bodies if isinstance(b, t.ToolEnded)] == ["ok", "ok", "ok"]
        assert f.violations() == []

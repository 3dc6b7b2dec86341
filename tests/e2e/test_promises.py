"""Promises seen from outside: what was shown is what runs, the key stays out of reach, launches do not meet, attach
finds everything.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
from pathlib import Path

import pytest

from harness.events import types as t
from tests.fleetlib import HOLD, KEY, fleet, git, make_repository, play, wait_for

pytestmark = pytest.mark.sandbox


def test_file_swapped_between_approval_and_execution_never_runs() -> None:
    with fleet() as f:
        marker = f.root / "swapped"
        repo = make_repository(f.root / "repo", {"deploy.sh": "#!/bin/sh\necho fine\n", "README.md": "x\n"})
        os.chmod(repo / "deploy.sh", 0o755)
        git(repo, "commit", "-q", "-am", "executable")
        sid = f.launch(play([("exec", {"argv": ["./deploy.sh"], "access": "unsandboxed"})], "Done."), repo=repo)
        first = f.approval(sid)
        script = Path(f.row(sid)["worktree"]) / "deploy.sh"
        script.write_text(f"#!/bin/sh\ntouch {marker}\n")
        f.approve(first["approval_id"], check=False)
        second = wait_for(
            "a new request that shows the difference",
            lambda: next((a for a in f.json("approvals") if a["approval_id"] != first["approval_id"]), None),
        )
        assert second["action_hash"] != first["action_hash"]
        stale = next(r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalStale))
        assert any("deploy.sh" in line for line in stale.difference)
        assert not marker.exists()
        f.run("reject", second["approval_id"], "--reason", "it changed")
        f.wait_state(sid, "done")
        assert not marker.exists()
        assert f.violations() == []


def test_canary_key_is_nowhere() -> None:
    """The key must not be in the log, blobs, environment or /proc, as files on disk and as a tool sees them."""
    with fleet() as f:
        look = "env; find / -name '*.sock' 2>/dev/null; cat ../../config/* ~/.config/watchfloor/* 2>/dev/null; "
        look += "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'"
        sid = f.launch(play([("shell", {"script": look})], "Done."))
        f.wait_state(sid, "done")
        ended = next(r.body for r in f.records(sid) if isinstance(r.body, t.ToolEnded))
        assert ended.status == "ok", ended
        assert "PATH=" in ended.preview
        needle = KEY.encode()
        for path in f.folders.state.rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert needle not in path.read_bytes(), path
        seen = 0
        for pid, _ in f.processes():
            for name in ("environ", "cmdline"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
                    assert needle not in Path(f"/proc/{pid}/{name}").read_bytes()
                    seen += 1
        assert seen > 0


def test_ten_launches_in_parallel_on_one_repository() -> None:
    with fleet() as f:
        repo = make_repository(f.root / "repo")
        f.run("supervisor", "start")
        goal = play(
            [("write_file", {"path": "new.txt", "content": "x\n"})],
            [("exec", {"argv": ["git", "add", "-A"]})],
            [("exec", {"argv": ["git", "commit", "-qm", "Add new"]})],
            "Done.",
        )
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            sids = list(
                pool.map(lambda i: f.launch(goal, repo=repo, checks=("test -f new.txt",), name=f"job{i}"), range(10))
            )
        assert len(set(sids)) == 10
        for sid in sids:
            assert f.wait_state(sid, "done", timeout=120)["verified"]
        branches = {f.row(sid)["branch"] for sid in sids}
        assert len(branches) == 10
        for branch in branches:
            assert git(repo, "log", "-1", "--format=%s", branch).strip() == "Add new"
        assert git(repo, "status", "--porcelain") == ""
        git(repo, "fsck", "--strict")
        assert f.violations() == []


def test_done_is_what_the_checks_say() -> None:
    with fleet() as f:
        liar = f.launch(play("All done, everything works."), checks=("test -f proof.txt",), name="liar", more=())
        row = f.wait_state(liar, "failed", timeout=120)
        assert not row.get("verified", False)
        honest = f.launch(
            play([("write_file", {"path": "proof.txt", "content": "1\n"})], "Done."),
            checks=("test -f proof.txt",),
            name="honest",
        )
        assert f.wait_state(honest, "done")["verified"]


def test_denied_edited_and_answered() -> None:
    with fleet() as f:
        out = f.root / "out"
        argv = ["/bin/sh", "-c", f"echo original > {out}"]
        ask = [("exec", {"argv": argv, "access": "unsandboxed"})]
        denied = f.launch(play(ask, "Done."), name="denied")
        f.run("reject", f.approval(denied)["approval_id"], "--reason", "not today")
        f.wait_state(denied, "done")
        assert any(isinstance(r.body, t.ToolEnded) and "not today" in r.body.preview for r in f.records(denied))
        assert not out.exists()
        edited = f.launch(play(ask, "Done."), name="edited")
        f.approve(
            f.approval(edited)["approval_id"],
            "--edit",
            json.dumps({"argv": ["/bin/sh", "-c", f"echo edited > {out}"], "access": "unsandboxed"}),
        )
        f.wait_state(edited, "done")
        assert out.read_text() == "edited\n"
        answered = f.launch(play(ask, "Done."), name="answered")
        f.run("answer", f.approval(answered)["approval_id"], "use the other file")
        f.wait_state(answered, "done")
        assert any(
            isinstance(r.body, t.ToolEnded) and "use the other file" in r.body.preview for r in f.records(answered)
        )
        assert out.read_text() == "edited\n"
        assert f.violations() == []


def test_cap_parks_asks_and_holds() -> None:
    with fleet() as f:
        turns = [[("write_file", {"path": f"part{i}.txt", "content": f"{i}\n"})] for i in range(40)]
        sid = f.launch(play(*turns, "Done."), more=("--cap-usd", "0.005"))
        item = f.approval(sid)
        assert item["kind"] == "cap"
        assert set(item["options"]) >= {"raise", "finish", "stop"}
        row = f.row(sid)
        assert row["spent_nano"] + row.get("reserved_nano", 0) <= 5_000_000
        wait_for("the brain to leave", lambda: f.state(sid).lease is None)
        f.approve(item["approval_id"], "--raise-to", "5")
        f.wait_state(sid, "done", timeout=120)
        assert f.violations() == []


def test_each_limit_alone_stops_a_run_within_it() -> None:
    limits = {"usd": ("--cap-usd", "0.003"), "tokens": ("--cap-tokens", "20000"), "wall": ("--cap-wall", "1s")}
    limits |= {"calls": ("--cap-calls", "2")}
    turns = [[("write_file", {"path": f"part{i}.txt", "content": f"{i}\n"})] for i in range(200)]
    with fleet() as f:
        capped = {f.launch(play(*turns, "Done."), name=name, more=more): name for name, more in limits.items()}
        for sid, name in capped.items():
            item = f.approval(sid)
            assert (item["kind"], item["detail"]["cap"]) == ("cap", f"session.{name}")
            wait_for("the brain to leave", lambda sid=sid: f.state(sid).lease is None)
            state = f.state(sid)
            assert name != "usd" or state.spent_nano <= 3_000_000
            assert name != "tokens" or state.usage.total <= 20_000
            assert name != "calls" or state.tool_calls == 2
        assert f.violations() == []


def test_cap_on_tool_calls_parks_without_a_process() -> None:
    with fleet() as f:
        turns = [[("write_file", {"path": f"part{i}.txt", "content": f"{i}\n"})] for i in range(6)]
        sid = f.launch(play(*turns, "Done."), more=("--cap-calls", "3"))
        item = f.approval(sid)
        assert item["detail"]["cap"] == "session.calls"
        wait_for("the brain to leave", lambda: f.state(sid).lease is None)
        assert f.state(sid).tool_calls == 3
        f.approve(item["approval_id"], "--raise-to", "50")
        f.wait_state(sid, "done", timeout=60)
        assert f.violations() == []


def test_pause_and_resume() -> None:
    with fleet() as f:
        sid = f.launch(play([HOLD], [("exec", {"argv": ["true"]})], "Done."))
        f.wait_event(sid, "tool.started")
        f.run("pause", sid)
        f.release(sid)
        f.wait_state(sid, "parked")
        wait_for("the brain to leave", lambda: f.state(sid).lease is None)
        assert sum(r.type == "tool.started" for r in f.records(sid)) == 1
        f.run("resume", sid)
        f.wait_state(sid, "done")


def test_nothing_is_left_behind() -> None:
    with fleet() as f:
        sids = [f.launch(play([("exec", {"argv": ["sleep", "60"]})], "Done."), name=f"n{i}") for i in range(3)]
        for sid in sids:
            f.wait_event(sid, "tool.started")
        f.stop()
        wait_for("every process of the fleet to be gone", lambda: not f.processes())
        assert not f.folders.supervisor_socket.exists()
        assert list(f.folders.keeper_sockets.glob("*.sock")) == []


def test_unsaved_work_is_never_deleted() -> None:
    with fleet() as f:
        sid = f.launch(play([("write_file", {"path": "precious.txt", "content": "x\n"})], "Done."))
        f.wait_state(sid, "done")
        worktree = Path(f.row(sid)["worktree"])
        refused = f.run("rm", sid, check=False)
        assert refused.returncode == 5
        assert "precious.txt" in refused.stderr
        assert (worktree / "precious.txt").exists()
        kept = f.json("rm", sid, "--keep-as-ref")[0]["kept"]
        assert any(sid in k for k in kept)
        assert git(f.root / "repo", "show", f"refs/watchfloor/kept/{sid}:precious.txt") == "x\n"
        assert not worktree.exists()

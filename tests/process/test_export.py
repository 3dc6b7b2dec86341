"""The export of real sessions: checked and read where nothing of the fleet is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from app.client import export_request
from harness.protocol.paths import Folders
from tests.fleetlib import COMMAND, HOLD, KEY, Fleet, fleet, git, play

pytestmark = pytest.mark.sandbox


def elsewhere(f: Fleet, *args: str) -> subprocess.CompletedProcess[str]:
    """The same program on a machine that never saw the fleet."""
    away = f.root / "away"
    places = {name: str(away / name) for name in ("state", "runtime", "config")}
    env = {**f.env, **{f"WATCHFLOOR_{name.upper()}": path for name, path in places.items()}}
    done = subprocess.run(
        [COMMAND, *args],
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=90,
    )
    assert not Folders(*(Path(p) for p in places.values())).supervisor_socket.exists(), "nothing was started for it"
    return done


def test_a_session_in_one_file_is_checked_and_read_without_its_fleet() -> None:
    with fleet() as f:
        big = "x" * 40_000
        write = ("write_file", {"path": "made.txt", "content": big})
        commit = ("shell", {"script": "git add -A; git commit -qm made"})
        sid = f.launch(play([write], [commit], "Done."), checks=("test -e made.txt",), name="maker")
        f.wait_state(sid, "done")
        f.run("checkpoint", sid)
        file = f.root / "out.watchfloor.tar"
        (made,) = f.json("export", "maker", str(file))
        assert made["records"] == f.records(sid)[-1].seq + 1
        assert made["payloads"] >= 1
        assert (made["bytes"], made["file"]) == (file.stat().st_size, str(file))

        deaf = f.root / "deaf.watchfloor.tar"
        asked = subprocess.Popen(
            export_request.COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert asked.stdin is not None
        assert asked.stdout is not None
        assert asked.stderr is not None
        asked.stdout.close()
        asked.stdin.write(export_request.order(f.folders, f.folders.session(sid).root, deaf))
        asked.stdin.close()
        assert (asked.wait(90), asked.stderr.read()) == (0, b""), "who asked was killed"
        assert f.run("verify", str(deaf)).returncode == 0
        deaf.unlink()

        short = f.root / "out.tar"
        short.write_bytes(file.read_bytes())
        beside = subprocess.run(
            [COMMAND, "verify", short.name], cwd=f.root, env=f.env, check=False, capture_output=True
        )
        assert beside.returncode == 0, "the file of this folder is meant, whatever it is called"
        checked = elsewhere(f, "verify", str(file), "--json")
        told = json.loads(checked.stdout)
        assert (checked.returncode, told["ok"], told["sha256"]) == (0, True, made["seal"])
        assert told["about"]["spent_nano"] == f.state(sid).spent_nano
        assert json.loads(elsewhere(f, "score", str(file), "--json").stdout)["outcome"] == "done"
        assert "maker" in elsewhere(f, "brief", str(file)).stdout
        assert elsewhere(f, "logs", str(file)).stdout == f.run("logs", sid).stdout
        clone = f.root / "clone"
        folder = f.root / "parts"
        folder.mkdir()
        subprocess.run(["tar", "xf", str(file), "-C", str(folder), "--strip-components=1"], check=True)
        subprocess.run(["git", "init", "-q", str(clone)], check=True)
        git(clone, "fetch", "-q", str(folder / "work.bundle"), "refs/*:refs/from/*")
        git(f.root, "clone", "-q", str(folder / "work.bundle"), "whole")
        assert (f.root / "whole" / "made.txt").exists(), "a clone checks the branch out"
        refs = git(clone, "for-each-ref", "--format=%(refname)").split()
        assert any("made.txt" in git(clone, "ls-tree", "--name-only", ref) for ref in refs)
        rows = (folder / "ledger.jsonl").read_text().splitlines()
        assert sum("ledger.reserved" in row for row in rows) == f.state(sid).requests

        assert KEY.encode() not in file.read_bytes()
        assert (made["commits"], "--checkpoints takes them" in made["notes"][0]) == (1, True)
        more = f.root / "more.watchfloor.tar"
        assert "hold files that git ignores" in f.run("export", sid, str(more), "--checkpoints").stdout
        noted = elsewhere(f, "verify", str(more)).stdout
        assert "hold files that git ignores" in noted
        assert f"refs/watchfloor/checkpoints/{sid}/1" in noted
        again = f.run("export", sid, str(file), check=False)
        assert (again.returncode, "is there already" in again.stderr) == (5, True)

        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        broken = elsewhere(f, "verify", str(file))
        assert broken.returncode == 1
        assert "DAMAGED" in broken.stdout
        assert elsewhere(f, "verify", str(f.root / "none.watchfloor.tar")).returncode == 5


def test_a_session_at_work_is_exported_as_it_stands_and_a_removed_one_without_its_worktree() -> None:
    with fleet() as f:
        sid = f.launch(play([HOLD], "Done."), name="busy")
        f.wait_event(sid, "tool.started")
        running = f.root / "running.watchfloor.tar"
        f.run("export", sid, str(running), "--thin")
        assert elsewhere(f, "verify", str(running)).returncode == 0
        f.release(sid)
        f.wait_state(sid, "done")
        f.run("rm", "--keep-as-ref", sid)
        removed = f.root / "removed.watchfloor.tar"
        f.run("export", sid, str(removed))
        checked = elsewhere(f, "verify", str(removed))
        assert checked.returncode == 0
        assert "busy" in checked.stdout

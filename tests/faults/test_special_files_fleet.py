"""Agents that put pipes, endless files and links in place of their git folder and worktree: they harm themselves and
nobody else.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cli.base.exits import UNREACHABLE
from harness.protocol import locks
from tests.fleetlib import COMMAND, KEY, Fleet, fleet, play, wait_for

CANARY = "canary-41c9"
BREAK = r"""
d=$(git rev-parse --absolute-git-dir); o=$(git rev-parse --git-path objects)
for n in HEAD index commondir gitdir ORIG_HEAD logs; do rm -rf "$d/$n"; mkfifo "$d/$n"; done
for n in info pack; do rm -rf "$o/$n"; mkfifo "$o/$n"; done
rm -f src/a.txt; mkfifo .gitignore .gitattributes src/.gitignore src/a.txt new
truncate -s 1T huge; ln -s loop loop; mkdir -p "$(printf 'deep/%.0s' $(seq 1 400))"
echo broken
"""
CALL: list[tuple[str, dict[str, Any]]] = [("exec", {"argv": ["true"], "access": "network"})]
SAY = "Done."
BAD = play([("shell", {"script": BREAK})], CALL, CALL, SAY)
GOOD = play([("write_file", {"path": "out.txt", "content": "out\n"})], [("exec", {"argv": ["cat", "out.txt"]})], SAY)
SESSIONS = 7
"""More than there are threads in one shared pool on a small machine."""


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def broken(f: Fleet, name: str) -> str:
    sid = f.launch(BAD, name=name)
    wait_for(f"{name} to have broken its folders", lambda: any(r.type == "tool.ended" for r in f.records(sid)), 60)
    return sid


def refused(f: Fleet, *args: str) -> str:
    done = f.run(*args, check=False)
    assert done.returncode == 5, done.stdout + done.stderr
    return done.stderr


def test_others_launch_work_and_stop_beside_sessions_that_cannot_be_read(f: Fleet) -> None:
    bad = [broken(f, f"bad{number}") for number in range(SESSIONS)]
    assert (f.folders.session(bad[0]).git / "private" / "HEAD").is_fifo()
    good = [f.launch(GOOD, name=f"good{number}") for number in range(2)]
    for sid in good:
        f.wait_state(sid, "done")
    f.run("ls")
    f.run("pause", bad[0])
    f.run("stop", bad[1])
    f.wait_state(bad[1], "stopped", "done", "failed")
    f.run("supervisor", "stop", "--sessions", "stop")
    wait_for("every process of the fleet to be gone", lambda: not f.processes())
    assert locks.kept(f.folders) == []
    assert not locks.held(f.folders.supervisor_lock)
    for sid in (*bad, *good):
        assert f.state(sid).ended is not None


def test_a_head_that_is_a_link_to_a_secret_brings_it_nowhere(f: Fleet) -> None:
    secret = f.root / "id_rsa"
    key = f.folders.config / "key"
    secret.write_text(f"{CANARY}\n")
    for number, target in enumerate((secret, key)):
        script = (
            f'd=$(git rev-parse --absolute-git-dir); rm "$d/HEAD"; ln -s {target} "$d/HEAD"; rm -f src/a.txt; ln -s'
            f" {target} src/a.txt"
        )
        read = [("exec", {"argv": ["cat", "src/a.txt"], "access": "network"})]
        sid = f.launch(
            play([("shell", {"script": script})], read, [("read_file", {"path": "src/a.txt"})], SAY),
            name=f"link{number}",
        )
        approval = f.approval(sid)
        cards = (
            f.run("approvals", "--json").stdout
            + f.run("show", sid, "--json").stdout
            + f.run("diff", sid, check=False).stdout
        )
        f.approve(str(approval["approval_id"]))
        if (asked := _next_request(f, sid, str(approval["approval_id"]))) is not None:
            f.run("reject", asked, "--reason", "no")
        f.wait_state(sid, "done")
        stored = b"".join(
            path.read_bytes()
            for path in f.folders.session(sid).root.rglob("*")
            if path.is_file() and not path.is_symlink()
        )
        for word in (CANARY, KEY):
            assert word not in cards
            assert word.encode() not in stored, "neither the log, nor a blob, nor a snapshot holds it"
            assert word not in f.supervisor_log()


def _next_request(f: Fleet, sid: str, before: str) -> str | None:
    """The request that reading through the link makes, unless policy denies it at once and the session ends."""

    def probe() -> str:
        if f.row(sid)["state"] == "done":
            return "done"
        return next(
            (str(a["approval_id"]) for a in f.json("approvals") if a["sid"] == sid and a["approval_id"] != before), ""
        )

    found = wait_for("the next request or the end", probe)
    return None if found == "done" else found


def gone(path: Path) -> None:
    shutil.rmtree(path)


def instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        make(path)

    return damage


PLACES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "private folder gone": ("git/private", gone),
    "private folder a file": ("git/private", instead(lambda p: p.write_text("x"))),
    "private folder a link": ("git/private", instead(lambda p: p.symlink_to("/etc"))),
    "private folder a pipe": ("git/private", instead(os.mkfifo)),
    "record garbage": ("git/workspace.json", instead(lambda p: p.write_bytes(b"\xff{"))),
    "record gone": ("git/workspace.json", Path.unlink),
    "record a pipe": ("git/workspace.json", instead(os.mkfifo)),
    "objects gone": ("git/objects", gone),
    "git folder gone": ("git", gone),
    "worktree gone": ("worktree", gone),
    "worktree a file": ("worktree", instead(lambda p: p.write_text("x"))),
    "git file a folder": ("worktree/.git", instead(Path.mkdir)),
    "git file a pipe": ("worktree/.git", instead(os.mkfifo)),
}


def test_a_damaged_session_can_be_paused_stopped_and_removed(f: Fleet) -> None:
    sids = {what: f.launch(play(CALL, SAY), name=what.replace(" ", "-")) for what in PLACES}
    for what, sid in sids.items():
        f.wait_state(sid, "waiting")
        place, damage = PLACES[what]
        worktree = f.folders.worktrees / sid
        (worktree / "unsaved.txt").write_text("work\n")
        damage(
            worktree / place.removeprefix("worktree").lstrip("/")
            if place.startswith("worktree")
            else f.folders.session(sid).root / place
        )
    for what, sid in sids.items():
        f.run("diff", sid, check=False)
        f.run("pause", sid)
        f.run("resume", sid)
        f.run("stop", sid)
        f.wait_state(sid, "stopped")
        wait_for(f"the keeper of {what} to leave", lambda sid=sid: not locks.held(f.folders.session(sid).lock), 30)
        if what == "worktree gone":  # there is nothing left that could be lost: it committed nothing
            f.run("rm", sid)
            continue
        done = f.run("rm", sid, check=False)
        assert done.returncode == 5, (what, done.stdout, done.stderr)
        told = done.stderr
        if "cannot be examined" in told:
            assert f"watchfloor rm --force {sid}" in told, what
            assert "is deleted" in told, what
        else:
            assert "unsaved.txt" in told or "holds" in told, (what, told)
        assert f.folders.session(sid).root.is_dir(), "a refusal removes nothing"
        removed = json.loads(f.run("rm", "--force", sid, "--json").stdout)
        assert removed["kept"] or removed["lost"], what
        assert not f.folders.session(sid).root.exists(), what
        assert not os.path.lexists(f.folders.worktrees / sid), what
    listed = subprocess.run(
        ["git", "worktree", "list", "--porcelain"], cwd=f.repository(), capture_output=True, text=True, check=True
    ).stdout
    assert str(f.folders.worktrees) not in listed
    assert f.violations() == []


def test_the_help_says_what_force_does() -> None:
    shown = subprocess.run([COMMAND, "rm", "--help"], capture_output=True, text=True, check=True).stdout
    assert "what is in its worktree is deleted" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("place", "name", "code"),
    [
        ("state", "IDENTITY", UNREACHABLE),
        ("state", "VERSION", UNREACHABLE),
        ("state", "epoch", UNREACHABLE),
        ("runtime", "owner.json", UNREACHABLE),
        ("runtime", "supervisor.json", 0),
        ("runtime", "supervisor.stopping", 0),
    ],
)
def test_a_pipe_in_place_of_a_file_of_ours_holds_up_nobody(f: Fleet, place: str, name: str, code: int) -> None:
    """It is told by name, or done without; no command waits for somebody who writes into it."""
    f.run("supervisor", "start")
    f.run("supervisor", "stop")
    path: Path = getattr(f.folders, place) / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    done = f.run("jobs", check=False)
    assert done.returncode == code, done.stderr
    if code:
        assert f"{path}" in done.stderr
        assert "not a file" in done.stderr
    else:
        f.run("supervisor", "stop")

"""`watchfloor pr` with real git: what is pushed, what the person's program is told, and a kill in the middle."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import pytest

from app.review import publishing
from harness.events import types as t
from harness.events.work import pull_events as p
from harness.linux.proc import descendants
from harness.protocol.client import Client, SupervisorError
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import COMMAND, KEY, Fleet, alive, fleet, git, kill, play, wait_for

pytestmark = pytest.mark.sandbox
PROGRAM = """#!/bin/sh
python3 - "$@" <<'END'
import json, os, subprocess, sys
seen = {"argv": sys.argv[1:], "files": sorted(os.listdir(".")), "token": os.environ.get("GH_TOKEN", "")}
seen["remote"] = subprocess.run(["git", "remote", "get-url", "origin"], capture_output=True, text=True).stdout.strip()
open(os.environ["SEEN"], "w").write(json.dumps(seen))
END
cat "$SAYS"
exit $(cat "$SAYS.code")
"""
TOKEN = f"ghp_{'a1' * 18}"
WORK = ("shell", {"script": "echo new > new.txt; git add new.txt; git commit -qm 'Add new.txt'"})


@pytest.fixture
def bin_(tmp_path: Path) -> Path:
    """A folder of programs, with a ``gh``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "gh").write_text(PROGRAM)
    (folder / "gh").chmod(0o755)
    says(folder, "https://github.com/acme/shop/pull/7\n", 0)
    return folder


def says(folder: Path, text: str, code: int) -> None:
    (folder / "says").write_text(text)
    (folder / "says.code").write_text(f"{code}\n")


def ready(f: Fleet, tmp_path: Path, bin_: Path) -> tuple[str, Path]:
    """A session that is done, and its bare remote."""
    repo = f.repository()
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(repo), str(bare))
    git(repo, "remote", "add", "origin", str(bare))
    f.extra = {
        "PATH": f"{bin_}:{f.env['PATH']}",
        "SEEN": str(bin_ / "seen"),
        "SAYS": str(bin_ / "says"),
        "GH_TOKEN": "of the person",
    }
    sid = f.launch(play([WORK], "Done."), checks=("test -e new.txt", f": {TOKEN}"), name="maker")
    f.wait_state(sid, "done")
    return sid, bare


def seen_of(f: Fleet, sid: str) -> str:
    """What somebody who reads its diff now has seen."""
    return str(f.call("diff", sid=sid)["seen"])


def test_it_is_pushed_and_the_persons_program_opens_the_request(
    tmp_path: Path, bin_: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fleet() as f:
        sid, bare = ready(f, tmp_path, bin_)
        worktree = Path(f.row(sid)["worktree"])
        read = seen_of(f, sid)
        (worktree / "gh").write_text("#!/bin/sh\necho trap > ../trap\n")
        (worktree / "gh").chmod(0o755)
        loose = f.run("pr", "--repo", "acme/shop", "--with", "gh", sid, check=False)
        assert (loose.returncode, "gh" in loose.stderr, "--commit" in loose.stderr) == (5, True, True)
        (worktree / "gh").unlink()

        none = f.run("pr", sid, check=False)
        assert (none.returncode, "--repo OWNER/NAME" in none.stderr) == (5, True)
        missing = f.run("pr", "--repo", "acme/shop", "--with", "glab", sid, check=False)
        assert (missing.returncode, "glab is not in PATH" in missing.stderr) == (5, True)
        away = f.run("pr", "--remote", "nowhere", sid, check=False)
        assert (away.returncode, "there is no remote 'nowhere'" in away.stderr) == (5, True)
        shown = f.run(
            "pr", "--repo", "acme/shop", "--with", "gh", "--as", "refs/heads/feature", "--dry-run", sid
        ).stdout
        assert "would push 1 commit to feature at origin" in shown
        for name, value in (f.env | f.extra).items():
            monkeypatch.setenv(name, value)
        from_screen = publishing.run(
            f.folders, sid, publishing.PREVIEW, "--repo=acme/shop", "--with=gh", "--as=feature"
        )
        assert asyncio.run(from_screen) == (True, shown.strip())
        refused, why = asyncio.run(publishing.run(f.folders, sid, publishing.PREVIEW))
        assert (refused, "--repo OWNER/NAME" in why) == (False, True)
        assert not (bin_ / "seen").exists()
        assert "feature" not in git(bare, "branch")

        for hidden, what in ((TOKEN, "a token"), (KEY, "a key of this fleet")):
            kept = f.run("pr", "--repo", "acme/shop", "--with", "gh", "--title", f"use {hidden}", sid, check=False)
            assert (kept.returncode, f"nothing was pushed: its title looks like {what}" in kept.stderr) == (5, True)
            assert hidden not in kept.stderr
        assert len(git(bare, "branch").split("\n")) == 2, "nothing but main"

        args = ("--repo", "acme/shop", "--with", "gh", "--as", "feature", "--into", "main")
        said = f.run("pr", f"--seen={read}", *args, sid).stdout
        assert "request opened: https://github.com/acme/shop/pull/7" in said
        assert git(bare, "log", "-1", "--format=%s", "feature") == "Add new.txt\n"
        seen = json.loads((bin_ / "seen").read_text())
        assert (seen["files"], seen["remote"], seen["token"]) == ([".git"], str(bare), "of the person")
        told = seen["argv"]
        assert told[:4] == ["pr", "create", "--repo", "acme/shop"]
        assert (told[told.index("--head") + 1], told[told.index("--base") + 1]) == ("feature", "main")
        assert told[told.index("--title") + 1] == "Add new.txt"
        assert "passes: ` test -e new.txt `" in told[told.index("--body") + 1]
        assert TOKEN not in told[told.index("--body") + 1]
        assert "passes: left out: it looks like a token" in told[told.index("--body") + 1]
        assert f.row(sid)["detail"].startswith("request https://github.com/acme/shop/pull/7")
        assert f.row(sid)["group"] == "to review"
        judged = [r.body for r in f.records(sid) if isinstance(r.body, t.ToolJudged) and r.body.rule == "you-push"]
        assert len(judged) == 1, "on record as a call, by the person's word"
        assert f.json("score", sid)[0]["calls"] == 1, "it is no work of the agent's"

        says(bin_, "a pull request for branch feature already exists:\nhttps://github.com/acme/shop/pull/7\n", 1)
        assert "there already" in f.run("pr", *args, sid).stdout
        says(bin_, "gh: not logged in \x1b[2J\n", 4)
        failed = f.run("pr", *args, sid, check=False)
        assert (failed.returncode, "not logged in" in failed.stdout, "\x1b" in failed.stdout) == (1, True, False)
        assert not (worktree.parent / "trap").exists()
        says(bin_, "https://github.com/acme/shop/pull/8\n", 0)
        (worktree / "later").write_text("x")
        now = seen_of(f, sid)
        tip = git(worktree, "rev-parse", "HEAD")
        args = ("--commit", "--repo", "acme/shop", "--with", "gh", "--as", "second", sid)
        for more in ((), ("--dry-run",), ("--push-only",)):
            other = f.run("pr", f"--seen={read}", *more, *args, check=False)
            assert (other.returncode, "other work now than you looked at" in other.stderr) == (5, True)
        assert (git(worktree, "rev-parse", "HEAD"), "second" in git(bare, "branch")) == (tip, False), "nothing is done"
        shown = f.run("pr", f"--seen={now}", "--dry-run", *args).stdout.splitlines()
        assert shown[0].endswith(f"would push 2 commits to second at origin ({bare})")
        assert shown[1] == "would first commit 1 file: later"
        assert f"Session {sid}." in shown, "its commit has no name yet"
        assert git(worktree, "rev-parse", "HEAD") == tip, "a preview commits nothing"
        f.run("pr", f"--seen={now}", *args)
        told = json.loads((bin_ / "seen").read_text())["argv"]
        head = git(bare, "rev-parse", "second").strip()
        assert told[told.index("--title") + 1] == shown[3]
        assert git(bare, "show", "second:later") == "x"
        assert f"Session {sid}, at {head[:12]}." in told[told.index("--body") + 1]
        assert f.run("rm", sid, check=False).returncode == 0, "what is pushed is saved"
        assert f.violations() == []


def test_a_kill_in_the_middle_of_a_push_loses_neither_the_push_nor_the_session(tmp_path: Path, bin_: Path) -> None:
    with fleet() as f:
        sid, bare = ready(f, tmp_path, bin_)
        hold = tmp_path / "hold"
        came = tmp_path / "came"
        hold.write_text("")
        hook = bare / "hooks" / "pre-receive"
        hook.write_text(f"#!/bin/sh\n: > {came}\nwhile [ -e {hold} ]; do sleep 0.02; done\n")
        hook.chmod(0o755)
        doomed = subprocess.Popen(
            [COMMAND, "pr", "--push-only", sid],
            env=f.env | f.extra,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        wait_for("the push to be at the remote", came.exists)
        kill(f.supervisor_pid())
        doomed.communicate(timeout=60)
        assert doomed.returncode == 3
        f.run("supervisor", "start")
        hold.unlink()
        wait_for("the push to be settled", lambda: f.state(sid).pulling.ended)
        ended = f.state(sid).pulling.ended
        assert ended is not None
        assert ended.outcome == p.PUSHED, ended.why
        assert git(bare, "rev-parse", ended.branch).strip() == ended.head
        wait_for("its keeper to leave", lambda: f.row(sid)["state"] == "done" and not f.state(sid).calls.open)
        assert "pushed" in f.run("pr", "--push-only", sid).stdout, "again changes nothing"

        git(
            bare, "update-ref", f"refs/heads/{ended.branch}", git(bare, "commit-tree", "main^{tree}", "-m", "x").strip()
        )
        refused = f.run("pr", "--push-only", sid, check=False)
        assert (refused.returncode, "not pushed" in refused.stdout) == (1, True)
        assert f.run("pr", "--push-only", "--force", sid).returncode == 0
        assert git(bare, "rev-parse", ended.branch).strip() == ended.head
        assert f.violations() == []


def from_screen(f: Fleet, sid: str, *options: str) -> tuple[bool, str]:
    """What the review's question is told, in its own words."""
    return asyncio.run(publishing.run(f.folders, sid, "--repo=acme/shop", "--with=gh", "--as=feature", *options))


@pytest.mark.parametrize("how", ["url", "pushurl"])
def test_a_remote_that_moved_since_it_was_shown_gets_nothing(
    tmp_path: Path, bin_: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with fleet() as f:
        sid, bare = ready(f, tmp_path, bin_)
        for name, value in (f.env | f.extra).items():
            monkeypatch.setenv(name, value)
        other = tmp_path / "other.git"
        git(tmp_path, "clone", "-q", "--bare", str(bare), str(other))
        able, preview = from_screen(f, sid, publishing.PREVIEW)
        assert (able, f"feature at origin ({bare})" in preview) == (True, True)

        git(f.repository(), "config", f"remote.origin.{how}", str(other))
        seen = seen_of(f, sid)
        options = (f"--seen={seen}", f"--shown={publishing.named(preview)}")
        sent, said = from_screen(f, sid, *options)
        assert (sent, "nothing was pushed" in said, str(other) in said) == (False, True, True), said
        with Client(UnixSocket(f.folders.supervisor_socket)) as client, pytest.raises(SupervisorError) as stale:
            client.call("pull", sid=sid, branch="feature", seen=seen, address=str(bare))
        assert (stale.value.code, str(other) in stale.value.message) == ("stale", True)
        for remote in (bare, other):
            assert "feature" not in git(remote, "branch")
        assert not (bin_ / "seen").exists()
        assert f.state(sid).pulling.ended is None, "nothing was begun"

        able, preview = from_screen(f, sid, publishing.PREVIEW)
        assert (able, f"feature at origin ({other})" in preview) == (True, True), "the new address is shown"
        assert from_screen(f, sid, f"--seen={seen}", f"--shown={publishing.named(preview)}")[0]
        assert ("feature" in git(bare, "branch"), "feature" in git(other, "branch")) == (False, True)
        assert f.violations() == []


def test_a_push_that_failed_after_its_commit_is_tried_again_with_a_new_preview(
    tmp_path: Path, bin_: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fleet() as f:
        sid, bare = ready(f, tmp_path, bin_)
        for name, value in (f.env | f.extra).items():
            monkeypatch.setenv(name, value)
        worktree = Path(f.row(sid)["worktree"])
        (worktree / "later").write_text("x")
        hook = bare / "hooks" / "pre-receive"
        hook.write_text("#!/bin/sh\necho closed for today >&2\nexit 1\n")
        hook.chmod(0o755)
        options = ("--commit", f"--seen={seen_of(f, sid)}")
        _, before = from_screen(f, sid, publishing.PREVIEW, *options)
        assert "would first commit 1 file: later" in before
        sent, said = from_screen(f, sid, *options, f"--shown={publishing.named(before)}")
        assert (sent, "closed for today" in said) == (False, True), said
        hook.unlink()

        sent, said = from_screen(f, sid, *options, f"--shown={publishing.named(before)}")
        assert (sent, "not what you read any more" in said) == (False, True), "its commit is made by now"
        assert "feature" not in git(bare, "branch")
        able, after = from_screen(f, sid, publishing.PREVIEW, *options)
        assert (able, "would first commit" in after) == (True, False), after
        (worktree / "more").write_text("y")
        sent, said = from_screen(f, sid, *options, f"--shown={publishing.named(after)}")
        assert (sent, "other work now than you looked at" in said) == (False, True), said
        (worktree / "more").unlink()
        sent, said = from_screen(f, sid, *options, f"--shown={publishing.named(after)}")
        assert sent, said
        assert git(bare, "show", "feature:later") == "x"
        assert f.violations() == []


def test_a_program_that_hangs_is_ended_with_all_that_it_waits_for(tmp_path: Path, bin_: Path) -> None:
    with fleet() as f:
        sid, bare = ready(f, tmp_path, bin_)
        hangs = tmp_path / "hangs"
        (bin_ / "gh").write_text(f"#!/bin/sh\n(echo $$ > {hangs}; exec tail -f /dev/null)\n")
        args = [COMMAND, "pr", "--repo", "acme/shop", "--with", "gh", "--as", "feature", sid]
        asked = subprocess.Popen(args, env=f.env | f.extra, stdout=subprocess.PIPE, text=True)
        wait_for("the program to wait", lambda: hangs.exists() and _below(asked.pid))
        below = _below(asked.pid)
        asked.send_signal(signal.SIGINT)
        said, _ = asked.communicate(timeout=60)
        assert "the work is pushed, and gh was stopped" in said
        assert "feature" in git(bare, "branch")
        wait_for("all of it to be gone", lambda: not any(alive(pid) for pid in below))


def _below(pid: int) -> list[int]:
    """What runs below a command that waits for two programs at least."""
    found = descendants(pid)
    return found if len(found) > 1 else []

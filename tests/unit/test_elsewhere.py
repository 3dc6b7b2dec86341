"""What the card of a deletion says that something else has, asked of real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.domain.actions.action import ExecAction, Profile
from harness.workspace.facts.deletion_effects import going
from tests.fleetlib import git, make_repository


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A checkout outside the session's worktree."""
    return make_repository(tmp_path / "tally", {"a.txt": "alpha\n", "src/b.txt": "beta\n", "src/c.txt": "gamma\n"})


def said(tmp_path: Path, *names: Path) -> list[str]:
    """What is said of each name that one ``rm -rf`` takes away; ``!`` marks what nothing else has."""
    root = tmp_path / "worktree"
    root.mkdir(exist_ok=True)
    argv = ("rm", "-rf", *map(str, names))
    action = ExecAction(
        tool="exec",
        sandbox=Profile(worktree=str(root)),
        cwd=str(root),
        access="unsandboxed",
        argv=argv,
        pre={"snapshot": "a"},
    )
    return [one.kept or f"! {one.lacks}" for one in going(action).going]


def test_what_is_committed_says_where_and_whether_a_remote_has_it(tmp_path: Path, home: Path) -> None:
    assert said(tmp_path, home / "a.txt", home / "src") == ["committed in tally (main), which has no remote"] * 2
    remote = tmp_path / "far.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(home, "remote", "add", "origin", str(remote))
    git(home, "push", "-q", "origin", "main")
    assert said(tmp_path, home / "a.txt") == ["committed in tally (main), and on origin/main when it was last asked"]
    (home / "d.txt").write_text("delta\n")
    git(home, "add", "d.txt")
    git(home, "commit", "-q", "-m", "more")
    assert said(tmp_path, home / "d.txt") == ["committed in tally (main), on no remote that is known"]


def test_what_is_in_no_commit_is_a_warning_that_says_so(tmp_path: Path, home: Path) -> None:
    (home / "new.txt").write_text("nobody has this\n")
    (home / "a.txt").write_text("changed since\n")
    (home / "src" / "d.txt").write_text("new\n")
    assert said(tmp_path, home / "new.txt", home / "a.txt", home / "src") == [
        "! it is in no commit of tally and in no other checkout",
        "! tally (main) has an earlier content of it, nothing has this one",
        "! 1 of 3 are not committed in tally (main): d.txt",
    ]
    alone = tmp_path / "alone"
    alone.write_text("in no repository\n")
    assert said(tmp_path, alone) == ["! "]


def test_an_earlier_commit_or_another_checkout_has_it(tmp_path: Path, home: Path) -> None:
    git(home, "switch", "-q", "-c", "side")
    (home / "once.txt").write_text("once\n")
    git(home, "add", "once.txt")
    git(home, "commit", "-q", "-m", "once")
    git(home, "switch", "-q", "main")
    (home / "once.txt").write_text("once\n")
    git(home, "worktree", "add", "-q", "--detach", str(tmp_path / "second"))
    for root in (home, tmp_path / "second"):
        (root / ".env").write_text("PORT=1\n")
    assert said(tmp_path, home / "once.txt") == ["in an earlier commit of tally (side), which has no remote"]
    assert said(tmp_path, home / ".env") == [f"the checkout {tmp_path / 'second'} has the same"]
    both = said(tmp_path, home / ".env", tmp_path / "second")
    assert both[0] == "! it is in no commit of tally and in no other checkout", "that copy goes too"


def test_a_repository_that_goes_itself_keeps_nothing(tmp_path: Path, home: Path) -> None:
    gone = "! a repository goes with it, 1 commit of which is on no remote that is known"
    assert said(tmp_path, home, home / ".git") == [gone, gone]
    assert said(tmp_path, home / "a.txt", home / ".git") == ["! ", gone], "its commits go with the same command"
    assert said(tmp_path, home / ".git" / "config") == ["! it is of the repository tally itself"]
    remote = tmp_path / "far.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(home, "remote", "add", "origin", str(remote))
    git(home, "push", "-q", "origin", "main")
    assert said(tmp_path, home) == [
        "! a repository goes with it: all commits were on a remote when it was last asked;"
        " what is not committed was not looked at"
    ]


def test_nothing_of_a_hostile_repository_runs_or_is_waited_for(tmp_path: Path, home: Path) -> None:
    ran = tmp_path / "ran"
    for name in ("core.fsmonitor", "core.sshCommand", "filter.x.clean", "filter.x.process", "diff.x.textconv"):
        git(home, "config", name, f"touch {ran}")
    (home / ".gitattributes").write_text("* filter=x diff=x\n")
    os.mkfifo(home / "pipe")
    (home / "loose").write_text("x")
    assert said(tmp_path, home / "loose", home / "pipe") == [
        "! it is in no commit of tally and in no other checkout",
        "! it cannot be compared with what tally (main) has",
    ]
    assert not ran.exists()
    odd = tmp_path / "odd"
    odd.mkdir()
    os.mkfifo(odd / ".git")
    (odd / "file").write_text("x")
    assert said(tmp_path, odd / "file") == ["! "]
    subprocess.run(
        ["git", "config", "--file", str(home / ".git/config"), "core.repositoryformatversion", "99"], check=True
    )
    assert said(tmp_path, home / "a.txt") == ["! "], "git refuses it: nothing is claimed"

"""A repository in which another git is at work, or was: an end waits for it, nobody is asked, no commit is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleetlib import HOLD, Fleet, fleet, git, play, wait_for

COMMITS = ("exec", {"argv": ["sh", "-c", "echo x > x.txt && git add -A && git commit -qm 'the work'"]})


def subjects(repo: Path, branch: str) -> list[str]:
    return git(repo, "log", "--format=%s", branch).splitlines()


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def test_a_branch_that_another_git_locks_gets_its_commits_once_it_is_free(f: Fleet) -> None:
    repo = f.repository()
    sid = f.launch(play([HOLD], [COMMITS], "Done."), checks=("test -e x.txt",))
    f.wait_event(sid, "tool.started")
    branch = f.row(sid)["branch"]
    lock = repo / ".git/refs/heads" / f"{branch}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    f.release(sid)
    f.wait_event(sid, "lease.ended")
    told = wait_for("the row to say so", lambda: found if "another git" in (found := f.row(sid)["detail"]) else "")
    assert f"{lock.name}': File exists" in told
    assert f.requests() == []
    assert subjects(repo, branch) == ["start"]
    lock.unlink()
    wait_for("the branch to have the work", lambda: subjects(repo, branch) == ["the work", "start"])
    wait_for("its end to be put away", lambda: "another git" not in f.row(sid)["detail"])


def test_a_lock_that_stays_does_not_keep_everything_from_stopping(f: Fleet) -> None:
    sid = f.launch(play([HOLD], [COMMITS], "Done."), checks=("test -e x.txt",))
    f.wait_event(sid, "tool.started")
    lock = f.repository() / ".git/refs/heads" / f"{f.row(sid)['branch']}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    f.release(sid)
    wait_for("the row to say so", lambda: "another git" in f.row(sid)["detail"])
    assert f.run("supervisor", "stop", "--sessions", "stop").returncode == 0
    wait_for("everything to be gone", lambda: not f.processes())
    assert "its newest commits are not on its branch yet" in f.json("ls")[0]["detail"], "where no supervisor is, too"
    lock.unlink()
    f.run("merge", sid)
    assert "not on its branch" not in f.row(sid)["detail"]

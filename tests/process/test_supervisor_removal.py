"""`watchfloor rm` on a whole fleet: what a push of the session brought to a remote is saved, everything else stops
it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleetlib import fleet, git, play, wait_for

pytestmark = pytest.mark.fence
COMMIT = ("shell", {"script": "echo work > work.txt; git add work.txt; git commit -qm work"})


def test_a_commit_that_the_session_pushed_counts_as_saved(tmp_path: Path) -> None:
    with fleet() as f:
        git(f.root, "clone", "-q", "--bare", str(f.repository()), str(tmp_path / "up.git"))
        git(f.root / "repo", "remote", "add", "origin", str(tmp_path / "up.git"))
        push = ("exec", {"argv": ["git", "push", "origin", "HEAD:refs/heads/topic"]})
        sid = f.launch(play([COMMIT], [push], "Done."))
        wait_for("the push to ask", lambda: f.json("approvals"))
        f.approve(f.approval(sid)["approval_id"])
        f.wait_state(sid, "done")
        assert git(tmp_path / "up.git", "log", "-1", "--format=%s", "topic").strip() == "work"
        assert f.json("rm", sid)[0]["kept"] == []
        assert (
            git(f.root / "repo", "for-each-ref", "--format=%(refname)", "refs/heads/watchfloor", "refs/watchfloor")
            == ""
        )


def test_a_commit_whose_push_was_denied_is_unsaved(tmp_path: Path) -> None:
    with fleet() as f:
        git(f.root, "clone", "-q", "--bare", str(f.repository()), str(tmp_path / "up.git"))
        git(f.root / "repo", "remote", "add", "origin", str(tmp_path / "up.git"))
        push = ("exec", {"argv": ["git", "push", "origin", "HEAD:refs/heads/topic"]})
        sid = f.launch(play([COMMIT], [push], "Done."))
        wait_for("the push to ask", lambda: f.json("approvals"))
        f.run("reject", f.approval(sid)["approval_id"], "--reason", "not now")
        f.wait_state(sid, "done")
        refused = f.run("rm", sid, check=False)
        assert refused.returncode == 5
        assert "1 commits" in refused.stderr


def test_a_nested_repository_is_named_and_kept() -> None:
    with fleet() as f:
        make = (
            "git init -q inner; cd inner; echo x > x; git add x; git commit -qm inner; cd ..; git add inner; git commit"
            " -qm link"
        )
        sid = f.launch(play([("shell", {"script": make})], "Done."))
        f.wait_state(sid, "done")
        refused = f.run("rm", sid, check=False)
        assert refused.returncode == 5
        assert "inner/" in refused.stderr
        assert f.json("rm", sid, "--keep-as-ref")[0]["kept"] == [f"refs/watchfloor/kept/{sid}"]
        assert git(f.root / "repo", "show", f"refs/watchfloor/kept/{sid}:inner/x") == "x\n"
        assert git(f.root / "repo", "ls-tree", "--name-only", f"refs/watchfloor/kept/{sid}:inner").split() == [
            ".git.watchfloor.tar",
            "x",
        ]

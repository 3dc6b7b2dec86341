"""`watchfloor rm` on a whole fleet: what a push of the session brought to a remote is saved, everything else stops
it, and log and costs stay until they are purged.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.review import review_store
from app.review.comments import Review
from tests.fleetlib import Fleet, fleet, git, play, wait_for

pytestmark = pytest.mark.sandbox
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
        spent = f.row(sid)["spent_nano"]
        early = f.run("purge", sid, check=False)
        assert (early.returncode, "remove it first" in early.stderr) == (5, True)
        gone = f.json("rm", sid)[0]
        assert (gone["kept"], gone["archived"]) == ([], True)
        assert (
            git(f.root / "repo", "for-each-ref", "--format=%(refname)", "refs/heads/watchfloor", "refs/watchfloor")
            == ""
        )
        _stays_until_it_is_purged(f, sid, spent)


def _stays_until_it_is_purged(f: Fleet, sid: str, spent: int) -> None:
    assert f.json("ls") == []
    assert not f.folders.session(sid).root.exists()
    assert not (f.folders.worktrees / sid).exists()
    f.run("supervisor", "stop")
    assert [(one["sid"], one["state"], one["spent_nano"]) for one in f.json("ls", "--archived")] == [
        (sid, "done", spent)
    ]
    assert spent > 0
    assert sid in f.run("ls", "--archived").stdout
    assert "session.ended" in f.run("logs", sid[:8], "--json").stdout
    for verb in ("diff", "merge", "continue"):
        removed = f.run(verb, sid, check=False)
        assert (removed.returncode, "was removed, so its worktree is gone" in removed.stderr) == (4, True)
        assert f"watchfloor logs {sid}" in removed.stderr
    [archived] = f.json("ls", "--archived")
    for wanted in (sid, sid[:8], archived["name"]):
        assert [(one["log"], one["ok"]) for one in f.json("verify", wanted)] == [(sid, True)]
    assert {path.name for path in (f.folders.archive / sid).iterdir() if path.is_dir()} <= {"blobs", "log"}
    wrong = f.run("purge", sid, "nobody", check=False)
    assert (wrong.returncode, "'nobody'" in wrong.stderr) == (4, True)
    assert f.run("purge", sid[:8], check=False).returncode == 4
    asked = f.run("purge", sid, check=False)
    assert (asked.returncode, "--yes" in asked.stderr, archived["goal"][:20] in asked.stderr) == (5, True, True)
    assert [one["sid"] for one in f.json("ls", "--archived")] == [sid], "nothing is deleted unasked"
    review_store.store(f.folders.state, sid, Review({"work.txt": "seen"}))
    assert f.json("purge", "--yes", sid, sid) == [{"sid": sid, "purged": True}]
    assert list(f.folders.archive.iterdir()) == []
    assert not review_store.load(f.folders.state, sid).viewed
    assert f.run("logs", sid, check=False).returncode == 4
    assert f.json("cost")[0]["removed"]["spent_nano"] == spent


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
        assert "1 commit that is" in refused.stderr


def test_a_session_can_be_removed_as_soon_as_it_is_said_to_be_done() -> None:
    with fleet() as f:
        many = "for i in $(seq 3000); do echo $i > file$i; done; git add .; git commit -qm many"
        sid = f.launch(play([("shell", {"script": many})], "Done."))
        f.wait_state(sid, "done")
        gone = f.json("rm", sid, "--keep-as-ref")[0]
        assert (gone["kept"], gone["archived"]) == ([f"refs/watchfloor/kept/{sid}"], True)
        assert f.json("ls") == []


def test_two_removals_at_once_are_one_and_the_other_says_so() -> None:
    """The second waits for the first; to tell it to purge what stands in the archive would lose the log."""
    with fleet() as f, ThreadPoolExecutor(2) as both:
        many = "for i in $(seq 3000); do echo $i > file$i; done; git add .; git commit -qm many"
        sid = f.launch(play([("shell", {"script": many})], "Done."))
        f.wait_state(sid, "done")
        asked = list(both.map(lambda _: f.run("rm", sid, "--keep-as-ref", check=False), range(2)))
        assert sorted(one.returncode for one in asked) == [0, 4]
        assert "was removed, so its worktree is gone" in "".join(one.stderr for one in asked)
        assert f.json("ls") == []
        assert [one["sid"] for one in f.json("ls", "--archived")] == [sid]


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

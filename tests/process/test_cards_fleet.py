"""Cards of a real fleet: they say what a push brings, the second of a kind is folded, and what changes is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fleetlib import Fleet, fleet, git, make_repository, play

pytestmark = pytest.mark.sandbox


def pushing(f: Fleet, repo: Path, name: str, *more: str) -> tuple[str, str]:
    """A session that commits and asks to push; (its id, its request)."""
    script = f"echo {name} > {name}.txt && git add -A && git commit -q -m 'Add {name}'"
    argv = ["git", "push", "origin", f"HEAD:refs/heads/{name}", *more]
    sid = f.launch(
        play([("shell", {"script": script})], [("exec", {"argv": argv, "why": "for review"})], "Done."),
        repo=repo,
        name=name,
    )
    return sid, str(f.approval(sid)["approval_id"])


def test_the_second_push_of_its_kind_is_short_and_a_changed_remote_is_not() -> None:
    with fleet() as f:
        repo = make_repository(f.root / "repo", {"README.md": "# Thing\n"})
        for name in ("remote.git", "other.git"):
            git(f.root, "init", "-q", "--bare", str(f.root / name))
        git(repo, "remote", "add", "origin", str(f.root / "remote.git"))
        git(repo, "push", "-q", "origin", "HEAD:refs/heads/main")
        sid, request = pushing(f, repo, "one")
        first = f.run("approvals", request).stdout
        for part in ("one wants to push to origin", "BRINGS 1 commit to NEW branch one", "Add one", "one.txt  +1 -0"):
            assert part in first
        assert first.index("Add one") < first.index("┄┄┄") < first.index("nothing of this kind was approved before")
        assert "environment" not in first, "it is the person's own"
        assert "environment" in f.run("approvals", request, "--facts").stdout
        f.approve(request)
        f.wait_state(sid, "done")
        _, request = pushing(f, repo, "two")
        second = f.run("approvals", request).stdout
        assert "same shape as 1 approved before" in second
        assert "environment" not in second
        assert "environment" in f.run("approvals", request, "--facts").stdout
        (asked,) = f.json("approvals", request)
        assert "environment" in json.dumps(asked["card"]), "its hash is of the whole card"
        assert len(second.split("┄┄┄")[0].splitlines()) <= 20
        f.run("deny", request, "not yet")
        git(repo, "remote", "set-url", "origin", str(f.root / "other.git"))
        _, request = pushing(f, repo, "three")
        third = f.run("approvals", request).stdout
        below = third[third.index("┄┄┄") :]
        assert "those that differ from what you approved before" in below
        assert "┄┄┄ FACTS" in below
        target = f.root / "precious"
        target.mkdir()
        (target / "only copy").write_text("x")
        rm = {"argv": ["rm", "-rf", str(target), "README.md"], "access": "unsandboxed"}
        sid = f.launch(play([("exec", rm)], "Done."), repo=repo, name="cleaner")
        card = f.run("approvals", str(f.approval(sid)["approval_id"])).stdout
        assert f"{target}  a folder with 1 file, nothing is known to have it besides" in card
        assert "README.md  a file, undo brings it back" in card
        assert "other.git" in below
        assert "environment" not in below, "what differs stands there, and nothing else"
        assert f.violations() == []


def test_a_call_without_the_sandbox_shows_the_file_that_it_runs_and_what_became_of_it() -> None:
    with fleet() as f:
        repo = make_repository(f.root / "repo", {"deploy.sh": "#!/bin/sh\necho fine\n"})
        (repo / "deploy.sh").chmod(0o755)
        git(repo, "commit", "-q", "-am", "executable")
        sid = f.launch(play([("exec", {"argv": ["./deploy.sh"], "access": "unsandboxed"})], "Done."), repo=repo)
        request = str(f.approval(sid)["approval_id"])
        lines = f.run("approvals", request).stdout.splitlines()
        at = lines.index("WHICH RUNS  deploy.sh of its worktree, 2 lines")
        assert lines[at + 1 : at + 3] == ["  1 │#!/bin/sh", "  2 │echo fine"]
        assert "program" not in "".join(lines), "the whole of it stands there"
        (Path(f.row(sid)["worktree"]) / "deploy.sh").write_text("#!/bin/sh\necho other\n")
        f.approve(request, check=False)
        f.wait_event(sid, "approval.stale")
        again = f.run("approvals", str(f.approval(sid)["approval_id"])).stdout
        assert "deploy.sh has other content" in again
        told = [line.strip() for line in again.splitlines()]
        at = told.index("deploy.sh, before (-) and now (+):")
        assert told[at + 1 : at + 5] == ["@@ -1,2 +1,2 @@", "#!/bin/sh", "-echo fine", "+echo other"]
        assert "  2 │echo other" in again
        assert f.violations() == []

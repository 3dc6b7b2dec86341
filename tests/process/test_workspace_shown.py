"""What the sandbox shows of a repository's git directory is a list of what git needs; everything else in it stays with
its owner.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.workspace.private_git.private_gitdir import Worktree, binds, publish
from tests.process.test_workspace_worktrees import agent, git, repository, session

CANARY = "hunter2canary"
pytestmark = pytest.mark.sandbox
WORK = """
set -e
git status --short; git log --oneline -3 >/dev/null; git diff --stat; git branch -a; git tag -l
git describe --always >/dev/null
echo one > one; git add one; git commit -qm one; echo two >> one; git diff --quiet && exit 1; git commit -qam two
git merge -q --no-edit side; git rebase -q --onto HEAD~1 HEAD~1 HEAD 2>/dev/null || git rebase --abort
git cherry-pick --no-commit side 2>/dev/null || git reset -q --hard; git reset -q --hard
git checkout -q --detach HEAD; git show v1:a.txt; git log --format=%s side -1; git blame a.txt >/dev/null
git grep -q a -- a.txt
git rev-parse --git-common-dir; git worktree list | wc -l; git reflog -1 >/dev/null
git cat-file --batch-check --batch-all-objects >/dev/null
git notes list >/dev/null; git for-each-ref >/dev/null; git fsck --connectivity-only HEAD 2>&1
"""


def with_history(folder: Path) -> Path:
    """A repository with a branch ``side`` and a tag ``v1``."""
    repo = repository(folder)
    git(repo, "tag", "-a", "-m", "v", "v1")
    git(repo, "checkout", "-qb", "side")
    (repo / "side.txt").write_text("s\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "side")
    git(repo, "checkout", "-q", "main")
    return repo


@pytest.mark.parametrize(
    "kind", ["plain", "worktree", "bare", "packed", "borrowing", "linked-objects", "borrowing-inside", "separate"]
)
def test_git_works_inside_on_every_kind_of_repository(tmp_path: Path, kind: str) -> None:
    main = with_history(tmp_path / "main")
    repo = main
    if kind == "worktree":
        repo = tmp_path / "linked"
        git(main, "worktree", "add", "-q", "-b", "linked", str(repo))
    elif kind == "bare":
        repo = tmp_path / "bare.git"
        git(tmp_path, "clone", "-q", "--bare", "main", str(repo))
    elif kind == "packed":
        git(main, "pack-refs", "--all")
        git(main, "gc", "-q")
    elif kind == "borrowing":
        repo = tmp_path / "borrower"
        git(tmp_path, "clone", "-q", "--shared", "main", str(repo))
        git(repo, "branch", "-q", "side", "origin/side")
        git(repo, "pack-refs", "--all")
    elif kind == "linked-objects":
        (main / ".git" / "objects").rename(tmp_path / "far")
        (main / ".git" / "objects").symlink_to(tmp_path / "far")
    elif kind == "borrowing-inside":
        git(tmp_path, "clone", "-q", "--bare", "main", str(main / ".git" / "pool"))
        (main / ".git" / "objects" / "info" / "alternates").write_text(f"{main}/.git/pool/objects\n")
    elif kind == "separate":
        repo = tmp_path / "sep"
        git(tmp_path, "clone", "-q", "--separate-git-dir", str(tmp_path / "far.git"), "main", str(repo))
        git(repo, "branch", "-q", "side", "origin/side")
    tree = session(tmp_path, repo)
    out = agent(tree, WORK)
    assert str(tree.common) in out
    assert publish(tree).moved
    assert "one" in git(repo, "log", "--format=%s", tree.branch).splitlines()
    git(repo, "fsck", "--strict")
    assert len(binds(tree)) <= 9


def test_only_listed_parts_of_the_git_directory_are_there(tmp_path: Path) -> None:
    repo = with_history(tmp_path / "repo")
    common = repo / ".git"
    git(repo, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "other")
    (tmp_path / "other" / "a.txt").write_text(f"{CANARY}\n")
    git(tmp_path / "other", "stash", "push", "-q", "-m", CANARY)
    git(repo, "update-ref", "refs/watchfloor/kept/old", "HEAD")
    git(repo, "config", "extensions.worktreeConfig", "true")
    for name in (
        "credentials", "config.bak", "config.worktree", "worktrees/other/config.worktree", "modules/m/config",
        "hooks/post-commit", "logs/refs/x", "lfs/token", "FETCH_HEAD", "COMMIT_EDITMSG", "description", "info/secret",
        "refs/heads/.config.swp", "svn/.metadata", "new-tool/state",
    ):  # fmt: skip
        (common / name).parent.mkdir(parents=True, exist_ok=True)
        (common / name).write_text(f"[x]\n\ttoken = {CANARY}\n")
    tree = session(tmp_path, repo)
    out = agent(
        tree,
        f"grep -rsl {CANARY} {common} . && echo LEAK; git stash list; git for-each-ref --format='%(refname)'; find"
        f" {common} -maxdepth 2",
        ok=False,
    )
    assert "LEAK" not in out
    assert CANARY not in out
    assert "refs/stash" not in out
    assert "refs/watchfloor" not in out
    assert {"refs/heads/main", "refs/heads/other", "refs/heads/side", "refs/tags/v1"} <= set(out.split())
    found = {Path(line).relative_to(common).parts[0] for line in out.splitlines() if line.startswith(f"{common}/")}
    assert found == {"worktrees"}
    assert "worktrees/other" not in out
    assert (common / "credentials").exists()


def test_a_call_sees_the_refs_and_lists_as_they_are_when_it_begins(tmp_path: Path) -> None:
    repo = with_history(tmp_path / "repo")
    tree = session(tmp_path, repo)

    def seen(script: str) -> str:
        return agent(tree, script, ok=False)

    assert "late" not in seen("git branch -a")
    git(repo, "branch", "late")
    git(repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/late")
    assert "late" in seen("git branch -a; git rev-parse origin/HEAD")
    git(repo, "commit", "-q", "--allow-empty", "-m", "moved")
    head = git(repo, "rev-parse", "main")
    assert head in seen("git rev-parse main")
    git(repo, "pack-refs", "--all", "--prune")
    assert head in seen("git rev-parse main")
    git(repo, "symbolic-ref", "-d", "refs/remotes/origin/HEAD")
    git(repo, "branch", "-D", "late")
    assert "late" not in seen("git branch -a; git rev-parse origin/HEAD")
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "exclude").write_text("*.mine\n")
    assert seen("touch x.mine; git status --short") == ""
    (repo / ".git" / "info" / "exclude").unlink()
    assert "x.mine" in seen("git status --short")
    git(repo, "config", "remote.late.url", "https://late.invalid/")
    assert "late.invalid" in seen("git remote -v")


def test_a_shallow_repository_stays_shallow(tmp_path: Path) -> None:
    main = with_history(tmp_path / "main")
    git(main, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{main}", "shallow")
    tree = session(tmp_path, tmp_path / "shallow")
    assert agent(tree, "git log --format=%s; git rev-parse --is-shallow-repository").split() == ["second", "true"]


def test_nothing_written_inside_reaches_the_repository(tmp_path: Path) -> None:
    repo = with_history(tmp_path / "repo")
    tree = session(tmp_path, repo)
    before = {path: path.read_bytes() for path in tree.common.rglob("*") if path.is_file()}
    for attempt in (f"mv {tree.admin}/objects {tree.admin}/o", f"rmdir {tree.admin}/objects", "rm .git"):
        out = agent(tree, f"{attempt} && echo DONE", ok=False)
        assert "busy" in out, (attempt, out)
        assert "DONE" not in out, attempt
    agent(tree, f"touch {tree.common}/x; mkdir -p {tree.common}/hooks; touch {tree.common}/hooks/post-commit", ok=False)
    agent(tree, "git update-ref refs/heads/main HEAD~0; git config a.b c; git tag x; git branch -D side; git gc -q")
    assert {path: path.read_bytes() for path in tree.common.rglob("*") if path.is_file()} == before


def state(tree: Worktree) -> list[str]:
    return sorted(str(p.relative_to(tree.common)) for p in tree.common.rglob("*") if "objects" not in p.parts)


def test_showing_the_repository_leaves_no_trace_in_it(tmp_path: Path) -> None:
    tree = session(tmp_path, with_history(tmp_path / "repo"))
    before = state(tree)
    binds(tree)
    agent(tree, "git status")
    assert state(tree) == before

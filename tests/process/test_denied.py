"""What a role denies is nowhere in the sandbox: not in the worktree, not among the refs, not among the objects; and git
works around it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.domain.denied import Denied
from harness.policy.build import build_action
from harness.protocol.config.sections import SandboxConfig
from harness.workspace.facts.gather import gather
from harness.workspace.private_git import own_refs
from harness.workspace.private_git.private_gitdir import Worktree, publish
from harness.workspace.tree import remove, worktrees
from harness.workspace.tree.diff import extent
from harness.workspace.tree.scan import look
from tests.process.test_workspace_worktrees import agent, git, repository, session

pytestmark = pytest.mark.sandbox
DENIED = Denied(("secrets/", "*.pem", "a/b/private.txt"), ("payroll", "release/*"))
HUSH = "hush-hush"
EVERY = r"git cat-file --batch-all-objects --batch --buffer 2>&1 | tr -cd '\n\40-\176'"


def with_secrets(folder: Path) -> Path:
    repo = repository(folder, **{"a.txt": "a\n", "top.pem": f"{HUSH} top\n"})
    for name in ("secrets/x", "deep/secrets/y", "deep/key.pem", "a/b/private.txt", "a/b/public.txt"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(f"{HUSH if 'public' not in name else 'open'} {name}\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "secrets")
    (repo / "secrets" / "x").write_text(f"{HUSH} changed\n")
    git(repo, "commit", "-qam", "secrets changed")
    for name in ("payroll", "release/1"):
        git(repo, "switch", "-q", "-c", name, "main")
        (repo / "wages.txt").write_text(f"{HUSH} {name}\n")
        git(repo, "add", ".")
        git(repo, "commit", "-qm", f"work of {name}")
    git(repo, "update-ref", "refs/remotes/origin/payroll", "payroll")
    git(repo, "switch", "-q", "main")
    return repo


def denying(tmp: Path, repo: Path, sid: str = "s1", denied: Denied = DENIED) -> Worktree:
    where = (
        tmp / "state" / "worktrees" / sid,
        f"watchfloor/{sid}",
        tmp / "state" / "sessions" / sid / "git" / "private",
    )
    return worktrees.create(repo, *where, denied=denied)


@pytest.fixture
def tree(tmp_path: Path) -> Worktree:
    return denying(tmp_path, with_secrets(tmp_path / "repo"))


def test_what_is_denied_can_be_read_in_no_way(tree: Worktree) -> None:
    old = git(tree.repo, "rev-parse", "main~1:secrets/x")
    wages = git(tree.repo, "rev-parse", "payroll:wages.txt")
    tips = git(tree.repo, "rev-parse", "payroll")
    ways = (
        f"cat secrets/x top.pem deep/key.pem a/b/private.txt; find . -name '*.pem'; grep -r {HUSH} . /tmp",
        "git show HEAD:secrets/x; git show HEAD~1:deep/secrets/y; git show main:top.pem; git show HEAD",
        f"git cat-file -p {old}; git cat-file -p {wages}; git cat-file -p {tips}; git show payroll:wages.txt",
        "git show origin/payroll:wages.txt; git show release/1:wages.txt; git log --all -p",
        EVERY,
        f"grep -r {HUSH} {tree.common} {tree.private.parent} {tree.repo} {tree.root.parent}",
        "git sparse-checkout disable; cat secrets/x; git checkout HEAD -- secrets; cat secrets/x; git restore .",
        "rm $(git rev-parse --git-dir)/info/sparse-checkout; git reset --hard; cat secrets/x top.pem",
        "git archive HEAD | tar xO; git stash; git worktree add w; cat w/secrets/x; git grep -a hush HEAD",
    )
    for way in ways:
        assert HUSH not in agent(tree, way, ok=False).replace(f"grep -r {HUSH}", ""), way
    names = agent(tree, "git for-each-ref --format='%(refname)'")
    assert "payroll" not in names
    assert "release" not in names
    assert "refs/heads/main" in names.split()
    assert "deny_paths" in agent(tree, "git show HEAD:secrets/x", ok=False)


def test_git_works_around_it_and_nothing_is_deleted_by_it(tree: Worktree) -> None:
    out = agent(
        tree,
        "set -e; git status --porcelain; cat a/b/public.txt; echo b >> a.txt; echo n > a/b/new.txt; git add -A;"
        " git commit -qam one; git switch -q -c aside; echo c >> a.txt; git commit -qam two;"
        " git switch -q --detach HEAD~1; git merge -q aside; git log --format=%s; git rebase -q HEAD~1;"
        " git reset -q --hard HEAD~1; git reset -q --hard aside; echo s >> a.txt; git stash -q; git stash pop -q;"
        " git checkout -q a.txt; git status --porcelain; git diff --stat HEAD~1",
    )
    assert {"open", "one", "two", "secrets"} <= {*out.split()}
    assert publish(tree).moved
    changed = git(tree.repo, "diff", "--name-status", f"main...{tree.branch}").split()
    assert changed == ["M", "a.txt", "A", "a/b/new.txt"]
    assert HUSH in git(tree.repo, "show", f"{tree.branch}:secrets/x")
    with look(tree, git(tree.repo, "rev-parse", tree.branch)) as view:
        assert view.changes(view.walk()).gone == set()
    assert extent(tree).files == 2
    assert own_refs.only_there(tree) == []
    git(tree.repo, "fsck", "--strict")
    agent(
        tree, "git switch -q aside; git log --format=%s main..; git show HEAD:a.txt; echo d >> a.txt; git commit -qam 3"
    )
    assert publish(tree).moved
    assert remove.unpushed(tree) == 3


def test_the_store_follows_the_repository(tree: Worktree) -> None:
    (tree.repo / "late.txt").write_text("late\n")
    (tree.repo / "secrets" / "x").write_text(f"{HUSH} late\n")
    git(tree.repo, "add", ".")
    git(tree.repo, "commit", "-qm", "late")
    git(tree.repo, "tag", "-a", "-m", "tagged", "v9")
    out = agent(tree, "git merge -q --no-edit main && cat late.txt; git describe --tags; git status --porcelain")
    assert out.split() == ["late", "v9"]
    assert HUSH not in agent(tree, EVERY, ok=False)
    publish(tree)
    assert HUSH in git(tree.repo, "show", f"{tree.branch}:secrets/x")
    with look(tree, git(tree.repo, "rev-parse", tree.branch)) as view:
        assert view.changes(view.walk()).gone == set(), "what came with a merge is kept away as well"


def test_a_session_of_another_role_sees_everything(tmp_path: Path, tree: Worktree) -> None:
    other = session(tmp_path, tree.repo, "free")
    assert HUSH in agent(other, "cat secrets/x; git show payroll:wages.txt")
    only_branches = denying(tmp_path, tree.repo, "branches", Denied((), ("payroll",)))
    out = agent(only_branches, f"cat secrets/x; git show HEAD:top.pem; git show release/1:wages.txt; {EVERY}", ok=False)
    assert f"{HUSH} changed" in out
    assert f"{HUSH} release/1" in out
    assert f"{HUSH} payroll" not in out


def test_no_commit_of_another_session_is_among_its_objects(tmp_path: Path) -> None:
    repo = with_secrets(tmp_path / "repo")
    other = session(tmp_path, repo, "other")
    agent(other, "echo theirs-alone > theirs.txt; git add -A; git commit -qm theirs")
    assert publish(other).moved
    tree = denying(tmp_path, repo, "s1", Denied((), ("watchfloor/*",)))
    out = agent(tree, f"git cat-file -p {publish(other).head}; {EVERY}; git log -1 --format=%s {tree.branch}", ok=False)
    assert "theirs" not in out
    assert "secrets changed" in out.splitlines(), "its own branch is there"
    assert f"{HUSH} top" in agent(tree, EVERY)


@pytest.mark.parametrize("kind", ["bare", "shallow", "borrowing", "sha256", "packed"])
def test_it_holds_on_every_kind_of_repository(tmp_path: Path, kind: str) -> None:
    repo = with_secrets(tmp_path / "main")
    if kind == "sha256":
        (tmp_path / "new").mkdir()
        git(tmp_path / "new", "init", "-q", "-b", "main", "--object-format=sha256")
        shutil.copytree(repo, tmp_path / "new", dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
        repo = tmp_path / "new"
        git(repo, "add", ".")
        git(repo, "commit", "-qm", "all")
    elif kind == "packed":
        git(repo, "gc", "-q")
    else:
        how = {"bare": ["--bare"], "shallow": ["--depth=1", "--no-local"], "borrowing": ["--shared"]}[kind]
        git(tmp_path, "clone", "-q", *how, "main", "copy")
        repo = tmp_path / "copy"
    tree = denying(tmp_path, repo)
    script = "cat a.txt; echo b >> a.txt; git add -A; git commit -qm one; git log -1 --format=%s; git status -s"
    assert agent(tree, script).split() == ["a", "one"]
    assert HUSH not in agent(tree, f"{EVERY}; git show HEAD:top.pem; cat secrets/x", ok=False)
    assert publish(tree).moved
    assert HUSH in git(repo, "show", f"{tree.branch}:secrets/x")


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("read_file", {"path": "secrets/x"}),
        ("read_file", {"path": "./deep/../top.pem"}),
        ("write_file", {"path": "secrets/new", "content": "n"}),
        ("edit_file", {"path": "a/b/private.txt", "old": "a", "new": "b"}),
        ("list_files", {"path": "deep/secrets"}),
        ("read_file", {"path": "{repo}/secrets/x"}),
    ],
)
def test_file_tools_say_that_the_role_denies_it(tree: Worktree, tool: str, given: dict[str, str]) -> None:
    given = {key: value.replace("{repo}", str(tree.repo)) for key, value in given.items()}
    action = build_action("s", "c1.0", "t", tool, given, gather(tree, tool, given, SandboxConfig()))
    assert "the role of this session denies" in action.refused
    assert "deny_paths" in action.refused
    allowed = {"path": "a/b/public.txt"}
    assert not build_action(
        "s", "c1.0", "t", "read_file", allowed, gather(tree, "read_file", allowed, SandboxConfig())
    ).refused

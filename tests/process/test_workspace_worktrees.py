"""Worktrees on real repositories: made, published, diffed, removed, in every odd place a repository can be in."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.domain.actions.action import PushAction
from harness.executor import preconditions
from harness.policy.build import build_action
from harness.policy.decide import decide
from harness.policy.policy_file import default_policy
from harness.protocol.config.sections import SandboxConfig
from harness.sandbox import bubblewrap
from harness.workspace.facts.gather import gather
from harness.workspace.git.errors import (
    BranchExists,
    DamagedWorktree,
    NoCommits,
    NotARepository,
    PublishFailed,
    UnsavedWork,
    WorktreeExists,
)
from harness.workspace.git.run import open_repository
from harness.workspace.private_git.private_gitdir import Published, Worktree, agent_head, prepare, publish
from harness.workspace.tree import remove, worktrees
from harness.workspace.tree.diff import diff, extent

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
ME = ("-c", "user.name=Me", "-c", "user.email=me@here", "-c", "protocol.file.allow=always")


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *ME, *args], cwd=folder, env=ENV, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def repository(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in (files or {"a.txt": "a\n"}).items():
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def session(tmp: Path, repo: Path, sid: str = "s1", branch: str = "") -> Worktree:
    return worktrees.create(
        repo,
        tmp / "state" / "worktrees" / sid,
        branch or f"watchfloor/{sid}",
        tmp / "state" / "sessions" / sid / "git" / "private",
    )


def agent(tree: Worktree, script: str, *, ok: bool = True) -> str:
    """Run a script as the agent would: in the real sandbox, with the action's own binds and environment."""
    facts = gather(tree, "shell", {"script": script}, SandboxConfig())
    action = build_action("sid", "c1.0", "t", "shell", {"script": script}, facts)
    command = bubblewrap.arguments(bubblewrap.find().path, action.sandbox, network=False, cwd=action.cwd, outside=[])
    settings = [part for name, value in action.env.items() for part in (f"{name}={value}",)]
    done = subprocess.run(
        [*command, "/usr/bin/env", "-i", *settings, "bash", "-c", script], capture_output=True, text=True
    )
    assert done.returncode == 0 or not ok, done.stderr
    return done.stdout + done.stderr


def test_a_worktree_starts_from_head_and_leaves_the_users_checkout_alone(tmp_path: Path) -> None:
    repo = repository(tmp_path / "re po ü'$(x)")
    (repo / "dirty.txt").write_text("mine")
    (repo / "a.txt").write_text("changed")
    before = git(repo, "status", "--porcelain")
    config = (repo / ".git" / "config").read_bytes()
    tree = session(tmp_path, repo)
    assert tree.base == git(repo, "rev-parse", "HEAD")
    assert tree.dirty == 2
    assert (tree.root / "a.txt").read_text() == "a\n"
    assert not (tree.root / "dirty.txt").exists()
    assert git(repo, "status", "--porcelain") == before
    assert (repo / ".git" / "config").read_bytes() == config
    assert worktrees.open_worktree(tree.private) == tree
    assert session(tmp_path, repo) == tree


@pytest.mark.sandbox
def test_the_agent_commits_and_only_its_branch_moves(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    git(repo, "branch", "other")
    git(repo, "config", "user.name", "The User")
    git(repo, "config", "user.email", "user@here")
    config = (repo / ".git" / "config").read_bytes()
    tree = session(tmp_path, repo)
    out = agent(
        tree,
        "echo b > b.txt; git add b.txt; git commit -qm two; git branch mine; git tag t; git config a.b c; git"
        " update-ref refs/heads/other HEAD; echo evil > $(git rev-parse --git-common-dir)/hooks/post-commit; rm -rf"
        " .git; git log -1 --format='%an %s'",
        ok=False,
    )
    assert "Device or resource busy" in out
    made = publish(tree)
    assert made.moved
    assert made.head == agent_head(tree)
    assert git(repo, "log", "-1", "--format=%an %s", tree.branch) == "The User two"
    assert git(repo, "rev-parse", "main", "other").split() == [tree.base, tree.base]
    assert git(repo, "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/main",
        "refs/heads/other",
        f"refs/heads/{tree.branch}",
    ]
    assert (repo / ".git" / "config").read_bytes() == config
    assert not (repo / ".git" / "hooks" / "post-commit").exists()
    assert git(tree.root, "status", "--porcelain") == ""
    git(repo, "fsck", "--strict", "--full")
    assert not publish(tree).moved


def test_where_nothing_was_committed_no_git_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "repo")
    tree = session(tmp_path, repo)
    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path))
        assert publish(tree) == Published(tree.base, False)
    git(repo, "pack-refs", "--all", "--prune")
    assert publish(tree) == Published(tree.base, False)
    git(tree.root, "commit", "-q", "--allow-empty", "-m", "by hand")
    by_hand = git(repo, "rev-parse", tree.branch)
    assert publish(tree) == Published(by_hand, False)
    assert agent_head(tree) == by_hand


@pytest.mark.sandbox
def test_repositories_that_tests_make_are_their_own(tmp_path: Path) -> None:
    tree = session(tmp_path, repository(tmp_path / "repo"))
    out = agent(
        tree,
        "set -e; cd /tmp; git init -q x; cd x; git config user.name Inner; git config user.email i@x; echo 1 > f; git"
        " add f; git commit -qm i; git clone -q . ../y; git -C ../y log --format='%an'; ls .git/objects | wc -l",
    )
    assert out.split()[0] == "Inner"
    assert int(out.split()[1]) > 3


@pytest.mark.sandbox
def test_staging_resetting_amending_and_merging_work_inside(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    git(repo, "checkout", "-qb", "side")
    (repo / "side.txt").write_text("s\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "side")
    git(repo, "checkout", "-q", "main")
    tree = session(tmp_path, repo)
    agent(
        tree,
        "set -e; echo b > b; git add b; git commit -qm b; git commit --amend -qm bb; echo c > c; git add c; git reset"
        " -q; git merge -q --no-edit side; git gc -q || true",
    )
    publish(tree)
    assert git(repo, "log", "--format=%s", "--no-merges", "main.." + tree.branch).split() == ["bb", "side"]
    agent(tree, "git reset -q --hard HEAD~1")
    assert publish(tree).moved
    git(repo, "fsck", "--strict")


@pytest.mark.sandbox
@pytest.mark.parametrize("file", [".gitconfig", "xdg/git/config"])
def test_commits_are_in_the_users_name_wherever_their_git_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    repo = repository(tmp_path / "repo")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    assert worktrees.identity(open_repository(repo)) == ("Ada", "ada@example.org")


def test_gc_in_the_repository_at_any_moment_stays_clean(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    tree = session(tmp_path, repo)
    stop = threading.Event()

    def collect() -> None:
        while not stop.is_set():
            git(repo, "-c", "gc.auto=1", "gc", "-q", "--prune=now")

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(collect)
        try:
            for number in range(6):
                agent(tree, f"echo {number} > f{number}; git add .; git commit -qm {number}")
                publish(tree)
        finally:
            stop.set()
        running.result()
    assert git(repo, "rev-list", "--count", tree.branch) == "7"
    git(repo, "fsck", "--strict", "--full")
    agent(tree, "git fsck --full")


def test_ten_at_once_on_one_repository(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    git(repo, "clone", "-q", "--bare", ".", str(tmp_path / "up.git"))
    git(repo, "remote", "add", "origin", str(tmp_path / "up.git"))
    git(repo, "fetch", "-q", "origin")
    git(repo, "branch", "-q", "--set-upstream-to=origin/main", "main")
    with ThreadPoolExecutor(10) as pool:
        trees = list(pool.map(lambda n: session(tmp_path, repo, f"s{n}"), range(10)))
    assert len({t.admin for t in trees}) == 10
    assert len(git(repo, "worktree", "list").splitlines()) == 11
    assert "branch.watchfloor" not in git(repo, "config", "--list", "--local")


@pytest.mark.sandbox
@pytest.mark.parametrize("kind", ["worktree", "bare", "borrowing", "subfolder", "submodule", "separate"])
def test_every_kind_of_repository(tmp_path: Path, kind: str) -> None:
    main = repository(tmp_path / "main")
    repo = main
    if kind == "worktree":
        repo = tmp_path / "linked"
        git(main, "worktree", "add", "-q", "-b", "linked", str(repo))
        (repo / "only.txt").write_text("x")
        git(repo, "add", ".")
        git(repo, "commit", "-qm", "only here")
    elif kind == "bare":
        main = tmp_path / "bare.git"
        repo = main
        git(tmp_path, "clone", "-q", "--bare", "main", str(repo))
    elif kind == "borrowing":
        main = tmp_path / "borrower"
        repo = main
        git(tmp_path, "clone", "-q", "--shared", "main", str(repo))
    elif kind == "subfolder":
        repo = main / "deep" / "er"
        repo.mkdir(parents=True)
    elif kind == "submodule":
        repository(tmp_path / "lib")
        git(main, "submodule", "add", "-q", str(tmp_path / "lib"), "lib")
        git(main, "commit", "-qm", "lib")
        repo = main / "lib"
        git(main, "config", "submodule.recurse", "true")
    elif kind == "separate":
        main = tmp_path / "sep"
        repo = main
        git(tmp_path, "clone", "-q", "--separate-git-dir", str(tmp_path / "far.git"), "main", str(repo))
    tree = session(tmp_path, repo)
    assert tree.base == git(repo, "rev-parse", "HEAD")
    agent(tree, "set -e; echo b > b; git add b; git commit -qm two; git log --oneline; git status --short")
    assert publish(tree).moved
    assert git(repo, "log", "-1", "--format=%s", tree.branch) == "two"
    git(repo, "fsck", "--strict")
    if kind == "submodule":
        outer = session(tmp_path, main, "s2")
        assert {path.name for path in (outer.root / "lib").iterdir()} == {"a.txt", ".git"}, "filled from the clone"
        assert diff(outer).files == ()


def test_launching_on_what_is_no_usable_repository_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="does not exist"):
        session(tmp_path, tmp_path / "nowhere")
    (tmp_path / "plain").mkdir()
    with pytest.raises(NotARepository, match="git init"):
        session(tmp_path, tmp_path / "plain")
    git(tmp_path, "init", "-q", "empty")
    with pytest.raises(NoCommits, match="first commit"):
        session(tmp_path, tmp_path / "empty")
    repo = repository(tmp_path / "repo")
    git(repo, "branch", "taken")
    with pytest.raises(BranchExists, match="taken"):
        session(tmp_path, repo, branch="taken")
    (tmp_path / "state" / "worktrees" / "s9").mkdir(parents=True)
    with pytest.raises(WorktreeExists):
        session(tmp_path, repo, "s9")
    assert git(repo, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main", "refs/heads/taken"]
    assert len(git(repo, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize(
    ("step", "when"), [("make", "before"), ("make", "after"), ("prepare", "before"), ("prepare", "after")]
)
def test_a_creation_that_is_killed_anywhere_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    repo = repository(tmp_path / "repo")
    whole = getattr(worktrees.private_gitdir, step)

    def killed(*arguments: object) -> None:
        if when == "after":
            whole(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        try:
            monkeypatch.setattr(worktrees.private_gitdir, step, killed)
            session(tmp_path, repo)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    tree = session(tmp_path, repo)
    assert (tree.root / "a.txt").exists()
    assert len(git(repo, "worktree", "list").splitlines()) == 2


def test_a_creation_that_fails_leaves_no_branch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "repo")

    def fail(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(worktrees.private_gitdir, "make", fail)
    with pytest.raises(OSError, match="no space"):
        session(tmp_path, repo)
    assert git(repo, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert len(git(repo, "worktree", "list").splitlines()) == 1
    assert not (tmp_path / "state" / "worktrees" / "s1").exists()


@pytest.mark.sandbox
def test_the_diff_shows_committed_uncommitted_and_untracked_work(tmp_path: Path) -> None:
    tree = session(
        tmp_path, repository(tmp_path / "repo", **{"a.txt": "a\n", "gone.txt": "g\n", "old name.txt": "r\n" * 20})
    )
    agent(
        tree,
        "set -e; echo b >> a.txt; git commit -qam b; git rm -q gone.txt; git mv 'old name.txt' $'new\\nname.txt'; git"
        " commit -qm m; echo c >> a.txt; echo u > u.txt; printf '\\0' > bin; ln -s /etc/passwd link",
    )
    publish(tree)
    made = diff(tree)
    shown = {f.path: (f.status, f.added, f.removed) for f in made.files}
    assert shown == {
        "a.txt": ("modified", 2, 0),
        "gone.txt": ("deleted", 0, 1),
        "new\nname.txt": ("renamed", 0, 0),
        "u.txt": ("untracked", 1, 0),
        "bin": ("untracked", None, None),
        "link": ("untracked", None, None),
    }
    assert "+u\n" in made.patch
    assert "root:" not in made.patch
    assert not made.truncated
    (tree.root / "big").write_text("x\n" * 100_000)
    cut = diff(tree, 10_000)
    assert cut.truncated
    assert len(cut.patch) <= 10_500
    assert any(f.path == "big" for f in cut.files)


def test_a_file_that_was_taken_away_and_put_back_is_no_change(tmp_path: Path) -> None:
    tree = session(tmp_path, repository(tmp_path / "repo", **{"a.txt": "a\n", "b.txt": "b\nb\n", "c.txt": "c\n"}))
    agent(tree, "git rm -q a.txt b.txt c.txt && git commit -qm away")
    publish(tree)
    (tree.root / "a.txt").write_text("a\n")
    (tree.root / "b.txt").write_text("b\nB\n")
    made = diff(tree)
    shown = {f.path: (f.status, f.added, f.removed) for f in made.files}
    assert shown == {"b.txt": ("modified", 1, 1), "c.txt": ("deleted", 0, 1)}
    assert "+a" not in made.patch
    assert extent(tree) == made.extent


@pytest.mark.sandbox
def test_a_name_that_is_no_utf_8_is_the_same_in_the_list_and_in_the_patch(tmp_path: Path) -> None:
    """What reads the two together (the review, the judge's case) finds the lines of such a file too."""
    tree = session(tmp_path, repository(tmp_path / "repo"))
    agent(tree, "set -e; echo one > $'kept\\xff'; git add -A; git commit -qm b; echo two > $'loose\\xfe'")
    publish(tree)
    made = diff(tree)
    assert len(made.files) == 2
    assert all(f"+++ b/{file.path}" in made.patch for file in made.files)


@pytest.mark.sandbox
def test_removal_never_loses_work(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    tree = session(tmp_path, repo)
    agent(tree, "echo b > b; git add b; git commit -qm two; echo loose > loose.txt")
    with pytest.raises(UnsavedWork) as caught:
        remove.remove(tree, "s1")
    assert (caught.value.files, caught.value.commits) == (["loose.txt"], 1)
    assert remove.remove(tree, "s1", force_keep=True) == ["refs/watchfloor/kept/s1"]
    assert git(repo, "show", "refs/watchfloor/kept/s1:loose.txt") == "loose"
    assert git(repo, "show", "refs/watchfloor/kept/s1~1:b") == "b"
    assert not tree.root.exists()
    assert list(tree.private.parent.iterdir()) == []
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/heads") == "refs/heads/main"
    clean = session(tmp_path, repo, "s2")
    assert remove.remove(clean, "s2") == []
    merged = session(tmp_path, repo, "s3")
    agent(merged, "echo d > d; git add d; git commit -qm d")
    publish(merged)
    git(repo, "merge", "-q", merged.branch)
    assert remove.remove(merged, "s3") == []


def test_removal_follows_no_link_out_and_survives_what_is_gone(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep")
    tree = session(tmp_path, repo)
    (tree.root / "link").symlink_to(precious)
    assert remove.remove(tree, "s1", force_keep=True)
    assert (precious / "file").read_text() == "keep"
    tree = session(tmp_path, repo, "s2")
    shutil.rmtree(tree.root)
    assert remove.remove(tree, "s2") == []
    assert len(git(repo, "worktree", "list").splitlines()) == 1


def test_a_replaced_git_file_is_put_right_or_named(tmp_path: Path) -> None:
    tree = session(tmp_path, repository(tmp_path / "repo"))
    dotgit = tree.root / ".git"
    for damage in (
        lambda: dotgit.write_text("gitdir: /evil"),
        dotgit.unlink,
        lambda: (dotgit.unlink(), dotgit.symlink_to("/etc/passwd")),
    ):
        damage()
        prepare(tree)
        assert dotgit.read_text() == f"gitdir: {tree.admin}\n"
    assert Path("/etc/passwd").exists()
    dotgit.unlink()
    dotgit.mkdir()
    with pytest.raises(DamagedWorktree, match="replaced by a folder"):
        prepare(tree)


@pytest.mark.parametrize("head", ["garbage", "ref: refs/heads/none", "f" * 40, "link"])
def test_a_head_that_names_no_commit_is_not_published(tmp_path: Path, head: str) -> None:
    repo = repository(tmp_path / "repo")
    tree = session(tmp_path, repo)
    (tree.private / "HEAD").unlink()
    if head == "link":
        (tree.private / "HEAD").symlink_to(repo / ".git" / "HEAD")
    else:
        (tree.private / "HEAD").write_text(head)
    with pytest.raises(PublishFailed):
        publish(tree)
    assert git(repo, "rev-parse", tree.branch) == tree.base
    git(repo, "fsck", "--strict")


@pytest.mark.sandbox
def test_commits_made_in_the_worktree_from_outside_are_never_lost(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    tree = session(tmp_path, repo)
    (tree.root / "mine").write_text("m\n")
    git(tree.root, "add", "mine")
    git(tree.root, "commit", "-qm", "by hand")
    by_hand = git(repo, "rev-parse", tree.branch)
    assert publish(tree) == publish(tree)
    assert agent_head(tree) == by_hand == git(repo, "rev-parse", tree.branch)
    assert agent(tree, "git status --short") == ""
    agent(tree, "echo b > b; git add b; git commit -qm agent")
    git(tree.root, "commit", "-q", "--allow-empty", "-m", "again by hand")
    with pytest.raises(PublishFailed, match="moved to"):
        publish(tree)
    assert git(repo, "log", "-1", "--format=%s", tree.branch) == "again by hand"
    agent(tree, f"git merge -q --no-edit {git(repo, 'rev-parse', tree.branch)}")
    assert publish(tree).moved
    assert set(git(repo, "log", "--format=%s", "--no-merges", tree.branch).splitlines()) == {
        "one",
        "by hand",
        "again by hand",
        "agent",
    }


@pytest.mark.sandbox
def test_an_agent_that_destroys_its_objects_harms_only_itself(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    tree = session(tmp_path, repo)
    agent(tree, "echo b > b; git add b; git commit -qm two; rm -rf $(git rev-parse --git-common-dir)/objects/*")
    with pytest.raises(PublishFailed, match="cannot be published"):
        publish(tree)
    git(repo, "fsck", "--strict", "--full")
    assert git(repo, "rev-parse", tree.branch) == tree.base
    agent(tree, "git checkout -q --detach HEAD~0 2>/dev/null || git update-ref --no-deref HEAD " + tree.base)
    assert not publish(tree).moved


@pytest.mark.sandbox
def test_objects_that_lie_are_not_published(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    secret = repository(tmp_path / "secret", **{"key": "very secret\n"})
    blob = git(secret, "rev-parse", "HEAD:key")
    tree = session(tmp_path, repo)
    agent(tree, "echo b > b; git add b; git commit -qm two")
    head = agent_head(tree) or ""
    store = tree.objects / head[:2]
    good = (store / head[2:]).read_bytes()
    (store / head[2:]).chmod(0o600)
    (store / head[2:]).write_bytes(good[:-3] + b"abc")
    with pytest.raises(PublishFailed):
        publish(tree)
    (store / head[2:]).write_bytes(good)
    # A tree that names an object of another repository, and a store that claims to borrow from it.
    (tree.objects / "info" / "alternates").write_text(f"{secret}/.git/objects\n")
    agent(
        tree,
        f"t=$(printf '100644 blob {blob}\\tstolen\\n' | git mktree --missing); git update-ref --no-deref HEAD $(git"
        " commit-tree -m x -p HEAD $t)",
    )
    (tree.objects / "info" / "alternates").write_text(f"{secret}/.git/objects\n")
    with pytest.raises(PublishFailed):
        publish(tree)
    assert git(repo, "rev-parse", tree.branch) == tree.base
    git(repo, "fsck", "--strict")


def test_facts_of_a_push_know_the_remote_and_the_commit(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    git(tmp_path, "clone", "-q", "--bare", "repo", "up.git")
    git(repo, "remote", "add", "origin", "../up.git")
    tree = session(tmp_path, repo)
    facts = gather(tree, "exec", {"argv": ["git", "push", "origin", "HEAD:main"]}, SandboxConfig())
    action = build_action("s", "c1.0", "t", "exec", {"argv": ["git", "push", "origin", "HEAD:main"]}, facts)
    assert isinstance(action, PushAction)
    assert action.to.url == str(tmp_path / "up.git")
    assert action.to.refspecs == ((tree.base, "refs/heads/main", tree.base),)
    assert action.env["HOME"] == os.path.expanduser("~")
    new = gather(tree, "shell", {"script": "git push -u origin"}, SandboxConfig())
    action = build_action("s", "c1.0", "t", "shell", {"script": "git push -u origin"}, new)
    assert isinstance(action, PushAction)
    assert action.to.refspecs == ((tree.base, f"refs/heads/{tree.branch}", "absent"),)
    shutil.rmtree(tmp_path / "up.git")
    gone = gather(tree, "exec", {"argv": ["git", "push"]}, SandboxConfig())
    assert (
        "does not answer"
        in decide(build_action("s", "c1.0", "t", "exec", {"argv": ["git", "push"]}, gone), default_policy()).reason
    )


def test_facts_resolve_links_and_hash_what_is_named(tmp_path: Path) -> None:
    tree = session(tmp_path, repository(tmp_path / "repo", **{"build.sh": "make\n"}))
    (tree.root / "out").symlink_to("/etc")
    facts = gather(tree, "write_file", {"path": "out/x", "content": ""}, SandboxConfig())
    assert facts.resolved["out/x"] == "/etc/x"
    assert facts.hashes == {"/etc/x": "absent"}
    facts = gather(tree, "exec", {"argv": ["bash", "build.sh"], "access": "network"}, SandboxConfig(read=("/opt",)))
    assert facts.hashes == {}
    assert facts.sandbox.read == ("/opt",)
    assert facts.cwd_identity == preconditions.identity(str(tree.root))
    facts = gather(tree, "exec", {"argv": ["./build.sh"], "access": "unsandboxed"}, SandboxConfig())
    assert facts.program == preconditions.program("./build.sh", str(tree.root), "")
    assert facts.program["path"] == str(tree.root / "build.sh")
    (tree.root / "notes.txt").write_text("mine")
    given = {"script": "rm -f notes.txt"}
    verdict = decide(
        build_action("s", "c1.0", "t", "shell", given, gather(tree, "shell", given, SandboxConfig())), default_policy()
    )
    assert verdict.verdict == "allow"


def test_inherited_git_variables_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "repo")
    other = repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert open_repository(repo).root == repo
    tree = session(tmp_path, repo)
    assert tree.common == repo / ".git"
    assert git(other, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_worktree_that_its_agent_closed_is_opened_again(tmp_path: Path) -> None:
    tree = session(tmp_path, repository(tmp_path / "repo"))
    for folder in (tree.root, tree.private, tree.objects):
        folder.chmod(0)
    prepare(tree)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (tree.root, tree.private, tree.objects)] == [0o700] * 3


def test_what_stands_is_not_written_again(tmp_path: Path) -> None:
    tree = session(tmp_path, repository(tmp_path / "repo"))
    names = (tree.objects / "info" / "alternates", tree.root / ".git")
    prepare(tree)
    before = [(path.read_bytes(), path.stat().st_ino) for path in names]
    prepare(tree)
    assert [(path.read_bytes(), path.stat().st_ino) for path in names] == before
    for path in names:
        path.unlink()
        path.symlink_to(tmp_path / "repo" / ".git" / "HEAD")
    prepare(tree)
    assert [path.read_bytes() for path in names] == [text for text, _ in before]
    assert not any(path.is_symlink() for path in names)


def test_a_machine_without_git_is_told_so_in_a_sentence(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from harness.workspace.git.errors import GitMissing\n"
        "from harness.workspace.git.run import open_repository\n"
        "try:\n"
        "    open_repository(Path('.'))\n"
        "except GitMissing as exc:\n"
        "    print(exc)\n"
    )
    env = {"PATH": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("git cannot be run")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""

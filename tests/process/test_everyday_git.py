"""The git that people use every day works inside, in the session's own git directory, and none of it reaches the
person's repository but the commits that HEAD stands on.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.domain.actions.action import PushAction
from harness.policy.build import build_action
from harness.protocol.config.sections import SandboxConfig
from harness.workspace.facts.gather import gather
from harness.workspace.git.errors import UnsavedWork
from harness.workspace.private_git import own_refs
from harness.workspace.private_git.private_gitdir import Worktree, agent_branch, agent_head, publish
from harness.workspace.tree import remove
from tests.process.test_workspace_shown import with_history
from tests.process.test_workspace_worktrees import agent, git, session

pytestmark = pytest.mark.sandbox
COMMIT = "c() { echo $1 >> $1.txt; git add -A; git commit -qm $1; }; "
WORKS = {
    "branches": "git branch x; git switch -q -c y; git checkout -q -b z; git branch -m z zz; git branch -q -D x y",
    "back and forth": "git switch -q -c y; c one; git switch -q main; git switch -q y; test -e one.txt",
    "tags": "git tag t; git tag -a -m m u; git describe --tags | grep .; git tag -d t",
    "stash": "echo b > a.txt; git stash -q; git stash list | grep stash@; git stash pop -q; grep b a.txt",
    "stash of new files": "echo n > n; git stash -qu; ! test -e n; git stash apply -q; git stash drop -q; test -e n",
    "notes": "git notes add -m note; git notes show | grep note; git notes remove 2>&1",
    "bisect": (
        "c one; c two; c bad; c three; git bisect start HEAD HEAD~4 2>&1; git bisect run sh -c '! test -e bad.txt'"
        " | grep 'first bad'; git bisect reset 2>&1"
    ),
    "worktree inside": "git worktree add -q w -b w; cd w; c one; cd ..; git worktree remove w; git log -1 w | grep one",
    "worktree in tmp": "git worktree add -q /tmp/w side; test -e /tmp/w/side.txt; git worktree prune",
    "amend": "c one; git commit -q --amend -m other; git log -1 --format=%s | grep other",
    "interactive rebase": (
        "c one; c two; GIT_SEQUENCE_EDITOR=\"sed -i '2s/pick/fixup/'\" git rebase -q -i HEAD~2; git"
        " rev-list --count HEAD | grep 2"
    ),
    "autosquash": "c one; echo 1 >> one.txt; git commit -qa --fixup HEAD; git rebase -q -i --autosquash HEAD~2",
    "rebase": "git switch -q -c y; c one; git switch -q -c m main; c two; git rebase -q m y; git log m..y | grep one",
    "cherry-pick": "git cherry-pick side; test -e side.txt",
    "merge": "git switch -q -c y; c one; git switch -q main; c two; git merge -q --no-edit y; test -e one.txt",
    "revert": "c one; git revert --no-edit HEAD; ! test -e one.txt",
    "reset": "c one; git reset -q --hard HEAD~1; git reset -q --hard 'HEAD@{1}'; test -e one.txt",
    "reflog": "git switch -q -c y; c one; git reflog | grep one; git reflog show y | grep one",
    "gc": "c one; git branch x; git gc -q --prune=now; git fsck 2>&1; git log -1 --format=%s | grep one",
    "config": "git config --local my.key v; git config my.key | grep v; git config user.name | grep .",
    "remotes": "git remote -v; git remote add mine /x; git remote -v | grep mine",
    "upstream": "git switch -q -c y; git branch -q --set-upstream-to=main; git status -sb | grep main",
    "submodules": "git submodule status",
    "clean": "touch n; git clean -qfd; ! test -e n",
    "blame": "git blame a.txt | grep .",
    "sparse": "git sparse-checkout set --no-cone '/*' '!b.txt'; git sparse-checkout list; git sparse-checkout disable",
    "restore": "echo x > a.txt; git restore a.txt; git rm -q --cached a.txt; git restore --staged a.txt",
    "patches": "c one; git format-patch -1 --stdout > /tmp/p; git reset -q --hard HEAD~1; git am -q /tmp/p",
    "archive": "git archive HEAD | tar t | grep a.txt",
    "replace and grep": "git grep -q a; git shortlog -s HEAD; git count-objects; git show-branch; git name-rev HEAD",
}


@pytest.fixture
def tree(tmp_path: Path) -> Worktree:
    return session(tmp_path, with_history(tmp_path / "repo"))


@pytest.mark.parametrize("what", WORKS)
def test_everyday_git_works_inside_and_stays_there(tree: Worktree, what: str) -> None:
    refs = git(tree.repo, "for-each-ref")
    config = (tree.common / "config").read_bytes()
    agent(tree, f"set -e; {COMMIT}{WORKS[what]}")
    publish(tree)
    branch = f"refs/heads/{tree.branch}"
    now = git(tree.repo, "for-each-ref")
    assert [one for one in now.splitlines() if branch not in one] == [
        one for one in refs.splitlines() if branch not in one
    ]
    assert (tree.common / "config").read_bytes() == config
    git(tree.repo, "fsck", "--strict")
    assert "dirty" not in agent(tree, "git status --porcelain >/dev/null || echo dirty")


def test_own_refs_stay_across_calls_and_the_repositorys_move_on(tree: Worktree) -> None:
    agent(
        tree, f"{COMMIT}git tag mine; git branch -q -D side; git branch -f main HEAD; c one; git branch work; git gc -q"
    )
    git(tree.repo, "tag", "theirs")
    git(tree.repo, "branch", "-q", "late")
    out = agent(tree, "git for-each-ref --format='%(refname:short)'").split()
    assert {"mine", "work", "theirs", "late", "main", "v1", tree.branch} <= {*out}
    assert "side" not in out, "the agent took it away"
    git(tree.repo, "branch", "-f", "side", "main")
    git(tree.repo, "tag", "-d", "theirs")
    out = agent(tree, "git for-each-ref --format='%(refname:short)'").split()
    assert "side" in out, "it moved in the repository"
    assert "theirs" not in out
    assert {"mine", "work"} <= {*out}


def test_the_branch_that_the_agent_is_on_is_what_is_published(tree: Worktree) -> None:
    agent(tree, f"{COMMIT}git switch -q -c feature; c one")
    assert agent_branch(tree) == "feature"
    assert publish(tree).moved
    assert git(tree.repo, "log", "-1", "--format=%s", tree.branch) == "one"
    assert own_refs.only_there(tree) == []
    git(tree.root, "commit", "-q", "--allow-empty", "-m", "by hand")
    publish(tree)
    assert agent(tree, "git log -1 --format='%s %D'").strip() == f"by hand HEAD -> feature, {tree.branch}"
    agent(tree, "git pack-refs --all --prune")
    assert agent_head(tree) == git(tree.repo, "rev-parse", tree.branch)


def test_a_branch_of_the_agents_own_can_be_pushed_by_its_name(tree: Worktree, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(tree.repo, "remote", "add", "origin", str(tmp_path / "remote.git"))
    agent(tree, f"{COMMIT}git switch -q -c aside; c zero; git switch -q -c feature main; c one; git branch -f side")

    def asked(*argv: str) -> PushAction:
        given = {"argv": ["git", "push", *argv]}
        action = build_action("s", "c1.0", "t", "exec", given, gather(tree, "exec", given, SandboxConfig()))
        assert isinstance(action, PushAction)
        return action

    head = agent_head(tree)
    for argv in (["-u", "origin", "feature"], ["origin", "feature:refs/heads/x"], ["origin", "side"]):
        action = asked(*argv)
        assert not action.refused
        assert [spec.sha for spec in action.to.refspecs] == [head]
    assert "switch to that branch first" in asked("origin", "aside").refused
    agent(tree, "git switch -q aside")
    assert not asked("origin", "aside").refused
    assert not asked("origin", "feature").refused, "it was published when HEAD stood there"


def test_commits_of_other_branches_and_the_stash_are_not_lost(tree: Worktree) -> None:
    agent(tree, f"{COMMIT}git switch -q -c aside; c one; git tag mark; c two; git switch -q --detach {tree.base}")
    agent(tree, "echo changed > a.txt; git stash -q; git switch -q -c copy main")
    publish(tree)
    assert [ref.told for ref in own_refs.only_there(tree)] == ["branch aside", "its stash", "tag mark"]
    with pytest.raises(UnsavedWork, match=r"refs of the agent's own have \(branch aside, its stash, tag mark\)"):
        remove.remove(tree, "s1")
    (ref,) = remove.remove(tree, "s1", force_keep=True)
    assert "two" in git(tree.repo, "log", "--format=%s", ref).splitlines()
    stashed = next(one for one in git(tree.repo, "log", "--format=%H %s", ref).splitlines() if "WIP" in one)
    assert git(tree.repo, "show", f"{stashed.split()[0]}:a.txt") == "changed"
    git(tree.repo, "fsck", "--strict")


def test_a_session_sees_its_own_branch_and_no_other_sessions(tmp_path: Path) -> None:
    repo = with_history(tmp_path / "repo")
    other = session(tmp_path, repo, "other")
    agent(other, "echo hush > secret.txt; git add -A; git commit -qm secret; git branch more")
    publish(other)
    git(repo, "update-ref", f"refs/remotes/origin/{other.branch}", other.branch)
    git(repo, "update-ref", "refs/remotes/origin/far", "side")
    tree = session(tmp_path, repo)
    for name in (other.branch, f"origin/{other.branch}", f"refs/heads/{other.branch}", "more"):
        assert "hush" not in agent(tree, f"git show {name}:secret.txt", ok=False)
    places = f"{other.root} {other.private.parent} {tree.root.parent} {tree.private.parents[2]}"
    assert "hush" not in agent(
        tree, f"cat {other.root}/secret.txt; grep -rs hush {places}; git worktree list", ok=False
    )
    out = agent(
        tree, f"git for-each-ref; git log --all --format=%s; ls -R {tree.common} {tree.private.parent}", ok=False
    )
    assert "other" not in out
    assert "secret" not in out
    assert {f"refs/heads/{tree.branch}", "refs/remotes/origin/far", "refs/tags/v1"} <= {*out.split()}


def test_an_undo_brings_own_refs_back_and_the_repositorys_still_move_on(tree: Worktree, tmp_path: Path) -> None:
    agent(tree, "git branch mine")
    shutil.copytree(tree.private, tmp_path / "kept", symlinks=True)
    agent(tree, f"{COMMIT}git branch later; git pack-refs --all --prune; git branch -D mine")
    git(tree.repo, "commit", "-q", "--allow-empty", "-m", "moved")
    git(tree.repo, "branch", "new")
    assert "later" in agent(tree, "git branch")
    shutil.rmtree(tree.private)
    shutil.copytree(tmp_path / "kept", tree.private, symlinks=True)
    moved = git(tree.repo, "rev-parse", "main")
    for _ in range(2):
        out = agent(tree, "git for-each-ref --format='%(refname:short) %(objectname)' refs/heads")
        assert f"main {moved}\n" in out
        assert f"new {moved}\n" in out
        assert {"mine", "later"} & {*out.split()} == {"mine"}
        git(tree.repo, "commit", "-q", "--allow-empty", "-m", "again")
        moved = git(tree.repo, "rev-parse", "main")
        git(tree.repo, "branch", "-f", "new", "main")


SAYS = {
    "git fetch origin": '"git branch -a"',
    "git pull": 'access "network"',
    "git -C . -c a.b=c fetch https://example.invalid/x.git": 'access "network"',
    "git clone https://example.invalid/x.git /tmp/x": "no remote",
    "git clone git@example.invalid:x /tmp/x": "no remote",
    "git ls-remote https://example.invalid/x.git": "no remote",
    "git remote update": "no remote",
    "git push origin HEAD": '"git push REMOTE BRANCH"',
    "git push https://example.invalid/x.git HEAD:main": "a person decides",
    "git submodule add https://example.invalid/x.git lib": "submodule update --init",
    "git worktree add ../elsewhere": "/tmp/NAME",
}


@pytest.mark.parametrize("command", SAYS)
def test_what_cannot_work_says_in_one_line_what_to_do(tree: Worktree, command: str) -> None:
    git(tree.repo, "remote", "add", "origin", "https://example.invalid/origin.git")
    bare = agent(tree, f"/usr/bin/{command}; true")
    (tree.root / "Makefile").write_text(f"all:\n\t{command}\n")
    for script in (command, f"sh -c '{command}'", "python3 -c 'import os; os.system(\"make\")'"):
        out = agent(tree, f"{script} || echo CODE $?", ok=False)
        (line,) = (one for one in out.splitlines() if one.startswith("watchfloor: "))
        assert SAYS[command] in line
    assert "watchfloor: " not in bare
    assert (
        agent(tree, f"/usr/bin/{command} 2>&1; echo $?").splitlines()[-1]
        == (agent(tree, f"{command} 2>/dev/null; echo $?").splitlines()[-1])
    )


def test_what_works_or_fails_for_another_reason_says_nothing_more(tree: Worktree) -> None:
    out = agent(
        tree,
        f"{COMMIT}git init -q --bare /tmp/r; git push -q /tmp/r HEAD:refs/heads/m; git clone -q -b m /tmp/r /tmp/c;"
        " git worktree add -q /tmp/w; git submodule; git remote add x /y; git remote add x /y; git worktree remove z;"
        " git nonsense; cd /tmp/c; c one; git push -q; cd -; c two; git pull -q --no-rebase /tmp/r m; git log -3;"
        " echo mine > one.txt; git add .; git commit -qm three; echo other > /tmp/c/one.txt;"
        " git -C /tmp/c commit -qam four; git -C /tmp/c push -q; git pull -q --no-rebase /tmp/r m",
        ok=False,
    )
    assert "CONFLICT" in out
    assert "watchfloor: " not in out


HOSTILE = (
    "rm -rf $G/refs; ln -s / $G/refs",
    "rm -rf $G/refs/remotes; ln -s $PWD $G/refs/remotes",
    "rm $G/packed-refs; mkdir $G/packed-refs",
    "rm $G/packed-refs; mkfifo $G/packed-refs",
    "rm $G/packed-refs; ln -s $PWD/a.txt $G/packed-refs",
    "echo nonsense > $G/packed-refs",
    "rm -rf $G/info; ln -s $PWD $G/info",
    "rm $G/shown-refs; mkfifo $G/shown-refs",
    "rm $G/shown-refs; mkdir -p $G/shown-refs/x; rm -rf $G/config; mkdir $G/config",
    "rm $G/shown-refs; ln -s $PWD/a.txt $G/shown-refs; ln -s $PWD/a.txt $G/commondir",
    "mkdir -p $G/refs/heads/late; touch $G/refs/heads/late/x",
)


@pytest.mark.parametrize("script", HOSTILE)
def test_nothing_is_written_or_read_past_what_an_agent_made_of_its_git_directory(tree: Worktree, script: str) -> None:
    before = (tree.root / "a.txt").read_bytes()
    agent(tree, f"G={tree.admin}; {script}", ok=False)
    git(tree.repo, "branch", "-q", "late")
    git(tree.repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/late")
    (tree.common / "info").mkdir(exist_ok=True)
    (tree.common / "info" / "exclude").write_text("*.mine\n")
    agent(tree, "git branch", ok=False)
    own_refs.of(tree)
    assert (tree.root / "a.txt").read_bytes() == before
    assert sorted(path.name for path in tree.root.iterdir()) == [".git", "a.txt"]

"""A repository whose configuration, hooks and attributes try to run things: none of our git calls may run any of
them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.domain.actions.effect import Effect
from harness.policy.build import build_action
from harness.protocol.config.sections import SandboxConfig
from harness.workspace.facts.gather import gather
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.git.run import Git
from harness.workspace.private_git.private_gitdir import Worktree, publish
from harness.workspace.tree import remove, worktrees
from harness.workspace.tree.diff import diff

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
KEYS = [
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.sshCommand",
    "core.askPass",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "diff.external",
    "diff.evil.textconv",
    "diff.evil.command",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "merge.evil.driver",
    "gpg.program",
    "credential.helper",
    "sequence.editor",
    "interactive.diffFilter",
    "pager.status",
    "pager.diff",
    "pager.log",
    "alias.status",
    "uploadpack.packObjectsHook",
    "trailer.evil.command",
]
HOOKS = [
    "post-checkout",
    "pre-commit",
    "post-commit",
    "reference-transaction",
    "post-index-change",
    "pre-push",
    "post-merge",
    "pre-auto-gc",
    "fsmonitor-watchman",
    "post-rewrite",
]


def git(folder: Path, *args: str) -> str:
    command = ["git", "-c", "user.name=Me", "-c", "user.email=me@here", *args]
    return subprocess.run(command, cwd=folder, env=ENV, check=True, capture_output=True, text=True).stdout.strip()


def marker(folder: Path, name: str) -> str:
    """A program that leaves a file behind and then behaves like ``cat``."""
    path = folder / f"run-{name}"
    path.write_text(f"#!/bin/sh\ntouch '{folder}/ran-{name}'\nexec cat\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, Path]:
    """(repository, folder of the markers): everything that can run something is set, in the repository and through an
    include.
    """
    repo = tmp_path / "repo"
    markers = tmp_path / "markers"
    repo.mkdir()
    markers.mkdir()
    git(repo, "init", "-q", "-b", "main")
    (repo / "a.txt").write_text("a\n")
    (repo / "b.evil").write_text("b\n")
    (repo / ".gitattributes").write_text("* diff=evil filter=evil merge=evil\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "one")
    hooks = repo / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{markers}/ran-hook-{name}'\n")
        (hooks / name).chmod(0o755)
    git(repo, "config", "core.hooksPath", str(hooks))
    included = tmp_path / "included"
    for number, key in enumerate(KEYS):
        target = ["--file", str(included)] if number % 2 else []
        git(repo, "config", *target, key, marker(markers, key))
    git(repo, "config", "filter.evil.required", "true")
    git(repo, "config", "remote.origin.url", f"ext::{marker(markers, 'ext')} %S")
    git(repo, "config", "remote.origin.vcs", "evil")
    git(repo, "config", "protocol.ext.allow", "always")
    git(repo, "config", "submodule.recurse", "true")
    git(repo, "config", "include.path", str(included))
    for left in markers.glob("ran-*"):
        left.unlink()
    return repo, markers


def made(repo: Path, tmp_path: Path) -> Worktree:
    return worktrees.create(
        repo,
        tmp_path / "state" / "worktrees" / "s1",
        "watchfloor/s1",
        tmp_path / "state" / "sessions" / "s1" / "git" / "private",
    )


def ran(markers: Path) -> list[str]:
    return sorted(p.name for p in markers.glob("ran-*"))


def test_the_trap_itself_works(hostile: tuple[Path, Path]) -> None:
    repo, markers = hostile
    (repo / "a.txt").write_text("changed\n")
    subprocess.run(["git", "status"], cwd=repo, env=ENV, capture_output=True, check=False)
    subprocess.run(["git", "diff"], cwd=repo, env=ENV, capture_output=True, check=False)
    assert len(ran(markers)) >= 2


def test_nothing_runs_in_a_whole_life_of_a_session(hostile: tuple[Path, Path], tmp_path: Path) -> None:
    repo, markers = hostile
    (repo / "a.txt").write_text("dirty\n")
    tree = made(repo, tmp_path)
    assert tree.dirty == 1
    assert (tree.root / "a.txt").read_text() == "a\n"
    (tree.root / "a.txt").write_text("work\n")
    (tree.root / "new.txt").write_text("new\n")
    assert {f.path: f.status for f in diff(tree).files} == {"a.txt": "modified", "new.txt": "untracked"}
    _commit_as_agent(tree)
    assert publish(tree).moved
    for given in ({"argv": ["git", "push"]}, {"argv": ["rm", "new.txt"]}, {"argv": ["git", "push", "ext::sh -c x"]}):
        try:
            build_action("s", "c1.0", "t", "exec", given, gather(tree, "exec", given, SandboxConfig()))
        except Exception as exc:  # a remote that cannot be asked is refused; here only markers count
            assert "ext::" in str(exc)  # noqa: PT017
    assert remove.remove(tree, "s1", force_keep=True)
    assert ran(markers) == []
    assert git(
        repo,
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.pager=cat",
        "rev-parse",
        "refs/watchfloor/kept/s1",
    )


def _commit_as_agent(tree: Worktree) -> None:
    """A commit written into the private directory, without the sandbox: plumbing on the session's own object store."""
    env = {
        "GIT_DIR": str(tree.admin),
        "GIT_OBJECT_DIRECTORY": str(tree.objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(tree.common / "objects"),
        "GIT_INDEX_FILE": str(tree.private / "index"),
        **{f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    runner = Git.of(tree.admin, tree.root).with_env(**env)
    runner.run("add", "a.txt")
    commit = runner.text("commit-tree", runner.text("write-tree"), "-p", tree.base, "-m", "two")
    (tree.private / "HEAD").write_text(commit + "\n")


def test_a_nested_repository_of_the_agent_is_not_entered(hostile: tuple[Path, Path], tmp_path: Path) -> None:
    repo, markers = hostile
    tree = made(repo, tmp_path)
    nested = tree.root / "sub"
    nested.mkdir()
    git(nested, "init", "-q")
    (nested / "f").write_text("f")
    git(nested, "add", ".")
    git(nested, "commit", "-qm", "x")
    git(nested, "config", "core.fsmonitor", marker(markers, "nested"))
    link = git(nested, "-c", "core.fsmonitor=false", "rev-parse", "HEAD")
    tree.git.run("update-index", "--add", "--cacheinfo", f"160000,{link},sub")
    (nested / "f").write_text("changed")
    diff(tree)
    assert ran(markers) == []


def test_names_that_look_like_options_or_commands_are_only_names(tmp_path: Path) -> None:
    repo = tmp_path / "--upload-pack=touch x"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    for name in ("--output=x", "$(touch y)", "-rf", "a\nb", "\x1b[31m", ":(top)z"):
        (repo / name).write_text(name)
    git(repo, "add", "--", ".")
    git(repo, "commit", "-qm", "one")
    git(repo, "update-ref", "refs/heads/-x", "HEAD")
    tree = made(repo, tmp_path)
    for path in list(tree.root.iterdir()):
        if path.name != ".git":
            path.write_text("changed")
    (tree.root / "--new").write_text("n")
    assert len(diff(tree).files) == 7
    assert [f.path for f in diff(tree).files if f.status == "untracked"] == ["--new"]
    assert remove.remove(tree, "s1", force_keep=True) == ["refs/watchfloor/kept/s1"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["--upload-pack=touch x", "state"]


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "x.lock", "@{1}", "refs/../x", "a\nb"])
def test_a_branch_name_that_git_would_not_take_is_refused(tmp_path: Path, branch: str) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "commit", "-q", "--allow-empty", "-m", "one")
    with pytest.raises(WorkspaceError, match="check-ref-format"):
        worktrees.create(repo, tmp_path / "wt" / "s", branch, tmp_path / "s" / "git" / "private")
    assert not (tmp_path / "wt" / "s").exists()


def test_a_path_that_nobody_may_resolve_is_asked_about_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``/proc/1/root`` is a link that the kernel lets few read; here it lets nobody."""
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "commit", "-q", "--allow-empty", "-m", "one")
    tree = made(repo, tmp_path)
    readlink = os.readlink

    def refused(path: str, **more: int) -> str:
        if str(path) == "/proc/1/root":
            raise PermissionError(13, "Permission denied", path)
        return readlink(path, **more)

    monkeypatch.setattr(os, "readlink", refused)
    given = {"path": "/proc/1/root/etc/shadow"}
    action = build_action("s", "c1.0", "t", "read_file", given, gather(tree, "read_file", given, SandboxConfig()))
    assert action.effects == (Effect.at("/proc/1/root/etc/shadow"),)

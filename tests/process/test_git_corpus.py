"""Every git that the harness runs outside the sandbox × every setting that runs a program × every place where it can be
written.

No trap of `gittraps` may be sprung in the whole life of a session, whichever verb is at work.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.policy.build import build_action
from harness.protocol.config.sections import SandboxConfig
from harness.workspace.facts.gather import gather
from harness.workspace.git import shown_config
from harness.workspace.git.errors import PartialClone, UnsavedWork, WorkspaceError
from harness.workspace.git.run import open_repository
from harness.workspace.private_git.private_gitdir import Worktree, binds, publish
from harness.workspace.tree import remove
from harness.workspace.tree.diff import diff
from tests.process.gittraps import ATTRIBUTES, ENV, SETTINGS, Traps, base_repository, commit_as_agent, git, session

PLACES = (
    "user",
    "included",
    "user-worktree-config",
    "global",
    "private",
    "commondir",
    "worktree",
    "nested",
    "gitlink",
    "gitlink-gitfile",
    "ignored",
)


@pytest.fixture
def traps(tmp_path: Path) -> Traps:
    return Traps(tmp_path / "traps")


def set_in_repository(place: str, repo: Path, traps: Traps, home: Path) -> None:
    """The traps of those places that are there before a session begins."""
    if place == "user":
        traps.git_directory(repo / ".git", place)
        git(repo, "config", "--file", str(repo / ".git" / "config"), "core.hooksPath", str(repo / ".git" / "hooks"))
    elif place == "included":
        traps.configure(repo / "shared.gitconfig", place)
        traps.hooks(repo / "hooks", place)
        git(repo, "config", "--file", str(repo / "shared.gitconfig"), "core.hooksPath", str(repo / "hooks"))
        git(repo, "config", "include.path", "../shared.gitconfig")
        git(repo, "config", "includeIf.gitdir:**.path", str(repo / "shared.gitconfig"))
    elif place == "user-worktree-config":
        git(repo, "config", "extensions.worktreeConfig", "true")
        traps.configure(repo / ".git" / "config.worktree", place)
    elif place == "global":
        traps.configure(home / ".gitconfig", place)
        traps.configure(home / ".config" / "git" / "config", place)
        (home / ".config" / "git" / "attributes").write_text(ATTRIBUTES)


def set_by_agent(place: str, tree: Worktree, traps: Traps) -> None:
    """The traps that an agent can set inside the sandbox."""
    if place in ("private", "commondir"):
        traps.git_directory(tree.private, place)
        traps.configure(tree.private / "config.worktree", f"{place}-worktree")
        (tree.objects / "info" / "alternates").write_text(f"{tree.root}/evil.git/objects\n")
    if place == "commondir":
        evil = tree.root / "evil.git"
        git(tree.root, "init", "-q", "--bare", str(evil))
        traps.git_directory(evil, "evil")
        (tree.private / "commondir").write_text(f"{evil}\n")
    elif place == "worktree":
        git(tree.root.parent, "init", "-q", "--bare", str(tree.root.parent / "bare"))
        for path in (tree.root.parent / "bare").iterdir():  # the worktree itself looks like a bare repository
            path.rename(tree.root / path.name)
        traps.git_directory(tree.root, place)
        traps.configure(tree.root / ".gitconfig", f"{place}-gitconfig")
        (tree.root / ".gitmodules").write_text(
            f'[submodule "sub"]\n\tpath = sub\n\turl = ./x\n\tupdate = !{traps.program("gitmodules")}\n'
        )
        for name in ("git", "ssh", "git-remote-trap", "cat"):
            (tree.root / name).symlink_to(traps.program(f"{place}-path-{name}"))
    elif place in ("nested", "gitlink", "gitlink-gitfile", "ignored"):
        folder = tree.root / ("node_modules/sub" if place == "ignored" else "sub")
        inner = traps.repository(folder, place)
        if place == "gitlink-gitfile":
            (folder / ".git").rename(tree.root / "inner.git")
            (folder / ".git").write_text("gitdir: ../inner.git\n")
        if place != "nested":
            (tree.root / ".gitignore").write_text("node_modules/\n")
            commit_as_agent(tree, ".gitignore", *([f"160000,{inner},sub"] if place.startswith("gitlink") else []))


def verbs(tree: Worktree) -> list[tuple[str, Callable[[], object]]]:
    """Everything of the harness that runs git on a session that is there."""

    def facts(tool: str, **given: object) -> Callable[[], object]:
        def ask() -> None:
            try:
                build_action("s", "c1.0", "t", tool, given, gather(tree, tool, given, SandboxConfig())).to_wire()
            except WorkspaceError as exc:
                if not any(said in str(exc) for said in ("ext::", "cannot be published", "HEAD")):
                    raise

        return ask

    def refused() -> None:
        with pytest.raises(UnsavedWork):
            remove.remove(tree, "s1")

    def tolerant_publish() -> None:
        try:
            publish(tree)
        except WorkspaceError as exc:
            assert "publish" in str(exc)  # noqa: PT017

    return [
        ("publish", tolerant_publish),
        ("diff", lambda: diff(tree)),
        ("binds", lambda: binds(tree)),
        ("shown config", lambda: shown_config.shown(tree.git, tree.common / "config")),
        ("facts of exec", facts("exec", argv=["make"])),
        ("facts of shell", facts("shell", script="rm -rf x && git status")),
        ("facts of push", facts("exec", argv=["git", "push"])),
        ("facts of push elsewhere", facts("exec", argv=["git", "push", "ext::sh -c x"])),
        ("facts of write", facts("write_file", path="sub/f", content="")),
        ("remove refused", refused),
        ("remove kept", lambda: remove.remove(tree, "s1", force_keep=True)),
        ("launch again", lambda: session(tree.root.parent.parent.parent, tree.repo, "s2")),
    ]


@pytest.mark.parametrize("place", PLACES)
def test_no_verb_springs_a_trap(tmp_path: Path, traps: Traps, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    repo = base_repository(tmp_path / "repo")
    set_in_repository(place, repo, traps, home)
    (repo / "a.txt").write_text("dirty\n")
    traps.clear()
    assert open_repository(repo).root == repo
    tree = session(tmp_path, repo)
    assert traps.sprung() == [], "create"
    (tree.root / "a.txt").write_text("work\n")
    (tree.root / "new.txt").write_text("new\n")
    (tree.root / ".gitattributes").write_text(ATTRIBUTES)
    commit_as_agent(tree, "a.txt")
    set_by_agent(place, tree, traps)
    (tree.root / "b.txt").write_text("more\n")
    traps.clear()
    for name, run in verbs(tree):
        run()
        assert traps.sprung() == [], name
    assert not tree.root.exists()
    assert git(repo, "show", "refs/watchfloor/kept/s1:b.txt") == "more"


@pytest.mark.parametrize("key", [k for k in SETTINGS if k.startswith(("core.", "filter.", "diff.", "hook."))])
@pytest.mark.parametrize("place", ["user", "gitlink"])
def test_a_setting_alone_springs_nothing(tmp_path: Path, traps: Traps, key: str, place: str) -> None:
    """One trap at a time: none hides behind another that made git stop before it."""
    repo = base_repository(tmp_path / "repo")
    if place == "user":
        git(repo, "config", key, traps.program(key))
    tree = session(tmp_path, repo)
    (tree.root / "a.txt").write_text("work\n")
    if place == "gitlink":
        inner = base_repository(tree.root / "sub")
        commit_as_agent(tree, f"160000,{git(inner, 'rev-parse', 'HEAD')},sub")
        (inner / "a.txt").write_text("changed\n")
        git(inner, "config", key, traps.program(key))
    traps.folder.mkdir(exist_ok=True)
    publish(tree)
    diff(tree)
    assert remove.remove(tree, "s1", force_keep=True)
    assert traps.sprung() == []


@pytest.mark.parametrize("kind", ["uploadpack", "ext", "vcs"])
def test_missing_objects_are_not_fetched_by_programs_of_the_repository(tmp_path: Path, traps: Traps, kind: str) -> None:
    upstream = base_repository(tmp_path / "upstream")
    git(upstream, "config", "uploadpack.allowFilter", "true")
    git(
        tmp_path,
        "-c",
        "protocol.file.allow=always",
        "clone",
        "-q",
        "--no-checkout",
        "--filter=blob:none",
        f"file://{upstream}",
        "repo",
    )
    repo = tmp_path / "repo"
    program = traps.program(kind)
    if kind == "uploadpack":
        git(repo, "config", "remote.origin.uploadpack", program)
    elif kind == "ext":
        git(repo, "config", "protocol.ext.allow", "always")
        git(repo, "config", "remote.origin.url", f"ext::{program}")
    else:
        git(repo, "config", "remote.origin.vcs", "ext")
        git(repo, "config", "remote.origin.url", program)
        git(repo, "config", "protocol.ext.allow", "always")
    with pytest.raises(PartialClone, match="partial clone"):
        session(tmp_path, repo)
    assert traps.sprung() == []
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/heads/watchfloor") == ""


def test_records_of_other_worktrees_stay(tmp_path: Path) -> None:
    """A worktree of the user on a disk that is away is not forgotten because a session begins or ends."""
    repo = base_repository(tmp_path / "repo")
    git(repo, "worktree", "add", "-q", str(tmp_path / "usb"), "-b", "usb")
    (tmp_path / "usb").rename(tmp_path / "unplugged")
    tree = session(tmp_path, repo)
    remove.remove(tree, "s1")
    assert str(tmp_path / "usb") in git(repo, "worktree", "list")
    assert not tree.admin.exists()


def test_the_traps_are_live(tmp_path: Path, traps: Traps) -> None:
    """The control: what people type springs them, in the user's repository and through a gitlink."""
    repo = base_repository(tmp_path / "repo")
    inner = traps.repository(repo / "sub", "gitlink")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{inner},sub")
    for key in ("filter.trap.process", "diff.trap.command", "diff.external"):
        git(repo, "config", "--file", str(repo / "sub" / ".git" / "config"), "--unset-all", key)
        git(repo, "config", "--file", str(repo / ".sub.included"), "--unset-all", key)
    traps.clear()

    def typed(*args: str) -> None:
        subprocess.run(["git", *args], cwd=repo, env=ENV, capture_output=True, stdin=subprocess.DEVNULL, check=False)

    typed("add", "--all")
    assert any(name.startswith("gitlink") for name in traps.sprung()), traps.sprung()
    traps.configure(repo / ".git" / "config", "user")
    traps.hooks(repo / ".git" / "hooks", "user")
    traps.clear()
    (repo / "a.txt").write_text("changed\n")
    os.utime(repo / "b.txt", (1, 1))  # same size, other time: git has to read it, through the filter
    for command in (
        ("config", "user.email", "me@here"),
        ("status",),
        ("config", "--remove-section", "filter.trap"),
        ("diff",),
        ("config", "--remove-section", "diff.trap"),
        ("diff",),
        ("-c", "commit.gpgSign=false", "commit", "--allow-empty"),
        ("commit-tree", "-S", "-m", "x", "HEAD^{tree}"),
        ("-c", "alias.x=!git config --get alias.checkout | cut -c2- | sh", "x"),
        ("update-ref", "refs/heads/y", "HEAD"),
        ("add", "a.txt"),
        ("fetch", "ssh://h.invalid/x"),
        ("fetch", "git://h.invalid/x"),
    ):
        typed(*command)
    found = {name.removeprefix("user-") for name in traps.sprung()}
    wanted = {
        "core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.editor", "diff.external", "diff.trap.command",
        "filter.trap.process", "gpg.program", "alias.checkout", "hook-reference-transaction",
        "hook-post-index-change",
    }  # fmt: skip
    assert wanted <= found, wanted - found

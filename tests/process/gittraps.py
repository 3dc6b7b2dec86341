"""Traps for git: every setting that makes it run a program, in every place where an agent or a repository can write it.

A trap's program leaves its name in a folder and then behaves like ``cat`` where that makes sense. Nobody but the tests
here and their controls may spring one.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree import worktrees

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
SETTINGS = (
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.sshCommand",
    "core.askPass",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "credential.helper",
    "credential.https://h.invalid.helper",
    "diff.external",
    "diff.trap.textconv",
    "diff.trap.command",
    "filter.trap.clean",
    "filter.trap.smudge",
    "filter.trap.process",
    "merge.trap.driver",
    "gpg.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultKeyCommand",
    "sequence.editor",
    "interactive.diffFilter",
    "pager.status",
    "pager.diff",
    "pager.config",
    "alias.status",
    "alias.checkout",
    "uploadpack.packObjectsHook",
    "trailer.trap.cmd",
    "remote.origin.uploadpack",
    "remote.origin.receivepack",
    "submodule.sub.update",
    "hook.trap.command",
)
MORE = (
    ("filter.trap.required", "true"),
    ("commit.gpgSign", "true"),
    ("tag.gpgSign", "true"),
    ("push.gpgSign", "if-asked"),
    ("submodule.recurse", "true"),
    ("status.submoduleSummary", "true"),
    ("diff.submodule", "log"),
    ("diff.ignoreSubmodules", "none"),
    ("protocol.ext.allow", "always"),
    ("hook.trap.event", "pre-commit"),
    ("log.showSignature", "true"),
    ("core.untrackedCache", "true"),
    ("feature.manyFiles", "true"),
)
HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit",
    "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc",
    "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive",
    "push-to-checkout", "reference-transaction", "sendemail-validate", "update",
)  # fmt: skip
ATTRIBUTES = "* diff=trap filter=trap merge=trap\n*.enc working-tree-encoding=UTF-16\nx export-subst\n"


def git(folder: Path, *args: str) -> str:
    """Git as the tests set things up: no trap that is set in ``folder`` takes part in hooks, signing or watching."""
    safe = (
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "commit.gpgSign=false",
        "submodule.recurse=false",
        "user.name=Me",
        "user.email=me@here",
    )
    command = ["git", *(part for setting in safe for part in ("-c", setting)), *args]
    done = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@dataclass(frozen=True)
class Traps:
    """The programs, and what they left behind."""

    folder: Path

    def program(self, name: str) -> str:
        self.folder.mkdir(exist_ok=True)
        path = self.folder / name.replace("/", "_").replace(":", "_")
        path.write_text(
            f'#!/bin/sh\n: > \'{path}.sprung\'\n[ -f "$1" ] && exec cat "$1"\n[ $# -eq 0 ] && exec cat\nexit 0\n'
        )
        path.chmod(0o755)
        return str(path)

    def sprung(self) -> list[str]:
        return sorted(path.name.removesuffix(".sprung") for path in self.folder.glob("*.sprung"))

    def clear(self) -> None:
        for path in self.folder.glob("*.sprung"):
            path.unlink()

    def configure(self, file: Path, where: str) -> None:
        """Every setting, into one configuration file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        for key in SETTINGS:
            value = self.program(f"{where}-{key}")
            git(
                file.parent,
                "config",
                "--file",
                str(file),
                key,
                f"!{value}" if key.startswith(("alias.", "submodule.")) else value,
            )
        for key, value in MORE:
            git(file.parent, "config", "--file", str(file), key, value)
        for key, value in (("url", f"ext::{self.program(f'{where}-ext')} %S"), ("vcs", "trap")):
            git(file.parent, "config", "--file", str(file), f"remote.origin.{key}", value)

    def hooks(self, folder: Path, where: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in HOOKS:
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(self.program(f"{where}-hook-{name}"))

    def git_directory(self, folder: Path, where: str) -> None:
        """A git directory in which everything is a trap."""
        self.configure(folder / "config", where)
        self.hooks(folder / "hooks", where)
        (folder / "info").mkdir(exist_ok=True)
        (folder / "info" / "attributes").write_text(ATTRIBUTES)

    def repository(self, folder: Path, where: str) -> str:
        """A repository with a commit and a changed file, then everything in it a trap; returns its commit."""
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")
        (folder / "f").write_text("f\n")
        (folder / ".gitattributes").write_text(ATTRIBUTES)
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "inner")
        self.git_directory(folder / ".git", where)
        included = folder.parent / f".{folder.name}.included"
        self.configure(included, f"{where}-included")
        git(folder, "config", "--file", str(folder / ".git" / "config"), "include.path", str(included))
        (folder / "f").write_text("changed\n")
        return git(folder, "-c", "core.pager=cat", "rev-parse", "HEAD")


def base_repository(folder: Path) -> Path:
    """A repository whose files carry every attribute that a driver can hang on."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n")
    (folder / "b.txt").write_text("b\n")
    (folder / ".gitattributes").write_text(ATTRIBUTES)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def session(tmp: Path, repo: Path, sid: str = "s1") -> Worktree:
    return worktrees.create(
        repo,
        tmp / "state" / "worktrees" / sid,
        f"watchfloor/{sid}",
        tmp / "state" / "sessions" / sid / "git" / "private",
    )


def commit_as_agent(tree: Worktree, *entries: str) -> str:
    """A commit in the private folder as the sandbox would let an agent make it; ``entries`` are ``mode,oid,path``, or a
    file to add.
    """
    env = ENV | {
        "GIT_DIR": str(tree.admin),
        "GIT_WORK_TREE": str(tree.root),
        "GIT_OBJECT_DIRECTORY": str(tree.objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(tree.common / "objects"),
        "GIT_INDEX_FILE": str(tree.private.parent.parent / "agent.index"),
        **{f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }

    def run(*args: str, stdin: bytes = b"") -> str:
        command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", *args]
        return (
            subprocess.run(command, env=env, cwd=tree.root, input=stdin, capture_output=True, check=True)
            .stdout.decode()
            .strip()
        )

    parent = (tree.private / "HEAD").read_text().strip()
    run("read-tree", parent)
    for entry in entries:
        if entry.count(",") < 2:
            oid = run("hash-object", "-w", "--no-filters", "--stdin", stdin=(tree.root / entry).read_bytes())
            entry = f"100644,{oid},{entry}"
        run("update-index", "--add", "--cacheinfo", entry)
    commit = run("commit-tree", run("write-tree"), "-p", parent, "-m", "agent's")
    (tree.private / "HEAD").write_text(commit + "\n")
    return commit

"""Preconditions: building and checking read the same world, and every change is named."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.domain.actions.action import Action, from_wire
from harness.executor import preconditions


def git(folder: Path, *args: str) -> str:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    return subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *args],
        cwd=folder,
        env=env,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    (repo / "build.sh").write_text("echo hi\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "one")
    git(repo, "remote", "add", "origin", "https://example.org/x.git")
    git(repo, "worktree", "add", "-q", "-b", "wf/one", str(tmp_path / "wt"))
    return tmp_path / "wt"


def action(root: Path, **pre: Any) -> Action:
    return from_wire(
        {
            "kind": "push",
            "tool": "exec",
            "url": "https://example.org/x.git",
            "cwd": str(root),
            "remote": "origin",
            "sandbox": {"write": [str(root)], "binds": []},
            "pre": pre,
        }
    )


def test_nothing_changed_is_no_difference(worktree: Path) -> None:
    draft = action(
        worktree,
        files={"build.sh": "", "new": "", "/etc/hostname": ""},
        head="",
        worktree={},
        url="",
        refs={"refs/heads/wf/one": "", "refs/heads/none": ""},
    )
    seen = preconditions.observe(draft)
    assert seen["files"]["build.sh"] == hashlib.sha256(b"echo hi\n").hexdigest()
    assert seen["files"]["new"] == "absent"
    assert seen["head"] == seen["refs"]["refs/heads/wf/one"] == git(worktree, "rev-parse", "HEAD")
    assert seen["refs"]["refs/heads/none"] == "absent"
    assert seen["url"] == "https://example.org/x.git"
    assert seen["worktree"] == {"dev": worktree.stat().st_dev, "ino": worktree.stat().st_ino}
    assert preconditions.difference(seen, preconditions.observe(replace(draft, pre=seen))) == []


def test_every_change_is_named(worktree: Path) -> None:
    draft = action(worktree, files={"build.sh": "", "new": ""}, head="", url="", worktree={})
    before = preconditions.observe(draft)
    (worktree / "build.sh").write_text("echo evil\n")
    (worktree / "new").write_text("")
    git(worktree, "commit", "-qam", "two")
    git(worktree, "remote", "set-url", "origin", "https://evil.example/x.git")
    found = preconditions.difference(before, preconditions.observe(replace(draft, pre=before)))
    assert len(found) == 4
    assert "build.sh has other content than what was approved" in found
    assert "new did not exist and now does" in found
    assert any("the session's commit was" in text for text in found)
    assert any(
        "the remote's address was https://example.org/x.git and is now https://evil.example/x.git" in text
        for text in found
    )
    (worktree / "build.sh").unlink()
    assert "build.sh is gone" in preconditions.difference(before, preconditions.observe(replace(draft, pre=before)))


def test_links_to_other_content_and_odd_files_are_differences(worktree: Path) -> None:
    draft = action(worktree, files={"build.sh": ""})
    before = preconditions.observe(draft)
    (worktree / "build.sh").unlink()
    (worktree / "build.sh").symlink_to("/etc/passwd")
    assert preconditions.difference(before, preconditions.observe(draft))
    (worktree / "build.sh").unlink()
    os.mkfifo(worktree / "build.sh")
    assert preconditions.observe(draft)["files"]["build.sh"] == "not a regular file"


def test_head_is_read_where_the_sandboxed_agent_moves_it(worktree: Path) -> None:
    own = preconditions.git_dir(str(worktree))
    private = worktree.parent / "private"
    private.mkdir()
    (private / "HEAD").write_text("1" * 40 + "\n")
    assert preconditions.head(str(worktree), [[str(private), own, "rw"]]) == "1" * 40
    assert preconditions.head(str(worktree), []) == git(worktree, "rev-parse", "HEAD")


def test_packed_refs_and_bare_repositories(worktree: Path) -> None:
    commit = git(worktree, "rev-parse", "HEAD")
    git(worktree, "pack-refs", "--all")
    common = preconditions.common_dir(str(worktree))
    assert common == str(worktree.parent / "repo" / ".git")
    assert preconditions.ref(common, "refs/heads/main") == commit
    assert preconditions.ref(common, "refs/heads/../../config") == "absent"
    git(worktree.parent, "clone", "-q", "--bare", str(worktree.parent / "repo"), "bare")
    assert preconditions.common_dir(str(worktree.parent / "bare")) == str(worktree.parent / "bare")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ('[remote "origin"]\n\turl = a\n\turl = b\n', "b"),
        ('[remote "other"]\n url = x\n[remote "origin"] url = y\n[core]\n url = z\n', "y"),
        ('[remote "origin"]\n url = "quoted url"\n', "quoted url"),
        ("[core]\n", "absent"),
    ],
)
def test_the_url_of_a_remote(tmp_path: Path, text: str, url: str) -> None:
    (tmp_path / "config").write_text(text)
    assert preconditions.remote_url(str(tmp_path), "origin") == url

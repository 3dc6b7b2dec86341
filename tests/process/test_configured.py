"""What git reads of a repository's configuration, asked once for each text: nothing that it says is missed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.workspace.git import run as workspace_git
from harness.workspace.git.run import Git
from harness.workspace.tree.worktrees import identity
from tests.fleetlib import git, make_repository

SMUDGE = "filter.odd.smudge"


def named(repo: Path) -> list[str]:
    return [name for name, _ in Git.of(repo / ".git").extra]


def in_the_file(repo: Path) -> None:
    git(repo, "config", SMUDGE, "cat")


def in_an_included_file(repo: Path) -> None:
    git(repo, "config", "-f", "more", SMUDGE, "cat")


def in_the_worktrees_own(repo: Path) -> None:
    git(repo, "config", "--worktree", SMUDGE, "cat")


@pytest.mark.parametrize(
    ("before", "say"),
    [
        ((), in_the_file),
        (("include.path", "../more"), in_an_included_file),
        (("includeIf.gitdir:/**.path", "../more"), in_an_included_file),
        (("extensions.worktreeConfig", "true"), in_the_worktrees_own),
    ],
)
def test_a_driver_is_known_from_the_next_call_on(
    before: tuple[str, ...], say: Callable[[Path], None], tmp_path: Path
) -> None:
    repo = make_repository(tmp_path / "repo")
    if before:
        git(repo, "config", *before)
    assert named(repo) == []
    say(repo)
    assert named(repo) == [SMUDGE]


def test_a_text_that_was_read_is_not_asked_about_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = make_repository(tmp_path / "repo")
    in_the_file(repo)
    assert named(repo) == [SMUDGE]
    monkeypatch.setattr(workspace_git, "execute", lambda *_: pytest.fail("git was asked"))
    assert named(repo) == [SMUDGE]


def test_the_newest_of_several_names_and_addresses_counts(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo")
    for key, value in (("user.name", "A\nB"), ("user.email", "new@here.invalid")):
        git(repo, "config", "--add", key, value)
    assert identity(workspace_git.open_repository(repo)) == ("A\nB", "new@here.invalid")

"""What a check reads is taken away, left out or stubbed: said as facts, of that check alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checks.protected_files import Rules
from harness.workspace.protected import index_flags, inputs_since_start
from harness.workspace.tree import worktrees
from tests.fleetlib import git, make_repository

FILES = {"src/a.py": "# TODO\n", "src/b.py": "x = 1\n", "docs/c.md": "c\n", "tests/test_a.py": "\n", "notes.txt": "n\n"}
Change = Callable[[Path], object]


def told(tmp_path: Path, check: str, change: Change) -> list[str]:
    repo = make_repository(tmp_path / "repo", FILES)
    tree = worktrees.create(repo, tmp_path / "worktrees/s1", "watchfloor/s1", tmp_path / "s1/git/private")
    change(tree.root)
    return [one.told for one in inputs_since_start.facts(tree, [check], Rules((check,)))]


def write(path: str, text: str = "") -> Change:
    return lambda root: (root / path).write_text(text)


def move(path: str, to: str) -> Change:
    return lambda root: (root / path).rename(root / to)


SAID: dict[str, tuple[str, Change, str]] = {
    "a folder is moved": ("! grep -rn TODO src", move("src", "lib"), "src: a check reads it, and none of its 2 files"),
    "a file is moved out of it": ("! grep -rn TODO src/", move("src/a.py", "a.py"), "src: a check reads it, and 1"),
    "a file is gone": ("grep -q n notes.txt || true", lambda root: (root / "notes.txt").unlink(), "notes.txt: a check"),
    "behind a change of folder": (
        "! grep -n TODO src/a.py",
        move("src/a.py", "src/z.py"),
        "src/a.py: a check reads it",
    ),
    "a file of a tree that is read whole": (
        "ruff check .",
        move("src/a.py", "src/a.txt"),
        ".: a check reads the whole",
    ),
    "it is ignored": ("ruff check .", write(".gitignore", "src/\n"), ".gitignore: 2 files of the start ignored"),
    "it is ignored by a folder's own rules": (
        "rg TODO",
        write("src/.gitignore", "a.py\n"),
        "src/.gitignore: 1 file of",
    ),
    "it is stubbed": ("python3 -m mypy src", write("src/a.pyi"), "src/a.pyi: is new, and a check reads it in place of"),
}


@pytest.mark.parametrize("way", SAID)
def test_what_a_check_does_not_find_any_more_is_said(way: str, tmp_path: Path) -> None:
    check, change, expected = SAID[way]
    found = told(tmp_path, check, change)
    assert len(found) == 1, found
    assert found[0].startswith(expected), found


@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("! grep -rn TODO src", write("src/a.py", "done\n")),
        ("! grep -rn TODO src", move("docs", "pages")),
        ("ruff check .", write("src/new.py", "\n")),
        ("python3 -m unittest", move("src", "lib")),
        ("mypy src", write("src/new.pyi")),
    ],
)
def test_work_that_takes_nothing_away_from_a_check_is_no_fact(check: str, change: Change, tmp_path: Path) -> None:
    assert told(tmp_path, check, change) == []


def test_what_is_put_back_is_no_fact(tmp_path: Path) -> None:
    assert told(tmp_path, "grep -q . tests/test_a.py", lambda root: (root / "tests/test_a.py").unlink()) == []


def test_a_repository_with_a_commit_of_the_move_says_the_same(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo", FILES)
    tree = worktrees.create(repo, tmp_path / "worktrees/s1", "watchfloor/s1", tmp_path / "s1/git/private")
    (tree.root / "src").rename(tree.root / "lib")
    assert git(repo, "log", "--oneline").count("\n") == 1
    checks = ["! grep -rn TODO src", "true"]
    assert [one.path for one in inputs_since_start.facts(tree, checks, Rules(tuple(checks)))] == ["src"]


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_git_looks_again_at_what_was_hidden_from_it_before_a_check(flag: str, version: str, tmp_path: Path) -> None:
    """As the agent's git sees it, in the session's own git folder."""
    repo = make_repository(tmp_path / "repo", FILES)
    tree = worktrees.create(repo, tmp_path / "worktrees/s1", "watchfloor/s1", tmp_path / "s1/git/private")

    def inside(*args: str) -> str:
        found = {"GIT_DIR": str(tree.admin), "GIT_WORK_TREE": str(tree.root)}
        index = {"GIT_INDEX_FILE": str(tree.private / "index")}
        made = subprocess.run(
            ["git", *args], env=os.environ | found | index, capture_output=True, text=True, check=True
        )
        return made.stdout

    inside("update-index", "--index-version", version)
    assert not index_flags.reset(tree, tmp_path / "aside"), "nothing is hidden"
    inside("update-index", flag, "src/a.py", "src/b.py")
    (tree.root / "src/a.py").write_text("hidden\n")
    assert inside("diff", "--name-only") == ""
    assert index_flags.reset(tree, tmp_path / "aside")
    assert inside("diff", "--name-only") == "src/a.py\n"
    assert not index_flags.reset(tree, tmp_path / "aside")


def test_an_index_that_is_none_is_left_to_git(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo", FILES)
    tree = worktrees.create(repo, tmp_path / "worktrees/s1", "watchfloor/s1", tmp_path / "s1/git/private")
    for content in (b"", b"DIRC", b"DIRC\0\0\0\2\0\0\xff\xff", b"x" * 100):
        (tree.private / "index").write_bytes(content)
        assert not index_flags.reset(tree, tmp_path / "aside")
        assert (tree.private / "index").read_bytes() == content
    (tree.private / "index").unlink()
    (tree.private / "index").symlink_to("/etc/hostname")
    assert not index_flags.reset(tree, tmp_path / "aside")

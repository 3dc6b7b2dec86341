"""Protected files on real worktrees: every difference is seen, put back, and can be brought again."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checks.protected_files import Rules
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected import restore
from harness.workspace.tree import worktrees
from tests.fleetlib import git, make_repository

TEST = "def test_a():\n    assert 1 + 1 == 2\n"
FILES = {
    "app.py": "x = 1\n",
    "tests/test_a.py": TEST,
    "tests/deep/test_b.py": TEST,
    "tests/run.sh": "#!/bin/sh\nexit 1\n",
    "pyproject.toml": '[project]\nname = "a"\n[tool.pytest.ini_options]\naddopts = "-q"\n',
    ".gitattributes": "*.txt text eol=crlf\n",
    "tests/data.txt": "one\ntwo\n",
}
Change = Callable[[Path], object]


@pytest.fixture
def tree(tmp_path: Path) -> Worktree:
    repo = make_repository(tmp_path / "repo", FILES)
    (repo / "tests/run.sh").chmod(0o755)
    (repo / "tests/link").symlink_to("test_a.py")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "more")
    state = tmp_path / "state"
    return worktrees.create(
        repo, state / "worktrees" / "s1", "watchfloor/s1", state / "sessions" / "s1" / "git" / "private"
    )


def image(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and link below the folder, with its kind and whether it can be executed."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(root.rglob("*")):
        if ".git" in path.parts or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink():
            found[str(path.relative_to(root))] = (0, os.fsencode(os.readlink(path)))
        elif not path.is_file():
            found[str(path.relative_to(root))] = (3, b"")
        else:
            found[str(path.relative_to(root))] = (1 + bool(path.stat().st_mode & stat.S_IXUSR), path.read_bytes())
    return found


def _swap(root: Path) -> None:
    (root / "tests").rename(root / "mine")
    (root / "tests").symlink_to("mine")
    (root / "mine/test_a.py").write_text("")


def _folder(root: Path) -> None:
    (root / "tests/test_a.py").unlink()
    (root / "tests/test_a.py").mkdir()
    (root / "tests/test_a.py/inside").write_text("kept")


def _same_size_and_time(root: Path) -> None:
    path = root / "tests/test_a.py"
    info = path.stat()
    path.write_text(TEST.replace("== 2", "!= 3"))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def _ignored(root: Path) -> None:
    (root / ".gitignore").write_text("conftest.py\n")
    (root / "conftest.py").write_text("collect_ignore_glob = ['*']\n")


def _link_in_place(root: Path, path: str, target: str) -> None:
    (root / path).unlink()
    (root / path).symlink_to(target)


def _pipe(root: Path) -> None:
    (root / "tests/run.sh").unlink()
    os.mkfifo(root / "tests/run.sh")


def _package(root: Path) -> None:
    (root / "pytest").mkdir()
    (root / "pytest/__init__.py").write_text("")


def _cache(root: Path) -> None:
    (root / "tests/__pycache__").mkdir()
    (root / "tests/__pycache__/test_a.cpython-311.pyc").write_bytes(b"")


ALL = ["tests/data.txt", "tests/deep/test_b.py", "tests/link", "tests/run.sh", "tests/test_a.py"]
CHANGES: dict[str, tuple[Change, list[str]]] = {
    "edited": (lambda r: (r / "tests/test_a.py").write_text("def test_a(): pass\n"), ["tests/test_a.py"]),
    "emptied": (lambda r: (r / "tests/deep/test_b.py").write_bytes(b""), ["tests/deep/test_b.py"]),
    "same size and time": (_same_size_and_time, ["tests/test_a.py"]),
    "deleted": (lambda r: (r / "tests/test_a.py").unlink(), ["tests/test_a.py"]),
    "renamed": (lambda r: (r / "tests/test_a.py").rename(r / "tests/a.py"), ["tests/test_a.py"]),
    "folder gone": (lambda r: shutil.rmtree(r / "tests"), ALL),
    "folder swapped for a link": (_swap, ALL),
    "file swapped for a folder": (_folder, ["tests/test_a.py"]),
    "file swapped for a link": (lambda r: _link_in_place(r, "tests/run.sh", "/bin/true"), ["tests/run.sh"]),
    "file swapped for a pipe": (_pipe, ["tests/run.sh"]),
    "link retargeted": (lambda r: _link_in_place(r, "tests/link", "run.sh"), ["tests/link"]),
    "not executable": (lambda r: (r / "tests/run.sh").chmod(0o644), ["tests/run.sh"]),
    "shadowed by configuration": (lambda r: (r / "pytest.ini").write_text("[pytest]\n"), ["pytest.ini"]),
    "shadowed and ignored": (_ignored, ["conftest.py"]),
    "shadowed by a folder": (_package, ["pytest"]),
    "shadowed by a link": (lambda r: (r / "conftest.py").symlink_to("app.py"), ["conftest.py"]),
    "options of the tests": (
        lambda r: (r / "pyproject.toml").write_text(FILES["pyproject.toml"].replace("-q", "-q --ignore=tests")),
        ["pyproject.toml"],
    ),
    "configuration that cannot be read": (lambda r: (r / "pyproject.toml").write_text("[["), ["pyproject.toml"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen_put_back_and_can_be_brought_again(name: str, tree: Worktree, tmp_path: Path) -> None:
    change, paths = CHANGES[name]
    before = image(tree.root)
    change(tree.root)
    theirs = image(tree.root)
    found = restore.examine(tree, Rules(), {})
    assert [one.path for one in found.differences] == paths

    aside = tmp_path / "aside"
    done = restore.put_back(tree, found.differences, aside)
    assert (done.done, done.refused) == (len(paths), [])
    now = image(tree.root)
    assert {path: now.get(path) for path in before} == before
    assert restore.examine(tree, Rules(), {}).differences == ()

    again = restore.bring_again(tree, found.differences, aside)
    assert again.refused == []
    if name != "folder swapped for a link":  # the link stays aside, its files were its own
        assert {path: image(tree.root).get(path) for path in theirs} == theirs
    accepted = {one.path: one.sha for one in found.differences}
    if name != "folder swapped for a link":
        assert restore.examine(tree, Rules(), accepted).differences == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda r: (r / "app.py").write_text("x = 2\n"),
        lambda r: (r / "tests/test_new.py").write_text(TEST),
        lambda r: (r / "pyproject.toml").write_text(
            FILES["pyproject.toml"].replace('name = "a"', 'name = "a"\nversion = "2"')
        ),
        lambda r: os.utime(r / "tests/test_a.py"),
        lambda r: (r / "tests/data.txt").write_bytes((r / "tests/data.txt").read_bytes()),
        lambda r: (
            (r / "tests/__pycache__").mkdir(),
            (r / "tests/__pycache__/test_a.cpython-311.pyc").write_bytes(b""),
        ),
    ],
    ids=["work", "a new test", "another version", "touched", "written again", "a cache"],
)
def test_work_and_new_tests_are_no_difference(change: Change, tree: Worktree) -> None:
    change(tree.root)
    assert restore.examine(tree, Rules(), {}).differences == ()


def test_what_was_not_written_to_is_compared_without_a_git(
    tree: Worktree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = Rules(("python -m pytest",))
    # a file written in the same tick as the index would have to be read by git
    os.utime(tree.admin / "index")
    assert restore.examine(tree, rules, {}).differences == ()
    noted = tmp_path / "noted"
    door = tmp_path / "bin/git"
    door.parent.mkdir()
    door.write_text(f'#!/bin/sh\necho "$1" >> {noted}\nexec {shutil.which("git")} "$@"\n')
    door.chmod(0o755)
    monkeypatch.setenv("PATH", f"{door.parent}:{os.environ['PATH']}")
    (tree.root / "app.py").write_text("x = 2\n")
    assert restore.examine(tree, rules, {}).differences == ()
    assert not noted.exists(), noted.read_text()
    (tree.root / "tests/test_a.py").unlink()
    (tree.root / "tests/run.sh").write_text("exit 0\n")
    seen = restore.examine(tree, rules, {}).differences
    assert [(one.path, one.how) for one in seen] == [("tests/run.sh", "changed"), ("tests/test_a.py", "deleted")]
    assert noted.exists()


def test_lines_end_as_the_repository_says(tree: Worktree, tmp_path: Path) -> None:
    path = tree.root / "tests/data.txt"
    before = path.read_bytes()
    assert before == b"one\r\ntwo\r\n"
    path.write_bytes(b"other\n")
    restore.put_back(tree, restore.examine(tree, Rules(), {}).differences, tmp_path / "aside")
    assert path.read_bytes() == before


def test_another_change_than_the_allowed_one_is_a_difference_again(tree: Worktree) -> None:
    path = tree.root / "tests/test_a.py"
    path.write_text("def test_a(): pass\n")
    accepted = {one.path: one.sha for one in restore.examine(tree, Rules(), {}).differences}
    assert restore.examine(tree, Rules(), accepted).differences == ()
    path.write_text("")
    assert [one.path for one in restore.examine(tree, Rules(), accepted).differences] == ["tests/test_a.py"]
    path.write_text(TEST)  # as it was at first is always right
    assert restore.examine(tree, Rules(), accepted).differences == ()


def test_what_was_written_and_put_back_in_time_was_still_touched(tree: Worktree) -> None:
    path = tree.root / "tests/test_a.py"
    since = path.stat().st_ctime_ns + 1
    assert restore.examine(tree, Rules(), {}, since).touched == ()
    info = path.stat()
    path.write_text("")
    path.write_text(TEST)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    found = restore.examine(tree, Rules(), {}, since)
    assert found.differences == ()
    assert found.touched == ("tests/test_a.py",)


def test_byte_code_beside_a_source_goes_wherever_it_lies(tree: Worktree, tmp_path: Path) -> None:
    _cache(tree.root)
    for name in ("__pycache__", "src/deep/__pycache__", "node_modules/a/__pycache__", ".venv/lib/__pycache__"):
        (tree.root / name).mkdir(parents=True)
    assert restore.caches(tree) == ("__pycache__", "src/deep/__pycache__", "tests/__pycache__")
    restore.clear(tree, restore.caches(tree), tmp_path / "aside")
    assert not (tree.root / "tests/__pycache__").exists()
    assert (tree.root / "node_modules/a/__pycache__").exists()
    assert restore.caches(tree) == ()

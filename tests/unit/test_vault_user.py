"""The vault of a user without rights, to whom an agent's closed folders and files are really closed."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.vault.scan import Root
from harness.vault.vault import Vault

EXACT = frozenset({b"w"})
NOBODY = 65534


def as_user(base: Path, act: Callable[[], None]) -> None:
    """Do it in a child without any right over files; what it raises fails the test."""
    if os.geteuid() == 0:
        for folder in (base, *base.iterdir()):
            os.chown(folder, NOBODY, NOBODY)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(base)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            act()
        except BaseException:
            os.write(write, traceback.format_exc().encode()[-4000:])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        said = file.read()
    os.waitpid(pid, 0)
    assert said == ""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "vault").mkdir(mode=0o700)
    return tmp_path


def fill(work: Path) -> None:
    (work / "a" / "b" / "c").mkdir(parents=True)
    for name in ("top", "a/one", "a/b/two", "a/b/c/three"):
        (work / name).write_text(name)
    (work / "a" / "b" / "link").symlink_to("two")


CLOSED: dict[str, list[str]] = {
    "the top": ["."],
    "one folder": ["a"],
    "folders within each other": ["a/b/c", "a/b", "a"],
    "a file in a closed folder": ["a/b/two", "a/b"],
    "everything": ["a/b/c/three", "a/b/two", "a/one", "top", "a/b/c", "a/b", "a", "."],
}


@pytest.mark.parametrize("mode", [0o000, 0o200, 0o400, 0o100])
@pytest.mark.parametrize("closed", CLOSED.values(), ids=CLOSED.keys())
def test_what_is_closed_is_kept_and_comes_back(base: Path, closed: list[str], mode: int) -> None:
    def act() -> None:
        work = Path("work")
        fill(work)
        vault = Vault(Path("vault"))
        roots = (Root(b"w", "work"),)
        opened = vault.take(roots, "open")
        for name in closed:
            (work / name).chmod(mode)
        shut = vault.take(roots, "shut")
        assert shut.left_out == 0
        assert [c.how for c in vault.since(opened.id)] == ["mode"] * len(closed), (
            "nothing is taken for gone because it is closed"
        )
        assert vault.take(roots, "full", full=True).id == shut.id
        assert vault.bring_back(roots, opened.id, "undo", EXACT)[1].refused == []
        assert (work / "a" / "b" / "c" / "three").read_text() == "a/b/c/three"
        for name in closed[::-1]:
            assert (work / name).stat().st_mode & 0o700
        for name in ("top", "a/one", "a/b/two", "a/b/c/three"):
            (work / name).unlink()
        assert vault.bring_back(roots, shut.id, "undo", EXACT)[1].refused == []
        for name in closed[::-1]:
            assert (work / name).stat().st_mode & 0o777 == mode
            (work / name).chmod(0o700)
        for name in ("top", "a/one", "a/b/two", "a/b/c/three"):
            assert (work / name).read_text() == name
        assert os.readlink(work / "a" / "b" / "link") == "two"

    as_user(base, act)

"""What lies at a name that is to be deleted: the same text exactly while the same would go."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.executor import deleted


def _nothing(_: Path) -> None:
    return None


def _read(root: Path) -> None:
    (root / "way/folder/file").read_text()


def _other_content(root: Path) -> None:
    (root / "way/folder/file").write_text("longer than before")


def _another_folder(root: Path) -> None:
    (root / "way/folder").rename(root / "kept")
    (root / "way/folder").mkdir()
    (root / "way/folder/file").write_text("x")


def _a_link(root: Path) -> None:
    (root / "way/folder").rename(root / "kept")
    (root / "way/folder").symlink_to(root / "kept")


def _a_link_on_the_way(root: Path) -> None:
    (root / "way").rename(root / "kept")
    (root / "way").symlink_to(root / "kept")


def _more(root: Path) -> None:
    (root / "way/folder/deep").mkdir()


def _less(root: Path) -> None:
    (root / "way/folder/file").unlink()


def _gone(root: Path) -> None:
    (root / "way").rename(root / "kept")


@pytest.mark.parametrize("change", [_nothing, _read, _other_content])
def test_the_same_is_the_same(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = _made(tmp_path)
    before = deleted.state(path)
    change(tmp_path)
    assert deleted.state(path) == before


@pytest.mark.parametrize("change", [_another_folder, _a_link, _a_link_on_the_way, _more, _less, _gone])
def test_anything_else_is_not(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = _made(tmp_path)
    before = deleted.state(path)
    change(tmp_path)
    assert deleted.state(path) != before


def test_a_file_that_is_named_itself_is_known_by_what_it_holds(tmp_path: Path) -> None:
    path = f"{_made(tmp_path)}/file"
    before = deleted.state(path)
    _other_content(tmp_path)
    assert deleted.state(path) != before


def test_names_of_any_bytes_can_be_looked_at(tmp_path: Path) -> None:
    path = os.fsencode(_made(tmp_path)) + b"/\xff"
    os.mkdir(path)
    assert deleted.state(os.fsdecode(path)) != "nothing"
    assert deleted.state("a\0b") == "nothing"


def _made(root: Path) -> str:
    (root / "way/folder").mkdir(parents=True)
    (root / "way/folder/file").write_text("x")
    return str(root / "way/folder")

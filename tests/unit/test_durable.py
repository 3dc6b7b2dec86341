"""A file that is replaced in one step: whole or as it was, and nothing left beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.linux import durable


class Broken(Exception):
    pass


def _half(target: Path, beside: Path) -> None:
    with durable.swapping(target, beside) as fd:
        durable.write_all(fd, b"half")
        raise Broken


def test_a_file_that_was_not_written_to_its_end_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "kept"
    target.write_bytes(b"as it was")
    with pytest.raises(Broken):
        _half(target, tmp_path / "made")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("kept", b"as it was")]


@pytest.mark.parametrize("sync", [True, False])
def test_what_an_earlier_try_left_is_neither_followed_nor_kept(tmp_path: Path, sync: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"somebody's")
    target = tmp_path / "target"
    (tmp_path / "made").symlink_to(elsewhere)
    with durable.swapping(target, tmp_path / "made", sync=sync) as fd:
        durable.write_all(fd, b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "elsewhere": b"somebody's",
        "target": b"new",
    }
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_file_is_written_whole_under_its_name_alone(tmp_path: Path) -> None:
    for write in (durable.write_file, durable.replace_file, durable.swap_file):
        write(tmp_path / "target", b"one")
        write(tmp_path / "target", b"the other")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"target": b"the other"}

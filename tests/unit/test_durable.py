"""A file that is replaced in one step is the old one or the new one, whole, and lies only where it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.linux import durable


@pytest.mark.parametrize("put", [durable.swap_file, durable.write_file, durable.replace_file])
def test_a_file_is_replaced_whole_and_is_its_owner_s_alone(put: object, tmp_path: Path) -> None:
    assert callable(put)
    target = tmp_path / "kept.json"
    target.write_bytes(b"before, and longer than what comes")
    target.chmod(0o644)
    put(target, b"after")
    assert target.read_bytes() == b"after"
    assert target.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [target]


def test_no_link_that_lies_in_the_way_is_written_through(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    (tmp_path / "kept.json.new").symlink_to(other)
    with pytest.raises(OSError, match=r"\S"):
        durable.swap_file(tmp_path / "kept.json", b"ours")
    assert other.read_bytes() == b"theirs"
    assert not (tmp_path / "kept.json").exists()

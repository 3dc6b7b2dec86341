"""How far a session's files grew: real files, hostile ones too, and no walk as long as the file system's count is
enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.sandbox import disk_usage
from harness.sandbox.disk_usage import Count, Known, Meter
from harness.sandbox.limits import MIB, Limits, Over
from tests.process.keeperlib import wait_until

LIMITS = Limits(disk=4 * MIB, disk_files=100, disk_free=None)


def counted(*roots: Path) -> Count:
    steps = disk_usage.walk([str(root) for root in roots])
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Count = done.value
            return found


def meter(
    root: Path, known: Known | None = None, limits: Limits = LIMITS, deleted: Callable[[int], int] = lambda _device: 0
) -> Meter:
    return Meter([str(root)], limits, known, deleted)


def judge(one: Meter) -> Over | None:
    """One look, and its walk to the end when it asks for one."""
    one.look()
    while one.walking:
        if (over := one.steps(0.01)) is not None:
            return over
    return None


def known(root: Path) -> Known:
    first = meter(root)
    assert judge(first) is None
    assert first.known is not None
    return first.known


def long_ago(known: Known) -> Known:
    """The same, of a walk so old that the next look walks whatever others delete on this file system meanwhile."""
    return replace(known, walked=0)


def fill(path: Path, size: int) -> None:
    path.write_bytes(b"x" * size)


def test_everything_below_is_counted_once(tmp_path: Path) -> None:
    fill(tmp_path / "a", MIB)
    os.link(tmp_path / "a", tmp_path / "again")
    (tmp_path / "below").mkdir()
    fill(tmp_path / "below" / "b", MIB)
    found = counted(tmp_path)
    assert (found.files, found.whole) == (4, True)
    assert 2 * MIB <= found.bytes < 2 * MIB + 64 * 1024
    assert disk_usage.outermost([str(tmp_path / "below"), str(tmp_path), f"{tmp_path}-2", str(tmp_path)]) == [
        str(tmp_path),
        f"{tmp_path}-2",
    ]


def test_links_pipes_and_holes_lead_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    fill(tmp_path / "outside", 8 * MIB)
    (root / "loop").symlink_to(root)
    (root / "out").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    with open(root / "hole", "wb") as file:
        file.truncate(1 << 40)
    found = counted(root)
    assert (found.files, found.whole) == (4, True)
    assert found.bytes < MIB
    (tmp_path / "link").symlink_to(root)
    assert counted(tmp_path / "link") == Count(0, 0, False)
    assert counted(tmp_path / "nowhere") == Count(0, 0, True)


def test_folders_too_deep_make_it_less_than_whole(tmp_path: Path) -> None:
    start = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    here = start
    for _ in range(disk_usage.DEPTH + 5):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    found = counted(tmp_path)
    assert not found.whole
    assert found.files == disk_usage.DEPTH


def test_growth_beyond_the_first_state_is_what_counts(tmp_path: Path) -> None:
    fill(tmp_path / "checkout", 8 * MIB)
    first = known(tmp_path)
    assert judge(meter(tmp_path, first)) is None
    fill(tmp_path / "made", 5 * MIB)
    os.sync()
    over = judge(meter(tmp_path, long_ago(first)))
    assert over is not None
    assert over.limit == "disk"
    assert 5 * MIB <= over.used < 6 * MIB


def test_the_number_of_files_counts_too(tmp_path: Path) -> None:
    first = known(tmp_path)
    for number in range(150):
        (tmp_path / str(number)).touch()
    over = judge(meter(tmp_path, long_ago(first)))
    assert over is not None
    assert (over.limit, over.used) == ("disk_files", 150)


def test_what_is_deleted_and_still_open_counts(tmp_path: Path) -> None:
    first = known(tmp_path)
    with open(tmp_path / "gone", "wb", buffering=0) as file:
        file.write(b"x" * 6 * MIB)
        os.sync()
        (tmp_path / "gone").unlink()
        over = judge(meter(tmp_path, long_ago(first), deleted=lambda _device: 6 * MIB))
    assert over is not None
    assert over.limit == "disk"


def test_a_session_over_its_limit_may_go_on_but_not_grow(tmp_path: Path) -> None:
    first = known(tmp_path)
    fill(tmp_path / "made", 6 * MIB)
    os.sync()
    before = meter(tmp_path, long_ago(first))
    assert judge(before) is not None
    call = meter(tmp_path, before.known)
    assert judge(call) is None, "it begins over its limit"
    fill(tmp_path / "more", 4 * MIB)
    os.sync()
    wait_until("the growth is seen", lambda: judge(call))
    (tmp_path / "more").unlink()
    (tmp_path / "made").unlink()
    fill(tmp_path / "less", 5 * MIB)
    assert judge(meter(tmp_path, before.known)) is None


def test_no_walk_while_the_file_system_did_not_grow_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = known(tmp_path)
    quiet = Limits(disk=1 << 50, disk_files=1 << 40, disk_free=None)

    def refuse(_roots: list[str]) -> None:
        raise AssertionError("it walked")

    monkeypatch.setattr(disk_usage, "walk", refuse)
    meter(tmp_path, first, quiet).look()
    with pytest.raises(AssertionError, match="it walked"):
        meter(tmp_path, None, quiet).look()


def test_growth_of_the_file_system_is_looked_into_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = known(tmp_path)
    there = disk_usage.volume(str(tmp_path))
    monkeypatch.setattr(
        disk_usage, "volume", lambda _path: replace(there, used=first.used + 5 * MIB, files=first.used_files)
    )
    fill(tmp_path / "made", 5 * MIB)
    over = judge(meter(tmp_path, first))
    assert over is not None
    assert over.limit == "disk"
    monkeypatch.setattr(
        disk_usage, "volume", lambda _path: replace(there, used=first.used, files=first.used_files + 150)
    )
    (tmp_path / "made").unlink()
    for number in range(150):
        (tmp_path / str(number)).touch()
    over = judge(meter(tmp_path, first))
    assert over is not None
    assert over.limit == "disk_files"


def test_what_others_delete_does_not_hide_growth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = disk_usage.volume(str(tmp_path))
    monkeypatch.setattr(disk_usage, "volume", lambda _path: before)
    first = known(tmp_path)
    fill(tmp_path / "made", 6 * MIB)
    assert judge(meter(tmp_path, first)) is None, "nobody walks so soon"
    over = judge(meter(tmp_path, long_ago(first)))
    assert over is not None
    assert over.limit == "disk"

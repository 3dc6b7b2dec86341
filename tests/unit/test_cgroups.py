"""cgroup v2: finding what was delegated, from the kernel's own texts and in folders that look like its hierarchy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.sandbox import cgroups
from harness.sandbox.cgroups import NotDelegated
from harness.sandbox.limits import GIB, Limits

V2 = (
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2"
    " rw,nsdelegate,memory_recursiveprot\n"
)
V1 = "30 29 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
USER = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope\n"


def group(path: Path, controllers: str = "cpu memory pids", handed: str = "", procs: str = "") -> Path:
    """A folder with the files of a group."""
    path.mkdir(parents=True)
    for name, text in (
        ("cgroup.controllers", controllers),
        ("cgroup.subtree_control", handed),
        ("cgroup.procs", procs),
    ):
        (path / name).write_text(text)
    return path


def test_our_own_group_is_found() -> None:
    assert cgroups.locate(V2, USER) == Path(
        "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope"
    )
    both = V1 + V2.replace("/sys/fs/cgroup rw", "/sys/fs/cgroup/unified rw")
    assert cgroups.locate(both, "8:pids:/\n0::/a\n") == Path("/sys/fs/cgroup/unified/a")
    assert cgroups.locate(V2.replace(" / /sys", " /box /sys"), "0::/box/a\n") == Path("/sys/fs/cgroup/a")
    assert cgroups.mount_point(V2.replace("/sys/fs/cgroup rw", "/odd\\040place rw")) == ("/odd place", "/")


@pytest.mark.parametrize(
    ("mounts", "own"),
    [(V1, USER), (V2, "8:pids:/\n"), ("", USER), (V2.replace(" / /sys", " /box /sys"), "0::/boxer\n")],
)
def test_without_a_hierarchy_of_ours_it_says_so(mounts: str, own: str) -> None:
    with pytest.raises(NotDelegated):
        cgroups.locate(mounts, own)


def test_only_a_group_that_has_the_controllers_is_used(tmp_path: Path) -> None:
    good = group(tmp_path / "run.scope")
    assert cgroups.base_of(good, tmp_path) == good
    assert cgroups.base_of(group(good / cgroups.OWN), tmp_path) == good, "the leaf that we live in after the first call"
    with pytest.raises(NotDelegated, match="controllers pids are not delegated"):
        cgroups.base_of(group(tmp_path / "half.scope", "memory"), tmp_path)
    with pytest.raises(NotDelegated, match="root of the cgroup hierarchy"):
        cgroups.base_of(tmp_path, tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_group_of_somebody_else_is_not_ours(tmp_path: Path) -> None:
    closed = group(tmp_path / "their.scope")
    closed.chmod(0o555)
    with pytest.raises(NotDelegated, match="is not ours to write"):
        cgroups.base_of(closed, tmp_path)


def test_what_a_session_may_take_is_written_in_the_kernels_words() -> None:
    assert cgroups.session_settings(Limits(memory=GIB, processes=64, cpu_weight=20, cpu_percent=150)) == {
        "memory.max": str(GIB),
        "memory.swap.max": "0",
        "pids.max": "64",
        "cpu.weight": "20",
        "cpu.max": "150000 100000",
    }
    assert cgroups.session_settings(Limits(memory=None))["memory.max"] == "max"
    assert cgroups.session_settings(Limits())["cpu.max"] == "max 100000"


def test_events_are_counted() -> None:
    text = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 3\noom_group_kill 1\n"
    assert (
        cgroups.count(text, "oom_kill"),
        cgroups.count(text, "max"),
        cgroups.count(text, "oom"),
        cgroups.count(text, "none"),
    ) == (3, 12, 2, 0)


def test_names_of_a_call_cannot_leave_its_session(tmp_path: Path) -> None:
    made = cgroups.of_call(tmp_path, "../x", "c1.0/../..")
    assert made.path.parent.parent == tmp_path
    assert os.path.normpath(made.path) == str(made.path)


def test_a_call_says_by_its_events_what_it_died_of(tmp_path: Path) -> None:
    call = cgroups.of_call(tmp_path, "s1", "c1.0")
    call.path.mkdir(parents=True)
    assert not call.out_of_memory()
    (call.path / "memory.events").write_text("oom 1\noom_kill 1\n")
    (call.path / "pids.events").write_text("max 0\n")
    (call.path / "memory.peak").write_text("4096\n")
    assert (call.out_of_memory(), call.out_of_processes(), call.number("memory.peak"), call.number("none")) == (
        True,
        False,
        4096,
        0,
    )

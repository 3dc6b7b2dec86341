"""What the doctor says of limits: which means enforce them, and plainly when none does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.sandbox.enforcement import Hold, report
from harness.sandbox.limits import GIB, MIB, Limits
from harness.sandbox.rlimits import OOM_SCORE_ADJ

WHY = "this system has no cgroup v2 hierarchy"
LIMITS = Limits(memory=GIB, processes=64, shm=64 * MIB, tmp=64 * MIB)
ALL: dict[str, Any] = {
    "nice": 5,
    "nproc": 64,
    "data": GIB,
    "fsize": 4 * GIB,
    "oom": OOM_SCORE_ADJ,
    "pid_max": 364,
    "shmall": 64 * MIB // 4096,
    "tmp": 64 * MIB,
    "shm": 64 * MIB,
}


def held(
    what: str, limits: Limits = LIMITS, facts: dict[str, Any] = ALL, no_group: str = WHY, root: bool = False
) -> Hold:
    return next(hold for hold in report(limits, facts, no_group, root=root) if hold.what == what)


def test_with_every_means_everything_holds() -> None:
    for hold in report(LIMITS, ALL, WHY, root=False):
        assert hold.holds, hold
        assert "not limited" not in hold.how


def test_cgroups_are_named_where_they_are_and_why_not_where_they_are_not() -> None:
    assert "memory.max" in held("memory", no_group="").how
    assert "pids.max" in held("processes", no_group="").how
    assert WHY in held("memory").how
    assert held("memory", no_group="").hard
    assert not held("memory").hard


def test_root_is_not_bound_by_the_number_of_its_processes() -> None:
    assert "RLIMIT_NPROC" in held("processes").how
    assert "RLIMIT_NPROC" not in held("processes", root=True).how
    assert "kernel.pid_max" in held("processes", root=True).how
    bare = held("processes", facts={**ALL, "pid_max": 32768}, root=True)
    assert not bare.hard
    assert "the kernel refuses nothing" in bare.how


def test_what_is_not_limited_says_why() -> None:
    assert "not limited here" in held("memory", Limits(memory=None, process_memory=None)).how
    assert not held("disk", Limits(disk=None)).holds
    assert not held("files", Limits(disk_files=None)).holds
    assert not held("disk left", Limits(disk_free=None)).holds
    assert not held("one file", Limits(file=None)).holds
    assert not held("/tmp", facts={**ALL, "tmp": 12 * GIB}).holds
    assert not held("shared memory", facts={**ALL, "shmall": 1 << 52}).holds
    assert not held("shared memory", facts={}).holds
    assert not held("processor", Limits(cpu_percent=150)).holds
    assert held("processor", Limits(cpu_percent=150), no_group="").holds


def test_what_the_kernel_would_hold_with_other_means_names_them() -> None:
    def lacking(
        limits: Limits = LIMITS, facts: dict[str, Any] = ALL, no_group: str = WHY, root: bool = True
    ) -> set[str]:
        return {hold.what for hold in report(limits, facts, no_group, root=root) if hold.needs}

    bare = {**ALL, "pid_max": 32768}
    assert lacking(no_group="") == set(), "with cgroups all are held"
    assert lacking() == {"memory"}
    assert lacking(facts=bare) == {"memory", "processes"}
    assert lacking(replace(LIMITS, cpu_percent=50), bare) == {"memory", "processes", "processor"}
    assert lacking(replace(LIMITS, memory=None, process_memory=None, file=None)) == set(), "switched off is no lack"
    assert lacking(facts={**ALL, "tmp": GIB, "fsize": 0}) == {"memory", "/tmp", "one file"}

"""Which limits hold on this machine and by which means, from what a sandboxed call found about itself.

Pure. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from harness.sandbox.limits import Limits, size_text
from harness.sandbox.rlimits import OOM_SCORE_ADJ

_WATCHED = "watched ten times a second"
_GROUP = "cgroup v2 with a subtree of its own"
_FILES = "a file system in memory of that size"


@dataclass(frozen=True, slots=True)
class Hold:
    """One resource: its limit in words, what enforces it, and whether anything does.

    ``hard``: the kernel itself refuses more. ``needs``: what would have it do so; empty where it does, where the limit
    is switched off, and for what no kernel limits by session (growth of files).
    """

    what: str
    limit: str
    how: str
    holds: bool
    hard: bool
    needs: str = ""


def report(limits: Limits, facts: Mapping[str, int], no_group: str, *, root: bool) -> list[Hold]:
    """Every resource of a call.

    ``facts`` are those of `harness.sandbox.probe`; ``no_group`` says why there are no cgroups (empty: there are).
    """
    return [
        _memory(limits, facts, no_group),
        _processes(limits, facts, no_group, root=root),
        _processor(limits, facts, no_group),
        *_files(limits, facts),
    ]


def as_dicts(holds: list[Hold]) -> list[dict[str, object]]:
    return [asdict(hold) for hold in holds]


def _memory(limits: Limits, facts: Mapping[str, int], no_group: str) -> Hold:
    together = limits.together()
    each = limits.each()
    if together is None and each is None:
        return Hold(
            "memory",
            "none",
            "not limited here, because memory and process_memory are false in config.toml",
            holds=False,
            hard=False,
        )
    text = f"{size_text(together)} a call" if together is not None else f"{size_text(each or 0)} a process"
    if not no_group and together is not None:
        return Hold(
            "memory", text, "cgroup v2 (memory.max, no swap); the whole call ends at once", holds=True, hard=True
        )
    means = []
    if together is not None:
        means.append(f"all processes together, their page tables, files without a name, /tmp and /dev/shm {_WATCHED}")
    if each is not None and facts.get("data") == each:
        means.append(f"each process has at most {size_text(each)} of its own data (RLIMIT_DATA)")
    if facts.get("oom") == OOM_SCORE_ADJ:
        means.append("an out-of-memory kernel takes tools first (oom_score_adj)")
    how = "; ".join(means) + f"; no cgroups, because {no_group}"
    return Hold("memory", text, how, holds=bool(means), hard=False, needs=_GROUP)


def _processes(limits: Limits, facts: Mapping[str, int], no_group: str, *, root: bool) -> Hold:
    text = f"{limits.processes} processes and threads a call"
    if not no_group:
        return Hold("processes", text, "cgroup v2 (pids.max)", holds=True, hard=True)
    means = [_WATCHED]
    if not root and facts.get("nproc") == limits.processes:
        means.append("RLIMIT_NPROC within the sandbox's user namespace")
    if facts.get("pid_max", 1 << 30) <= limits.processes + 300:
        means.append(f"its process namespace has {facts['pid_max']} numbers (kernel.pid_max)")
    hard = len(means) > 1
    if not hard:
        means.append(
            "the kernel refuses nothing, because root is exempt from RLIMIT_NPROC and kernel.pid_max is not the"
            " namespace's own before Linux 6.14"
        )
    return Hold("processes", text, "; ".join(means), holds=True, hard=hard, needs="" if hard else _GROUP)


def _processor(limits: Limits, facts: Mapping[str, int], no_group: str) -> Hold:
    time = "the time limit of each call"
    nice = f"priority below everything else (nice {facts.get('nice', 0)})"
    if no_group:
        more = "" if limits.cpu_percent is None else "; cpu_percent needs cgroups"
        return Hold(
            "processor",
            "no fixed share",
            f"{time}; {nice}{more}",
            holds=limits.cpu_percent is None,
            hard=False,
            needs="" if limits.cpu_percent is None else _GROUP,
        )
    share = f"weight {limits.cpu_weight}" + (
        "" if limits.cpu_percent is None else f", {limits.cpu_percent} % of one core"
    )
    return Hold(
        "processor", share, f"cgroup v2 where the cpu controller is delegated; {time}; {nice}", holds=True, hard=True
    )


def _files(limits: Limits, facts: Mapping[str, int]) -> list[Hold]:
    found = []
    for what, place, size, seen in (
        ("/tmp", "tmp", limits.tmp, facts.get("tmp", 0)),
        ("/dev/shm", "shm", limits.shm, facts.get("shm", 0)),
    ):
        ok = 0 < seen <= size + 4096
        how = (
            "a file system in memory of this size, for each call"
            if ok
            else f"not limited here, because {place} came out with {size_text(seen)}"
        )
        found.append(Hold(what, size_text(size), how, holds=ok, hard=ok, needs="" if ok else _FILES))
    shared = facts.get("shmall", 1 << 60) * 4096
    ok = shared <= limits.shm
    why = (
        "kernel.shmall of its own namespace"
        if ok
        else "not limited here, because kernel.shmall of the namespace cannot be set"
    )
    needs = "" if ok else "a namespace whose kernel.shmall can be set"
    found.append(Hold("shared memory", size_text(limits.shm), why, holds=ok, hard=ok, needs=needs))
    for what, limit in (
        ("disk", size_text(limits.disk) if limits.disk else ""),
        ("files", f"{limits.disk_files:,}" if limits.disk_files else ""),
    ):
        how = (
            f"growth of worktree and git objects, {_WATCHED}"
            if limit
            else "not limited here, because it is false in config.toml"
        )
        found.append(Hold(what, limit or "none", how, holds=bool(limit), hard=False))
    keep = f"{size_text(limits.disk_free)} or 5 % stay free" if limits.disk_free else "none"
    how = (
        f"free space of the disk, {_WATCHED}"
        if limits.disk_free
        else "not limited here, because disk_free is false in config.toml"
    )
    found.append(Hold("disk left", keep, how, holds=bool(limits.disk_free), hard=False))
    ok = limits.file is not None and facts.get("fsize") == limits.file
    how = (
        "RLIMIT_FSIZE" if ok else "not limited here, because file is false in config.toml or the limit could not be set"
    )
    needs = "RLIMIT_FSIZE" if limits.file is not None and not ok else ""
    one = Hold("one file", size_text(limits.file) if limits.file else "none", how, holds=ok, hard=ok, needs=needs)
    return [*found, one]

"""What tests fork in place of a program is what the program would be, as far as anybody can see from outside."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from harness.linux.proc import identify
from tests.fleetlib import COMMAND, Fleet, fleet, play, wait_for

MODULES = (
    "harness.supervisor.guardian",
    "harness.supervisor.main",
    "harness.brain.brain_fork_server",
    "harness.keeper.fork_server",
)
STATUS = ("SigBlk", "SigIgn", "SigCgt", "Umask", "NoNewPrivs", "Seccomp")
OF_LIBC = 1 << 31 | 1 << 32
"""Signals 32 and 33, which the C library keeps for itself and has the programs that it spawns ignore."""


class Seen(NamedTuple):
    """A process from outside, without what differs between two of one kind."""

    words: list[str]
    environment: set[str]
    status: dict[str, str]
    limits: str
    folder: str
    leads_its_session: bool
    under: str
    first_descriptors: list[str]
    inherited: Counter[str]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def words(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def seen(f: Fleet, pid: int) -> Seen:
    process = Path(f"/proc/{pid}")
    lines = (line.split(":", 1) for line in (process / "status").read_text().splitlines())
    status = {name: value.strip() for name, value in lines if name in STATUS}
    status["SigIgn"] = f"{int(status['SigIgn'], 16) & ~OF_LIBC:x}"
    inherited = kept(f, pid)
    return Seen(
        [word for word in words(pid) if not word.isdigit()],
        {pair.partition("=")[0] for pair in (process / "environ").read_text().split("\0")} - {"PYTEST_CURRENT_TEST"},
        status,
        (process / "limits").read_text(),
        os.readlink(process / "cwd"),
        os.getsid(pid) == pid,
        next((module for module in MODULES if module in words(parent(pid))), ""),
        [inherited.pop(number) for number in range(3)],
        Counter(target.partition(":")[0] for target in inherited.values()),
    )


def kept(f: Fleet, pid: int) -> dict[int, str]:
    """What its descriptors lead to that a program started by it would have too; others come and go."""
    found: dict[int, str] = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            flags = Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text().split("flags:")[1].split()[0]
            if not int(flags, 8) & os.O_CLOEXEC:
                found[int(fd.name)] = os.readlink(fd).replace(str(f.root), "")
    return found


def all_of(f: Fleet) -> dict[str, Seen]:
    f.wait_state(f.launch(play("Done.")), "done")
    return {
        module: wait_for(f"{module} at rest", functools.partial(at_rest, f, first(f, module))) for module in MODULES
    }


def first(f: Fleet, module: str) -> int:
    """The one that was started; those that it forked are shown with its words."""
    alike = [one for pid, text in f.processes() if f" -m {module}" in text and (one := identify(pid))]
    return min(alike, key=lambda one: one.start).pid


def at_rest(f: Fleet, pid: int) -> Seen | None:
    """What is seen of it while it waits for the kernel: one that waits for signals shows those as not blocked."""
    before = where(pid)
    found = seen(f, pid)
    return found if before == where(pid) != "running" else None


def where(pid: int) -> str:
    """In which system call it waits and since how many switches, or that it is running."""
    process = Path(f"/proc/{pid}")
    switches = next(line for line in (process / "status").read_text().splitlines() if line.startswith("voluntary"))
    call = (process / "syscall").read_text()
    return "running" if call.startswith("running") else f"{call.split()[0]} {switches}"


def test_a_fork_looks_like_the_program_that_was_not_started() -> None:
    with fleet() as forked, fleet() as started:
        forked.run("supervisor", "start")
        subprocess.run([COMMAND, "supervisor", "start"], env=started.env, check=True, stdin=subprocess.DEVNULL)
        found = all_of(forked)
        assert found == all_of(started)

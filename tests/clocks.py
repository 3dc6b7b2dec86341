"""A clock of the wall that a test sets while a whole fleet runs on it: each process of the fleet is started through a
Python of the fleet's own, which puts a few lines of C before the system's clock. What counts seconds (CLOCK_MONOTONIC,
CLOCK_BOOTTIME) goes on, as it does when somebody sets the clock of a machine; nothing of the product knows. libfaketime
cannot do that: kept from the monotonic clock, it fails every `clock_nanosleep` until a moment of it, and with it
`time.sleep`.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.fleetlib import Fleet

COMPILER = shutil.which("cc")
_SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *ahead;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("WALL_CLOCK");
    int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *found = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
    if (found != MAP_FAILED) ahead = found;
    close(fd);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, which, now);
    if (!failed && ahead && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += *ahead;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}
"""
_PYTHON = """#!/bin/bash
export LD_PRELOAD={library} WALL_CLOCK={file}
exec -a {name} {python} "$@"
"""


@dataclass(frozen=True)
class WallClock:
    """The clock on a fleet's wall."""

    file: Path

    def set(self, seconds: int) -> None:
        """From now on it is so many seconds ahead of what it really is, everywhere at once."""
        with self.file.open("r+b") as file:
            file.write(struct.pack("=q", seconds))


def start_on_a_clock(f: Fleet) -> WallClock:
    """Start the fleet's supervisor, and with it all that it ever starts, on a clock of its own."""
    assert COMPILER is not None
    clock = WallClock(f.root / "clock")
    clock.file.write_bytes(struct.pack("=q", 0))
    library = f.root / "clock.so"
    subprocess.run(
        [COMPILER, "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", library], input=_SOURCE.encode(), check=True
    )
    real = Path(sys.executable)
    home = f.root / "python"
    (home / "bin").mkdir(parents=True)
    for path in real.parent.iterdir():
        if not path.name.startswith("python"):
            (home / "bin" / path.name).symlink_to(path)
    (home / "lib").symlink_to(real.parent.parent / "lib")
    shutil.copy(real.parent.parent / "pyvenv.cfg", home)
    python = home / "bin" / "python"
    python.write_text(_PYTHON.format(library=library, file=clock.file, name=python, python=real.resolve()))
    python.chmod(0o755)
    command: list[str | Path] = [python, "-P", "-s", "-m", "app.main", "supervisor", "start"]
    subprocess.run(command, env=f.env, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=90)
    return clock


def on_a_clock(pid: int) -> bool:
    """True for a process that reads the clock of its fleet's wall."""
    return b"clock.so" in Path(f"/proc/{pid}/maps").read_bytes()

"""Whether this machine's kernel gives each session that begins now a group of its own."""

from __future__ import annotations

import contextlib


def grouping() -> bool:
    with contextlib.suppress(OSError), open("/proc/sys/kernel/sched_autogroup_enabled", "rb") as file:
        return file.read().strip() == b"1"
    return False

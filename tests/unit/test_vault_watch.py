"""What the kernel tells of changed names, when they change faster than they are read."""

from __future__ import annotations

import os

from harness.vault.watch import Watcher


def test_names_that_never_stop_changing_are_not_waited_out() -> None:
    watcher = Watcher()
    endless = os.open("/dev/zero", os.O_RDONLY)
    os.dup2(endless, watcher.fd)
    os.close(endless)
    try:
        assert watcher.read().all, "everything is looked at"
        assert not watcher.lost, "the next look may be told again"
    finally:
        watcher.close()

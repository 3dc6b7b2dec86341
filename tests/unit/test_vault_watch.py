"""What the kernel tells of changed names, when they change faster than they are read."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from harness.vault import watch


def test_names_that_never_stop_changing_are_not_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # none of the kernel's, of which a user has no more than 128: others may have taken them all
    endless = SimpleNamespace(inotify_init1=lambda flags: os.open("/dev/zero", os.O_RDONLY | os.O_CLOEXEC))
    monkeypatch.setattr(watch, "libc", endless)
    watcher = watch.Watcher()
    try:
        assert watcher.read().all, "everything is looked at"
        assert not watcher.lost, "the next look may be told again"
    finally:
        watcher.close()

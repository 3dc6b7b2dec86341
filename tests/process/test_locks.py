"""The lock files by which it is known who lives."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

from harness.protocol import locks


def test_who_looks_holds_nothing_and_keeps_nobody_from_taking_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    taken: list[int | None] = []
    with path.open("w") as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        assert not locks.held(path)
        taking = threading.Thread(target=lambda: taken.append(locks.take(path, 60)))
        taking.start()
        taking.join(0.1)
        assert not taken
    taking.join(60)
    assert taken != [None]
    assert locks.held(path)
    assert locks.take(path, 0) is None

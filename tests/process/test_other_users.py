"""Other users of the machine: nothing that is kept can be read or reached by them, whatever umask the person has."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.protocol.paths import Folders
from tests.fleetlib import HOLD, fleet, play

OTHERS = stat.S_IRWXG | stat.S_IRWXO


@contextmanager
def umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def open_to_others(root: Path, left_out: Path) -> list[str]:
    """What the group or others may touch, links and one folder aside."""
    found = []
    for folder, folders, names in os.walk(root):
        if Path(folder) == left_out:
            folders.clear()
            continue
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & OTHERS:
                found.append(f"{path} {stat.filemode(mode)}")
    return found


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_whatever_the_umask_what_is_kept_is_for_its_user_alone(mask: int) -> None:
    with fleet() as f:
        repo = f.repository()
        f.folders = Folders(f.root / "made" / "state", f.root / "made" / "run", f.folders.config)
        (f.root / "made").mkdir(mode=0o755)
        f.root.chmod(0o755)
        f.env |= {"WATCHFLOOR_STATE": str(f.folders.state), "WATCHFLOOR_RUNTIME": str(f.folders.runtime)}
        with umask(mask):
            sid = f.launch(play([("shell", {"script": "seq 1 20000; echo x > made"})], [HOLD], "Done."), repo=repo)
            f.wait_event_count(sid, "tool.started", 2)
        kept = f.folders.session(sid)
        for there in (kept.log, kept.blobs, f.folders.ledger, f.folders.supervisor_socket, f.folders.supervisor_log):
            assert there.exists(), there
        assert open_to_others(f.folders.state, f.folders.worktrees / sid) == []
        assert open_to_others(f.folders.runtime, f.folders.worktrees) == []
        assert f.violations() == []
        f.release(sid)
        f.wait_state(sid, "done")

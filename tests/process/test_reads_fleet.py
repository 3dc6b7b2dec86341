"""A turn of several calls that only read, from the model to its results: they run side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.events import types as t
from tests.fleetlib import fleet, play, wait_for

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(180)]


def test_the_reads_of_one_turn_run_side_by_side_and_what_writes_waits(tmp_path: Path) -> None:
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\nwhile [ -e notes.txt ]; do sleep 0.02; done\necho found\n")
    program.chmod(0o755)
    turn = [
        ("search", {"pattern": "one"}),
        ("read_file", {"path": "README.md"}),
        ("search", {"pattern": "two"}),
        ("write_file", {"path": "new.txt", "content": "new"}),
        ("search", {"pattern": "three"}),
    ]
    with fleet(config=f'[sandbox]\nread = ["{tmp_path}"]\npath = ["{tmp_path}"]\n') as f:
        f.run("supervisor", "start")
        sid = f.launch(play(turn, "Done."))

        def bodies(kind: type[t.Body]) -> list[t.Body]:
            return [r.body for r in f.records(sid) if isinstance(r.body, kind)]

        wait_for("three to be started", lambda: len(bodies(t.ToolStarted)) == 3)
        wait_for("the one that waits for nothing to have ended", lambda: len(bodies(t.ToolEnded)) == 1)
        assert len(bodies(t.ToolJudged)) == 3, "what writes is judged when it can run"
        f.release(sid)
        f.wait_state(sid, "done")
        ended = [body for body in bodies(t.ToolEnded) if isinstance(body, t.ToolEnded)]
        assert [body.status for body in ended] == ["ok"] * 5
        assert [body.preview for body in ended if "found" in body.preview] == ["found"] * 3
        assert f.violations() == []

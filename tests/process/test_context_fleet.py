"""A session whose work is larger than its context: it begins anew from hand-offs and comes to its end all the same."""

from __future__ import annotations

import re

from harness.events import types as t
from tests.fleetlib import fleet, play

TURNS = 48


def test_a_session_outlives_its_context_many_times() -> None:
    steps = [
        [
            (
                "exec",
                {"argv": ["sh", "-c", f"seq -f 'part {n} line %g says nothing new at all' 1 90; echo {n} > n{n}.txt"]},
            )
        ]
        for n in range(TURNS)
    ]
    with fleet(config="context_tokens = 20000\n") as f:
        sid = f.launch(play(*steps, "All parts are there."), checks=(f"test -e n{TURNS - 1}.txt",))
        row = f.wait_state(sid, "done", "failed", "parked", "waiting", timeout=240)
        records = f.records(sid)
        changes = [r.body for r in records if isinstance(r.body, t.ContextReset)]
        assert row["state"] == "done", row
        assert row["verified"]
        assert len(changes) >= 2
        sizes = [r.body.usage.total for r in records if isinstance(r.body, t.ModelMessage)]
        assert max(sizes) <= 20_000
        assert not any(isinstance(r.body, t.ModelFailed) for r in records)
        assert sum(isinstance(r.body, t.ToolStarted) for r in records) == TURNS + 1, "nothing was done twice"
        named = {int(seq) for c in changes for seq in re.findall(r"\[#(\d+)\]$", c.handoff, re.MULTILINE)}
        assert len(named) > 10
        assert named <= {r.seq for r in records}
        assert f.violations() == []

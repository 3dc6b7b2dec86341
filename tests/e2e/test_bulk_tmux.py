"""Bulk actions in a real tmux on a real supervisor: caps of several sessions are raised at once, and they go on."""

from __future__ import annotations

import pytest

from harness.events import types as t
from tests.e2e.terminal import have_tmux, in_tmux
from tests.fleetlib import fleet, play

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.sandbox,
    pytest.mark.skipif(not have_tmux(), reason="tmux is not installed"),
]
CAP = 100_000
"""Nano-dollars, of which no request can be paid."""


def test_the_caps_of_marked_sessions_are_raised_and_they_go_on() -> None:
    with fleet() as f:
        poor = [f.launch(play("Done."), name=name, more=("--cap-usd", "0.0001")) for name in ("one", "two", "left")]
        for sid in poor:
            assert f.approval(sid)["kind"] == "cap"
        with in_tmux(f.root, 120, 40) as tmux:
            tmux.see("NEEDS YOU")
            tmux.keys("4")
            tmux.see("one", "two", "left")
            tmux.keys(*"/", *"left", "Enter", "Space", "Escape")
            tmux.see("one", "two")
            tmux.keys(*"/", *"two", "Enter", "Space", "Escape")
            tmux.see("2 marked")
            tmux.keys("+")
            tmux.see("Raise the cap of 2 sessions")
            tmux.keys("C-y")
            tmux.see("2 sessions raised")
            for sid in poor[1:]:
                f.wait_state(sid, "done")
        for sid in poor[1:]:
            raised = [r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalDecided)]
            assert [(body.decision, body.value) for body in raised] == [("raise", CAP + 10**9)]
        (still,) = f.json("approvals")
        assert still["sid"] == poor[0], "what was not marked waits on"
        assert f.violations() == []

"""A whole evening in a real tmux: an agent asks and is answered, ends, and goes on with words given on the screen."""

from __future__ import annotations

import pytest

from harness.events import types as t
from tests.e2e.terminal import have_tmux, in_tmux
from tests.fleetlib import fleet, git, play

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not have_tmux(), reason="tmux is not installed"),
]
WORDS = "I looked at both readers.\n\nThe old one is shorter, the new one is faster.\n\nWhich one should stay?"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_a_question_is_answered_and_an_ended_session_goes_on(width: int, height: int) -> None:
    more = [("shell", {"script": "echo docs > docs.md; git add -A; git commit -qm docs"})]
    with fleet() as f:
        sid = f.launch(play(WORDS, "The new one stays.", more, "Documented."), name="reader")
        f.approval(sid)
        with in_tmux(f.root, width, height) as tmux:
            tmux.see("NEEDS YOU", "Which one should stay?")
            tmux.keys("2")
            tmux.see("reader asks you", "THE AGENT'S WORDS", "The old one is shorter", "w answer", "d finished")
            tmux.keys("w")
            tmux.see("Answer reader", "Your text is its next instruction.")
            tmux.type("the new one")
            tmux.keys("C-y")
            f.wait_state(sid, "done")
            tmux.see("Nothing needs you")
            tmux.keys("1")
            tmux.see("c continue")
            tmux.keys("c")
            tmux.see("Continue reader", "It ended done", "Rounds", "Dollars", "New check", "ctrl+y continue")
            tmux.keys("C-y")
            tmux.see("there is nothing to continue with", "Continue reader")
            tmux.type("write docs")
            for text in ("3", "+2", "test -e docs.md"):
                tmux.keys("Tab")
                tmux.type(text)
            tmux.see("test -e docs.md")
            tmux.keys("C-y")
            f.wait_event_count(sid, "session.ended", 2)
            tmux.see("✓1/1", "c continue")
        going_on = next(r.body for r in f.records(sid) if isinstance(r.body, t.SessionContinued))
        assert (going_on.rounds, going_on.checks, going_on.by.client) == (3, ["test -e docs.md"], "tui")
        assert [r.body.text for r in f.records(sid) if isinstance(r.body, t.UserMessage)][1:] == [
            "the new one",
            "write docs",
        ]
        assert git(f.repository(), "log", "-1", "--format=%s", f.row(sid)["branch"]).strip() == "docs"
        assert f.violations() == []

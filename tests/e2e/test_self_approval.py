"""The self-approval exploit in a real tmux: text that makes a terminal answer, on every screen, must press no key and
decide nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.terminal import have_tmux, in_pty, in_tmux, keys_seen
from tests.tui.app_world import PAYLOADS, beside

pytestmark = [pytest.mark.tmux, pytest.mark.skipif(not have_tmux(), reason="tmux is not installed")]

# What this test types: every screen, every tab of a session, every request with its card to the end, dialogs,
# palette, help.
WALK = (
    *("2", *(["PageDown", "PageDown", "Down"] * len(PAYLOADS)), "r", "Escape", "w", "Escape", "Escape"),
    *("3", "Down", "Escape"),
    *("F1", "Escape", "C-p", "Escape"),
    *("l", "z", "z", "h"),
    *(["Enter", "]", "]", "]", "]", "]", "Enter", "Escape", "m", "Escape", "Escape", "Down"] * 3),
    *("s", "Escape", "n", "Escape", "t", "t", "t"),
)


def test_no_payload_presses_a_key_or_decides(tmp_path: Path) -> None:
    with beside(tmp_path, "hostile"), in_tmux(tmp_path, 150, 45) as tmux:
        tmux.see("NEEDS YOU 14")
        tmux.keys(*WALK)
        tmux.see("NEEDS YOU 14")
        assert len(keys_seen(tmp_path)) == len(WALK)
        calls = [json.loads(line)["op"] for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
        assert not {"decide", "desire", "remove", "say", "launch", "defer"} & set(calls)
        assert {"diff", "costs"} <= set(calls)
        assert tmux.run("list-buffers") == ""
        assert "\x19" not in tmux.run("display-message", "-p", "#{pane_title}")
        tmux.keys("q")
        tmux.see("left with 0")


def test_answers_that_do_come_press_no_key(tmp_path: Path) -> None:
    """Even when a terminal answers (to whatever, whoever asked), its OSC, DCS and APC answers are no key presses."""
    answers = (
        b"\x1b]11;rgb:1919/1919/1919\x1b\\\x1b]4;5;rgb:aa/aa/aa\x07\x1bP1$r0;1m\x1b\\\x1bP1+r61=19\x1b\\"
        b"\x1b_Gi=1;OK\x1b\\\x1b]52;c;GRkZ\x07\x1b]l19\x1b\\"
    )
    # A read that ends in an escape is the escape key to any program; every other way of cutting must go unnoticed.
    size = next(
        n for n in range(15, 40) if not any(answers[at : at + n].endswith(b"\x1b") for at in range(0, len(answers), n))
    )
    pieces = [answers[at : at + size] for at in range(0, len(answers), size)]
    with beside(tmp_path, "crowd"), in_pty(tmp_path) as screen:
        screen.until("the floor", lambda output: b"NEEDS YOU" in output)
        screen.press(b"2")
        screen.until("the armed card", lambda output: b"approves exactly this" in output)
        for piece in pieces:
            screen.send(piece)
            screen.read(0.02)
        screen.press(b"\x1b[B")
        assert keys_seen(tmp_path) == ["2", "down"]
        assert "decide" not in (tmp_path / "calls.jsonl").read_text()

"""The screen in a real tmux, as over SSH: it starts, follows a resize, leaves without a trace, survives its
supervisor.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pexpect
import pytest

from tests.e2e.terminal import HUMAN_S, have_tmux, in_pty, in_tmux, keys_seen, sequences, wait_for
from tests.tui.app_world import beside

pytestmark = pytest.mark.tmux
needs_tmux = pytest.mark.skipif(not have_tmux(), reason="tmux is not installed")

# All that the framework writes by itself: text, cursor, colours, the modes it turns on and off again, and its
# pointer shape.
FRAMEWORK = {
    "C0 0a",
    "C0 0d",
    "C0 07",
    "CSI H",
    "CSI m",
    "CSI J",
    "CSI K",
    "CSI <u",
    "CSI >25u",
    "CSI ?2026$p",
    "CSI ?2048$p",
    "OSC 22",
} | {
    f"CSI ?{mode}{end}" for mode in (7, 25, 1000, 1003, 1004, 1006, 1015, 1016, 1049, 2004, 2026, 2048) for end in "hl"
}

OURS = {"OSC 2", "CSI 22;2t", "CSI 23;2t", "ESC 7", "ESC 8", "CSI C"}
"""The title of the terminal: kept, set, given back; and the cursor, put behind what may be drawn narrower."""
TITLE = re.compile(rb"\x1b\]2;([^\x1b\a]*)\a|\x1b\[(2[23]);2t")


def asked(root: Path) -> list[str]:
    """The requests that the supervisor got."""
    return [json.loads(line)["op"] for line in (root / "calls.jsonl").read_text().splitlines()]


@needs_tmux
def test_it_starts_follows_resizes_and_detaches(tmp_path: Path) -> None:
    with beside(tmp_path, "crowd"), in_tmux(tmp_path, 120, 40) as tmux:
        tmux.see("NEEDS YOU 3", "cart-discount", "today", "? help")
        tmux.run("resize-window", "-x", "80", "-y", "24")
        tmux.see("NEEDS YOU 3", "? help")
        assert all(len(line) <= 80 for line in tmux.screen.splitlines())
        tmux.run("resize-window", "-x", "60", "-y", "20")
        tmux.see("NEEDS YOU 3")
        tmux.run("resize-window", "-x", "200", "-y", "50")
        tmux.see("NEEDS YOU 3", "rate-limits", "ctrl+p commands")
        tmux.keys("j", "Enter")
        tmux.see("✓ pytest -q", "Plan & progress")
        tmux.keys("Escape")
        tmux.see("NEEDS YOU 3")
        tmux.keys("q")
        tmux.see("left with 0")
        assert "decide" not in asked(tmp_path)
        assert "desire" not in asked(tmp_path)


@needs_tmux
def test_a_window_that_no_client_shows_is_not_watched_and_its_title_counts_what_waits(tmp_path: Path) -> None:
    def said() -> list[bool]:
        calls = map(json.loads, (tmp_path / "calls.jsonl").read_text().splitlines())
        return [call["watched"] for call in calls if call["op"] == "watching"]

    def pane_title() -> str:
        return tmux.run("display-message", "-p", "#{pane_title}").strip()

    with beside(tmp_path, "crowd"), in_tmux(tmp_path, 120, 40) as tmux:
        before = pane_title()
        tmux.see("NEEDS YOU 3")
        wait_for("the count in the title", lambda: re.fullmatch(r"◆ \d+ · Watchfloor", pane_title()), pane_title)
        wait_for("detached, nobody watches", lambda: said() == [False], lambda: str(said()))
        client = pexpect.spawn(
            "tmux", ["-S", str(tmp_path / "tmux.sock"), "attach"], env={**os.environ, "TERM": "xterm"}
        )
        try:
            wait_for("attached, somebody does", lambda: said() == [False, True], lambda: str(said()))
            tmux.run("new-window", "sleep 600")
            wait_for("another window stands before it", lambda: said() == [False, True, False], lambda: str(said()))
            tmux.run("last-window")
            tmux.keys("q")
            tmux.see("left with 0")
            assert pane_title() == before
        finally:
            client.close(force=True)


@needs_tmux
def test_a_chord_in_a_real_terminal_approves_what_was_shown(tmp_path: Path) -> None:
    with beside(tmp_path, "crowd"), in_tmux(tmp_path, 120, 40) as tmux:
        tmux.see("NEEDS YOU")
        tmux.keys("2", "C-y")
        tmux.see("WILL RUN")
        assert "decide" not in asked(tmp_path)
        tmux.see("● ctrl+y approves exactly this, once")
        tmux.keys("C-y")
        tmux.see("approved; it runs now, once")
        assert asked(tmp_path).count("decide") == 1


@needs_tmux
def test_pasting_into_the_queue_decides_nothing(tmp_path: Path) -> None:
    with beside(tmp_path, "crowd"), in_tmux(tmp_path, 120, 40) as tmux:
        tmux.see("NEEDS YOU")
        tmux.keys("2")
        tmux.see("● ctrl+y approves exactly this, once")
        tmux.run("set-buffer", "yes\x19\x19 approve\n\x19")
        tmux.run("paste-buffer")
        wait_for(
            "the end of the paste arriving",
            lambda: keys_seen(tmp_path)[-2:] == ["enter", "ctrl+y"],
            lambda: tmux.screen,
        )
        tmux.run("paste-buffer", "-p")
        time.sleep(HUMAN_S)
        tmux.keys("Escape", "Escape", "Escape")
        tmux.see("NEEDS YOU")
        assert "decide" not in asked(tmp_path)


@needs_tmux
def test_without_a_fleet_it_begins_friendly(tmp_path: Path) -> None:
    with beside(tmp_path, "empty"), in_tmux(tmp_path, 80, 24) as tmux:
        tmux.see("No sessions yet", "launch an agent")


@pytest.mark.parametrize("theme", ["dark", "light", "ansi"])
def test_every_byte_on_the_terminal_is_text_or_the_frameworks_own(tmp_path: Path, theme: str) -> None:
    scene = {"dark": "hostile", "light": "crowd", "ansi": "hostile"}[theme]
    (tmp_path / "config").mkdir(mode=0o700)
    (tmp_path / "config" / "config.toml").write_text(f'[ui]\ntheme = "{theme}"\n')
    with beside(tmp_path, scene), in_pty(tmp_path, 120, 40) as screen:
        screen.until("the floor", lambda output: b"NEEDS YOU" in output)
        for keys in (
            b"2",
            b"\x1b[6~",
            b"\x1b[6~",
            b"\x1b",
            b"\r",
            b"]",
            b"]",
            b"]",
            b"]",
            b"\x1b",
            b"3",
            b"\x1b",
            b"?",
            b"\x1b",
            b"\x10",
            b"\x1b",
            b"m",
            b"\x1b",
            b"l",
            b"z",
            b"t",
        ):
            screen.press(keys)
        for _ in range(3):  # whatever is open is closed first
            screen.press(b"\x1b")
        screen.send(b"q")
        screen.until("the end", lambda _: screen.status is not None)
        assert screen.status == 0
        assert sequences(bytes(screen.output)) <= FRAMEWORK | OURS
        titles = [match[1] or match[2] for match in TITLE.finditer(bytes(screen.output))]
        assert (titles[0], titles[-1]) == (b"22", b"23"), "what stood there before comes back"
        assert all(re.fullmatch(r"◆ \d+ · Watchfloor", title.decode()) for title in titles[1:-1])
        assert len(titles) > 2
        # Whatever was turned on is off again, and the cursor is back.
        text = bytes(screen.output)
        for mode in (1000, 1003, 1004, 1006, 1049, 2004):
            assert text.rfind(b"\x1b[?%dl" % mode) > text.rfind(b"\x1b[?%dh" % mode)
        assert text.rfind(b"\x1b[?25h") > text.rfind(b"\x1b[?25l")
        assert not {"decide", "desire", "remove", "say"} & set(asked(tmp_path))

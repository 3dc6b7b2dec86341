"""What is pasted presses no key: in a bare pty byte for byte, cut anywhere, and through a real tmux."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from app.input.typing_pace import QUIET_S
from tests.e2e.terminal import BarePty, have_tmux, in_pty, in_tmux
from tests.tui.app_world import beside

BEGIN = b"\x1b[200~"
END = b"\x1b[201~"
CTRL_Y = b"\x19"
KITTY_CTRL_Y = b"\x1b[121;5u"
XTERM_CTRL_Y = b"\x1b[27;5;121~"
FILLER = b"z" * 31
DECISIONS = {"decide", "defer", "desire", "remove", "say", "launch"}

# Every payload is what a hostile clipboard holds; the terminal puts the brackets around it and filters nothing.
PAYLOADS = {
    "ends itself, then the chord": b"x" + END + CTRL_Y,
    "ends itself, then the chord many times": b"x" + END + CTRL_Y * 40,
    "ends itself, begins again, ends itself": b"x" + END + CTRL_Y + BEGIN + b"y" + END + CTRL_Y,
    "kitty's encoding": b"x" + END + KITTY_CTRL_Y,
    "xterm's encoding": b"x" + END + XTERM_CTRL_Y,
    "an unfinished sequence that is given back as keys": b"\x1b" + FILLER + CTRL_Y * 4,
    "an escape before the chord": b"x\x1b" + CTRL_Y,
    "an answer that never ends": b"\x1b]0;" + END + CTRL_Y,
    "a click on the help bar": b"x" + END + b"\x1b[<0;5;40M\x1b[<0;5;40m",
    "a denial with its reason": b"x" + END + b"rno\r" + CTRL_Y,
}


def calls(root: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (root / "calls.jsonl").read_text().splitlines()]


def decided(root: Path) -> list[str]:
    """What was sent that changes anything."""
    return [str(call["op"]) for call in calls(root) if call["op"] in DECISIONS]


def armed(screen: BarePty) -> None:
    """Open the queue and wait until the card on screen could be approved."""
    screen.until("the floor", lambda output: b"NEEDS YOU" in output)
    screen.send(b"2")
    screen.until("the armed card", lambda output: b"approves exactly this" in output)


def approve_as_a_person(root: Path, screen: BarePty) -> None:
    """The chord, pressed again and again at human pace as the screen asks, works in the end: the keyboard is not
    dead.
    """
    for trial in range(20):
        if trial > 2:  # a slow screen took an escape and the key behind it for one: a person sees that and comes back
            screen.press(b"\x1b")
            screen.press(b"2")
            screen.read(QUIET_S + 0.1)
        screen.send(CTRL_Y)
        screen.read(0.1)
        if "decide" in decided(root):
            return
        pause = time.monotonic() + QUIET_S + 0.1  # what the screen asks of a person
        while time.monotonic() < pause:
            screen.read(0.05)
    raise AssertionError(f"a person could not approve any more: {bytes(screen.output[-2000:])!r}")


def heard(screen: BarePty) -> None:
    """Everything that was sent before has been dealt with: a key sent after it (the help) was obeyed."""
    seen = len(screen.output)

    def helped(output: bytes) -> object:
        screen.send(b"\x1b")  # closes the dialog that loose keys may have opened
        screen.read(0.2)
        screen.send(b"\x1bOP")  # again and again, because a key right behind a paste belongs to it
        return b"esc closes" in output[seen:]

    screen.until("the help screen", helped)
    screen.press(b"\x1b")


def drawn(screen: BarePty, words: bytes) -> bool:
    """Whether these words were drawn (the terminal may move the cursor between words)."""
    pattern = rb"(?:\x1b\[[0-9;?]*[A-Za-z]|\s)+".join(map(re.escape, words.split()))
    return re.search(pattern, screen.output) is not None


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_no_paste_decides_and_the_keyboard_lives_on(tmp_path: Path, payload: bytes) -> None:
    with beside(tmp_path, "crowd"), in_pty(tmp_path) as screen:
        armed(screen)
        screen.send(BEGIN + payload + END)
        heard(screen)
        assert decided(tmp_path) == []
        screen.send(b"2")
        approve_as_a_person(tmp_path, screen)


def test_no_paste_cut_anywhere_decides(tmp_path: Path) -> None:
    """The bytes of one paste arrive in two pieces, cut at every place, with a pause no longer than a stalled
    terminal's.
    """
    data = BEGIN + b"x\x1b" + CTRL_Y + b"y" + END + CTRL_Y + END
    with beside(tmp_path, "crowd"), in_pty(tmp_path) as screen:
        armed(screen)
        for cut in range(1, len(data)):
            for pause in (0.0, 0.03, 0.15):
                screen.send(data[:cut])
                screen.read(pause)
                screen.send(data[cut:])
                screen.read(0.01)
                screen.send(b"2")  # a paste cut behind its first byte, an escape, has left the queue
        heard(screen)
        assert decided(tmp_path) == []


def test_the_chord_right_after_a_paste_is_refused_in_words(tmp_path: Path) -> None:
    assert any(refused_after_a_paste(tmp_path / str(n)) for n in range(5)), "the screen stood still each time"


def refused_after_a_paste(root: Path) -> bool:
    """False when the screen stood still for so long that the chord came a second after the paste."""
    root.mkdir()
    with beside(root, "crowd"), in_pty(root) as screen:
        armed(screen)
        pasted = time.monotonic()
        screen.send(BEGIN + b"x" + END)
        for _ in range(100):  # again and again: one that is read together with the paste belongs to it
            screen.read(0.2)
            if decided(root):
                if time.monotonic() - pasted <= QUIET_S:
                    raise AssertionError("the chord decided right after a paste")
                return False
            if drawn(screen, b"a paste has just ended"):
                break
            screen.send(CTRL_Y)
        else:
            raise AssertionError(f"nothing was said of the paste: {bytes(screen.output[-2000:])!r}")
        approve_as_a_person(root, screen)
        return True


@pytest.mark.parametrize("payload", [b"yes\x19\x19 approve\n\x19", b"\x19yes", b"\x19\x19"])
def test_a_paste_without_brackets_decides_nothing(tmp_path: Path, payload: bytes) -> None:
    with beside(tmp_path, "crowd"), in_pty(tmp_path) as screen:
        armed(screen)
        screen.send(payload)
        heard(screen)
        assert decided(tmp_path) == []


@pytest.mark.tmux
@pytest.mark.skipif(not have_tmux(), reason="tmux is not installed")
@pytest.mark.parametrize(
    "payload", ["x\x1b[201~\x19", "x\x1b[201~\x19\x19\x19", "\x1b" + "z" * 31 + "\x19", "\x19and more"]
)
@pytest.mark.parametrize("brackets", [True, False])
def test_no_paste_in_tmux_decides(tmp_path: Path, payload: str, brackets: bool) -> None:
    with beside(tmp_path, "crowd"), in_tmux(tmp_path, 120, 40) as tmux:
        tmux.see("NEEDS YOU")
        tmux.keys("2")
        tmux.see("● ctrl+y approves exactly this, once")
        tmux.run("set-buffer", payload)
        tmux.run("paste-buffer", *(["-p"] if brackets else []))
        tmux.help()
        assert decided(tmp_path) == []

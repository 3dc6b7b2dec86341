"""In a real tmux, whose table of widths is its own: the end of what would run is on the card, and columns stand."""

from __future__ import annotations

import ctypes
import locale
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.terminal import have_tmux, in_tmux
from tests.e2e.test_queue_tmux import ARMED, asking, read_to_the_end
from tests.fleetlib import fleet, play

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.sandbox,
    pytest.mark.skipif(not have_tmux(), reason="tmux is not installed"),
]
UNITS = {
    "skin tones": "\U0001f44d\U0001f3ff" * 28,
    "Hangul tone marks": "\uac00\u302e" * 28,
    "Devanagari vowel signs": "\u0915\u093f" * 58,
    "flags": "\U0001f1e9\U0001f1ea" * 24,
    "decomposed Hangul": "\u1100\u1161\u11a8" * 30,
    "Tamil": "\u0ba8\u0bbf" * 50,
    "voice marks": "\uff76\uff9e" * 50,
    "Thai": "\u0e01\u0e33\u0e49" * 40,
    "wide symbols": "\u2705\u26a1" * 30,
}


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_the_end_of_what_would_run_is_on_the_card(unit: str) -> None:
    with fleet() as f:
        asking(f, f"echo {unit} ; touch PWNED", "network")
        with in_tmux(f.root, 100, 30) as tmux:
            read_to_the_end(tmux)
            tmux.keys("home")
            tmux.see("WILL RUN")
            shown = "".join(line.strip(" │┃║").replace("↪", "").strip() for line in tmux.screen.split("\n"))
            assert "touch PWNED" in shown.replace("touchPWNED", "touch PWNED")
            assert ARMED in tmux.screen


WORDS = "\u0928\u0940\u0924\u093f \u0915\u0940 \u0938\u094d\u0925\u093f\u0924\u093f \uac00\u302e\ub098 \U0001f44d "
BORDER = "▕"


def test_columns_stand_whatever_a_session_is_called(libc_width: Callable[[str], int]) -> None:
    """By tmux's own count of cells, which is that of its C library."""
    with fleet() as f:
        for name in (WORDS, "plain words"):
            f.launch(play([], "Done."), name=name)
        with in_tmux(f.root, 80, 24) as tmux:
            tmux.see("\u0928\u0940", "plain words", "DONE 2")
            rows = [line for line in tmux.screen.split("\n") if " done  " in line and BORDER in line]
            assert len(rows) == 2
            assert len({sum(map(libc_width, line[: line.index(" done  ")])) for line in rows}) == 1


@pytest.fixture
def libc_width() -> Iterator[Callable[[str], int]]:
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    wcwidth = ctypes.CDLL(None).wcwidth
    yield lambda ch: int(wcwidth(ord(ch)))
    locale.setlocale(locale.LC_CTYPE, before)

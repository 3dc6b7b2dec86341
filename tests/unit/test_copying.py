"""What goes to the clipboard: whole characters, no controls, in a form that the terminal and tmux take."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from app.terminal import clipboard


@given(st.lists(st.text(), max_size=4))
def test_what_is_pasted_holds_no_control_but_line_feeds(texts: list[str]) -> None:
    made = clipboard.lines(texts)
    assert not [c for c in made if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160]


@given(st.text(alphabet="aä€𝄞", min_size=1, max_size=30), st.integers(0, 4))
def test_a_long_text_is_cut_between_characters_and_said_so(piece: str, more: int) -> None:
    text = piece * (clipboard.MOST // len(piece.encode()) + more)
    made = clipboard.cut(text)
    assert text.startswith(made.text)
    assert clipboard.MOST - 4 < len(made.text.encode()) <= clipboard.MOST or made.text == text
    assert (f"of {len(text):,}" in clipboard.told("it", made, in_tmux=False)) == (made.text != text)


def test_the_terminal_is_told_once_and_tmux_in_both_forms() -> None:
    plain = clipboard.sequence("a\nb", in_tmux=False)
    assert plain == "\x1b]52;c;" + base64.b64encode(b"a\nb").decode() + "\a"
    both = clipboard.sequence("a\nb", in_tmux=True)
    assert both == plain + "\x1bPtmux;\x1b" + plain + "\x1b\\"
    assert len(clipboard.sequence("x" * clipboard.MOST, in_tmux=False)) < 100_000


def test_words_count_what_was_copied() -> None:
    assert clipboard.told("the row", clipboard.cut("a"), in_tmux=False) == "copied the row: 1 character"
    assert clipboard.told("the row", clipboard.cut("ab"), in_tmux=True).endswith(
        "2 characters; tmux needs set-clipboard on"
    )

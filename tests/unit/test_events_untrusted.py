"""Display text can neither act on a terminal nor look like other text."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.text.display_safe import to_display, to_display_lines

ANY = st.text(st.characters(), max_size=60)
NASTY = st.lists(
    st.sampled_from(
        [chr(c) for c in range(0x20)]
        + [
            "\x7f",
            "\x80",
            "\x9b",
            "\x9d",
            "\xa0",
            "\xad",
            "\u034f",
            "\u061c",
            "\u115f",
            "\u200b",
            "\u200d",
            "\u202e",
            "\u2028",
            "\u2066",
            "\u2800",
            "\u3000",
        ]
        + [
            "\u3164",
            "\ufe0f",
            "\ufeff",
            "\ufff9",
            "\U000e0041",
            "\U000e0100",
            "\ud800",
            "e\u0301",
            "\u20dd",
            "⟨",
            "⟩",
            "␛",
            "␡",
            " ",
            "a",
            "8",
            "U+202E",
            "spaces",
        ]
    ),
    max_size=40,
).map("".join)
INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Me")


@settings(max_examples=400)
@given(st.one_of(ANY, NASTY))
def test_nothing_in_it_acts_or_hides(text: str) -> None:
    shown = to_display(text)
    for ch in shown:
        assert unicodedata.category(ch) not in INVISIBLE
        assert unicodedata.bidirectional(ch) not in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
        assert ch == " " or unicodedata.category(ch) != "Zs"
        assert not 0x300 <= ord(ch) <= 0x36F
        assert not 0xFE00 <= ord(ch) <= 0xFE0F
    assert " " * 8 not in shown
    assert shown.encode("utf-8").decode("utf-8") == shown


@settings(max_examples=400)
@given(st.one_of(ANY, NASTY), st.one_of(ANY, NASTY))
def test_different_text_looks_different(one: str, other: str) -> None:
    assert (to_display(one) == to_display(other)) == (one == other)


def unshow(shown: str) -> str:
    """The inverse: that one exists is the proof that no two texts share a picture."""

    def one(match: re.Match[str]) -> str:
        inner = match[1]
        return chr(int(inner[2:], 16)) if inner.startswith("U+") else " " * int(inner.split()[0])

    def plain(part: str) -> str:
        controls = "".join(chr(ord(ch) - 0x2400) if 0x2400 <= ord(ch) < 0x2420 else ch for ch in part)
        return controls.replace("\u2421", "\x7f")

    parts = re.split("(⟨[^⟩]*⟩)", shown)
    return "".join(re.sub("⟨([^⟩]*)⟩", one, part) if part.startswith("⟨") else plain(part) for part in parts)


@settings(max_examples=400)
@given(st.one_of(ANY, NASTY))
def test_the_text_can_be_read_back(text: str) -> None:
    assert unshow(to_display(text)) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 漢字 ✓", "plain ä 漢字 ✓"),
        ("\x1b]52;c;?\x07", "␛]52;c;?␇"),
        ("a\tb\nc\r", "a␉b␊c␍"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("evil\u202etxt.exe", "evil⟨U+202E⟩txt.exe"),
        ("a" + " " * 200 + "rm -rf", "a⟨200 spaces⟩rm -rf"),
        ("e\u0301", "e⟨U+0301⟩"),
        ("ที่นี่", "ที่นี่"),
        ("⟨8 spaces⟩", "⟨U+27E8⟩8 spaces⟨U+27E9⟩"),
    ],
)
def test_examples(text: str, shown: str) -> None:
    assert to_display(text) == shown


def test_limit_says_what_it_left_out_and_lines_split_at_line_feeds_only() -> None:
    assert to_display("x" * 100, limit=10) == "x" * 10 + "⟨+90 characters⟩"
    assert to_display_lines("a\x0bb\nc\u2028d") == ["a␋b", "c⟨U+2028⟩d"]

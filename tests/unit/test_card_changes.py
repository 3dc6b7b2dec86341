"""What a card says of a write or an edit: all of it, told apart byte by byte, whatever an agent puts there."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.actions.action import Action, from_wire
from harness.executor import files
from harness.supervisor.calls.queue import cards, comparison
from harness.supervisor.calls.queue.comparison import HEAD, TAIL, Side, compare, left_out, on_card
from harness.views.session_views import NOT_COMPARED, NOT_SHOWN
from widgets.card.card_text import diff_lines

BYTES = st.lists(
    st.sampled_from(
        [
            b"a",
            b"b",
            b"\n",
            b"\r\n",
            b"\r",
            b"\0",
            b"\x0c",
            b"\x1b",
            b" ",
            b"+",
            b"-",
            b"@@ -1 +1 @@",
            b"\xff",
            "é".encode(),
            b"\xe2\x80\xa8",
        ]
    ),
    max_size=14,
).map(b"".join)


def shown(before: bytes | None, after: bytes) -> str:
    return compare(Side.of(before) if before is not None else Side(None, "nothing there"), Side.of(after))


def applied(before: bytes, patch: str) -> bytes:
    """The file after this patch, by the rules of unified diffs: what a careful reader reconstructs from the card."""
    rows = [line for line in patch.split("\n") if not line.startswith(("--- now", "+++ after", "\\ not plain"))]
    hexdump = "\\ not plain" in patch
    if hexdump:
        old = [before[i : i + 16] for i in range(0, len(before), 16)]
    else:
        old = [line + b"\n" for line in before.split(b"\n")]
        old[-1] = old[-1][:-1]
    out: list[bytes] = []
    at = 0
    sign = ""
    for row in rows:
        if found := re.match(r"@@ -(\d+),(\d+) \+\d+,\d+ @@$", row):
            start = int(found[1]) - (found[2] != "0")
            out += old[at:start]
            at = start
        elif row.startswith("\\ No newline"):
            if sign == "+":
                out[-1] = out[-1].removesuffix(b"\n")
        elif row[:1] in (" ", "-", "+"):
            content = bytes.fromhex(row[1:].split("  ")[1]) if hexdump else row[1:].encode() + b"\n"
            sign = row[0]
            if sign == "+":
                out.append(content)
            else:
                assert old[at].removesuffix(b"\n") == content.removesuffix(b"\n")
                out += [old[at]] if sign == " " else []
                at += 1
    return b"".join([*out, *old[at:]])


@settings(max_examples=600, deadline=None)
@given(BYTES, BYTES)
def test_the_result_can_be_rebuilt_from_what_is_shown(before: bytes, after: bytes) -> None:
    assert applied(before, shown(before, after)) == after


@settings(max_examples=300, deadline=None)
@given(BYTES, BYTES, BYTES)
def test_two_results_never_read_the_same(before: bytes, one: bytes, two: bytes) -> None:
    a, b = ([line.text for line in diff_lines("\n".join(shown(before, body).split("\n")[2:]))] for body in (one, two))
    assert (a == b) == (one == two)


def test_a_nul_hides_nothing() -> None:
    lines = [
        line.text for line in diff_lines(shown(b"PATH=/usr/bin\n", b"PATH=/usr/bin\n* * * * * root sh /tmp/x\n\0"))
    ]
    assert "  +* * * * * root sh /tmp/x" in lines
    assert "  +␀" in lines


def test_line_ends_are_shown() -> None:
    lines = [line.text for line in diff_lines(shown(b"a\nb\n", b"a\r\nb\x0cc\n"))]
    assert "  +a␍" in lines
    assert "  +b␌c" in lines


def test_a_program_is_a_hexdump_of_all_its_bytes() -> None:
    body = bytes(range(256)) * 4
    text = shown(None, body)
    rows = [line[1:].split("  ")[1] for line in text.split("\n") if line.startswith("+0")]
    assert bytes.fromhex(" ".join(rows)) == body
    assert "nothing there" in text


def test_padding_cannot_push_a_change_out_of_sight() -> None:
    same = [f"line {i}\n" for i in range(60_000)]
    before = "".join(same).encode()
    after = "".join([*same[:30_000], "PAYLOAD\n", *same[30_000:]]).encode()
    text = shown(before, after)
    assert "+PAYLOAD" in on_card(text)
    assert len(text) < 1000


@pytest.mark.parametrize("size", [HEAD + TAIL + 1, 200_000, 1_500_000])
def test_what_a_card_leaves_out_is_named_with_size_and_hash(size: int) -> None:
    import hashlib

    whole = shown(None, b"\n".join(b"x" * 50 for _ in range(size // 51 + 1)))
    part = on_card(whole)
    assert len(part) < HEAD + TAIL + 500
    assert left_out(part)
    (note,) = [line for line in part.split("\n") if line.startswith(NOT_SHOWN)]
    gone = whole[HEAD:-TAIL]
    assert f"{len(gone):,} of {len(whole):,} characters" in note
    assert hashlib.sha256(gone.encode()).hexdigest() in note
    assert part.startswith(whole[:HEAD])
    assert part.endswith(whole[-TAIL:])


@pytest.mark.parametrize(
    "content",
    [
        "a" * 300_000,
        ("\\ NOT" + "b" * 7) * 30_000,
        "\\ NOT SHOWN HERE: \n" * 10_000,
        "@@ -1,1 +1,1 @@\n-safe\n+safe\n" * 9000,
    ],
)
def test_no_content_can_pass_for_a_line_of_the_card(content: str) -> None:
    part = on_card(shown(None, content.encode()))
    ours = [line for line in part.split("\n") if line[:1] not in ("+", "-", " ")]
    assert [line for line in ours if line.startswith(NOT_SHOWN)] == ours[1:2]
    assert len(ours) <= 3


@pytest.mark.parametrize("alphabet", [2, 40, 5000])
def test_comparing_ends_whatever_is_compared(alphabet: int) -> None:
    rng = random.Random(alphabet)
    one, two = ("".join(f"{rng.randrange(alphabet)}\n" for _ in range(100_000)).encode() for _ in range(2))
    # Anything that is not in proportion to the size would not end within a test's time: difflib needs hours for the
    # first of these.
    assert applied(one, shown(one, two)) == two


# -- the files themselves --------------------------------------------------------------------------


def action(tool: str, folder: Path, path: str = "f") -> Action:
    return from_wire({"tool": tool, "kind": "file", "cwd": str(folder), "path": path})


def test_other_tools_change_no_file(tmp_path: Path) -> None:
    assert cards.diff(action("exec", tmp_path), {}) == ""


def test_a_new_file_and_one_that_is_there_read_otherwise(tmp_path: Path) -> None:
    given = {"content": "x\n"}
    assert "now: nothing there" in cards.diff(action("write_file", tmp_path), given)
    (tmp_path / "f").write_text("y\n")
    text = cards.diff(action("write_file", tmp_path), given)
    assert "-y\n+x" in text
    assert "now: 2 bytes" in text


def test_a_large_file_is_never_called_absent(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as out:
        out.truncate(cards.MAX_DIFF_SOURCE + 1)
    text = cards.diff(action("write_file", tmp_path), {"content": "small\n"})
    assert text.startswith(NOT_COMPARED)
    assert "not read: it" in text
    assert str(cards.MAX_DIFF_SOURCE + 1) in text.replace(",", "")
    assert "+small" in text
    (tmp_path / "d").mkdir()
    assert "a folder" in cards.diff(action("write_file", tmp_path, "d"), {"content": ""})
    os.mkfifo(tmp_path / "p")
    assert "a named pipe" in cards.diff(action("write_file", tmp_path, "p"), {"content": ""})


@pytest.mark.parametrize(
    ("before", "given"),
    [
        (b"one\ntwo\n", {"old": "two", "new": "three"}),
        (b"one\r\ntwo\r\n", {"old": "one\ntwo", "new": "1\n2"}),
        (b"a b a\n", {"old": "a", "new": "\0", "all": True}),
        (b"\xff\xfe old\n", {"old": "old", "new": "new"}),
    ],
)
def test_an_edit_is_shown_as_it_will_be_made(tmp_path: Path, before: bytes, given: dict[str, Any]) -> None:
    (tmp_path / "f").write_bytes(before)
    text = cards.diff(action("edit_file", tmp_path), given)
    assert not left_out(text)
    find, put = files.endings_of(before, given["old"].encode(), given["new"].encode())
    assert applied(before, text) == before.replace(find, put)


@pytest.mark.parametrize(
    ("before", "given", "why"),
    [
        (None, {"old": "a", "new": "b"}, "is not there"),
        (b"x", {"old": "a", "new": "b"}, "occurs 0 times"),
        (b"aa", {"old": "a", "new": "b"}, "occurs 2 times"),
        (b"a" * 100_000, {"old": "a", "new": "b" * 1000, "all": True}, "would grow from 100,000 to 100,000,000 bytes"),
    ],
)
def test_an_edit_without_a_place_shows_both_texts_and_says_why(
    tmp_path: Path, before: bytes | None, given: dict[str, Any], why: str
) -> None:
    if before is not None:
        (tmp_path / "f").write_bytes(before)
    text = cards.diff(action("edit_file", tmp_path), given)
    assert text.startswith(NOT_COMPARED)
    assert why in text
    assert f"-{given['old']}" in text
    assert f"+{given['new']}" in text


@pytest.mark.parametrize(
    ("judged", "raised"), [("low", "high"), ("medium", "high"), ("high", "critical"), ("critical", "critical")]
)
def test_what_cannot_all_be_shown_is_of_higher_risk(judged: str, raised: str) -> None:
    assert cards.risk(judged, on_card(shown(None, b"x\n" * 100_000))) == raised
    assert cards.risk(judged, comparison.replaced("a", "b", "why")) == raised
    assert cards.risk(judged, on_card(shown(None, b"x\n" * 100))) == judged

"""Whether a reply asks the person something: the rule, and properties that hold for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reports.question_detector import MOST_WORDS, TITLE, asked, words


@pytest.mark.parametrize(
    "line",
    [
        "Which database should I use?",
        "**Should I drop `v1`?**",
        "(Or should I ask the maintainers first?)",
        "You mean “keep it?”",
        "要删除旧表吗？",
        "「削除しますか？」",
        "هل أحذف الجدول القديم؟",
    ],
)
def test_a_last_line_that_ends_in_a_question_mark_asks(line: str) -> None:
    assert asked(line) == line
    assert asked(f"I looked at it.\n\n{line} \n\n") == line


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "All done.",
        "Should I have used a lock? I decided against it.",
        "What changed?\n\n- the parser",
        "The regular expression ended in `colou?`",
        "See https://example.org/?q=1",
        "I added the prompt:\n\n```python\ninput('Are you sure?')\n```",
    ],
)
def test_any_other_reply_does_not(reply: str) -> None:
    assert asked(reply) == ""


@given(st.text(alphabet=st.sampled_from("?？؟;. \n`~>-#|*\"')!abÄか。1)"), max_size=200))
def test_any_text_gets_an_answer_of_one_short_line(text: str) -> None:
    question = asked(text)
    assert "\n" not in question
    assert len(question) <= TITLE
    assert asked("x" * 100_000 + "\n\n" + text) == question or not text.strip()


def test_long_words_keep_their_end() -> None:
    text = words("a" * 20_000 + "\n\nWhich one?")
    assert text.endswith("Which one?")
    assert len(text) < MOST_WORDS + 100
    assert words(" short? ") == "short?"

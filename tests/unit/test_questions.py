"""What a question of an agent asks for, and what an answer to it says, for any words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.calls.approval_kind import Request
from harness.events import types as t
from harness.projections.state.session_state import OpenApproval
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.queue import questions
from harness.tools import person_tool, validation
from harness.views.session_views import ApprovalView
from widgets.card.card_text import card_lines

INPUTS = st.fixed_dictionaries(
    {"question": st.text(max_size=person_tool.MAX_QUESTION + 9)},
    optional={"options": st.lists(st.text(max_size=person_tool.MAX_OPTION + 3), max_size=11)},
)


def asked(made: t.ApprovalRequested) -> OpenApproval:
    return OpenApproval(
        made.approval_id, made.kind, made.title, made.options, made.call_id, "", made.risk, "", 7, made.detail
    )


def view(made: t.ApprovalRequested) -> ApprovalView:
    return ApprovalView(
        made.approval_id, "s", "cart", made.kind, made.title, made.options, made.risk, "", 7, detail=made.detail
    )


@given(INPUTS)
def test_whatever_passes_the_tool_becomes_one_request_whose_card_has_all_of_it(value: dict[str, object]) -> None:
    if validation.validate(person_tool.NAME, value) is not None:
        return
    made = questions.request("c1.0", value)
    assert (made.kind, made.call_id, made.options) == (Request.QUESTION, "c1.0", ["answer", "deny", "stop"])
    assert len(made.title) <= person_tool.TITLE
    assert len(made.title.splitlines()) <= 1
    question = str(value["question"]).strip()
    assert question in (made.title, made.detail.get("asks"))
    offered = person_tool.choices(made.detail)
    assert len(offered) == len(value.get("options", []))  # type: ignore[arg-type]
    shown = [line.text for line in card_lines(view(made))]
    for number in range(1, len(offered) + 1):
        assert any(line.startswith(f"  {number}  ") for line in shown)


@given(INPUTS, st.integers(-3, 12), st.text(max_size=20))
def test_a_number_means_the_option_that_was_shown_or_nothing(value: dict[str, object], number: int, words: str) -> None:
    if validation.validate(person_tool.NAME, value) is not None:
        return
    request = asked(questions.request("c1.0", value))
    offered = person_tool.choices(request.detail)
    if not 1 <= number <= len(offered):
        with pytest.raises(OpError) as caught:
            questions.words_of(request, words, number)
        assert caught.value.code == "bad_value"
        assert str(number) in str(caught.value) or not offered
        return
    said = questions.words_of(request, words, number)
    assert said.startswith(offered[number - 1])
    assert words.strip() == "" or said.endswith(words)


def test_an_answer_without_words_is_refused() -> None:
    request = asked(questions.request("c1.0", {"question": "Keep it?"}))
    with pytest.raises(OpError, match="needs a text"):
        questions.words_of(request, " \n", None)
    assert questions.words_of(request, "yes", None) == "yes"


@pytest.mark.parametrize("detail", [{}, {"choices": None}, {"choices": "abc"}, {"choices": 3}])
def test_a_request_of_another_form_has_no_options(detail: dict[str, object]) -> None:
    assert person_tool.choices(detail) == []
    assert "no options" in person_tool.unchosen(detail, 1)


def test_hostile_options_are_shown_as_what_they_are() -> None:
    made = questions.request("c1.0", {"question": "Which?", "options": ["\x1b[2Jkeep\u202e", "drop"]})
    shown = "\n".join(line.text for line in card_lines(view(made)))
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_the_call_ends_with_the_answer_or_the_word_that_there_is_none() -> None:
    assert questions.outcome("c1.0", "answer", "yes") == t.ToolEnded(call_id="c1.0", status="ok", preview="yes")
    denied = questions.outcome("c1.0", "deny", "")
    assert denied.status == "denied"
    assert "Decide yourself" in denied.preview

"""The tool ``ask_person``: what the model is told of it, which inputs make sense, and what an answer to it says.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.domain.text import fields
from harness.tools import call_subject

NAME = "ask_person"
MAX_QUESTION = 4000
MAX_OPTIONS = 9
"""Each is chosen by one digit."""
MAX_OPTION = 200
TITLE = 300
CHOICES = "choices"
"""Where a request's detail has the options of a question."""

DESCRIPTION = (
    "Ask the person one question that only they can decide, and wait for the answer, which is the result of this call."
    " It may take hours and costs nothing meanwhile. Say in the question all that is needed to decide; give the likely"
    " answers as `options`. Do not ask what you can find out or undo yourself."
)
PROPERTIES: Mapping[str, Mapping[str, object]] = {
    "question": {"type": "string", "description": "The question, with what is needed to decide it."},
    "options": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "maxItems": MAX_OPTIONS,
        "description": "Answers to choose from, one short line each; the person may also answer in other words.",
    },
}
REQUIRED = ("question",)


def problem(value: Mapping[str, object]) -> str | None:
    """What is wrong with an input whose fields have their types; None when it makes sense."""
    question = fields.text(value, "question")
    if not question.strip():
        return f"{NAME}: the question is empty"
    if len(question) > MAX_QUESTION:
        return f"{NAME}: the question has {len(question)} characters, over the limit of {MAX_QUESTION}"
    options = fields.texts(value, "options")
    if len(options) > MAX_OPTIONS:
        return f"{NAME}: at most {MAX_OPTIONS} options; leave out the unlikely ones"
    for option in options:
        if not option.strip() or len(option) > MAX_OPTION or len(option.splitlines()) != 1:
            return f"{NAME}: an option is one line of at most {MAX_OPTION} characters"
    if len({option.strip() for option in options}) < len(options):
        return f"{NAME}: two options are the same"
    return None


def subject(given: Mapping[str, object]) -> str:
    """What a call asks, on one line."""
    return call_subject.line(str(given.get("question", "")))


def title(question: str) -> str:
    """The question on one line of at most `TITLE` characters; of a longer one its end, where it asks."""
    line = " ".join(question.split())
    return line if len(line) <= TITLE else "…" + line[-TITLE + 1 :]


def choices(detail: Mapping[str, object]) -> list[str]:
    """The options that a request offers, in the order of their numbers; none when its detail has another form."""
    found = detail.get(CHOICES)
    return [str(option) for option in found] if isinstance(found, list | tuple) else []


def unchosen(detail: Mapping[str, object], number: int) -> str:
    """Why this number (counted from 1) names no option of the request, in a sentence; empty when it names one."""
    offered = choices(detail)
    if not offered:
        return "this question has no options to choose from; answer it in words"
    return "" if 1 <= number <= len(offered) else f"there is no option {number}; choose 1 to {len(offered)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent: words, or the number (from 1) of an answer that was offered."""

    message: str = ""
    number: int | None = None


def read(text: str, offered: int) -> Answer:
    """What a text means where so many answers are offered: a number that one of them has, or words.

    Raises ValueError, for people, when it is empty or a number that none has.
    """
    clean = text.strip()
    if not clean:
        raise ValueError("write something first, or cancel")
    if offered and clean.isascii() and clean.isdigit() and len(clean) < 3:
        if not 1 <= int(clean) <= offered:
            raise ValueError(f"there is no answer {clean}; choose 1 to {offered}, or answer in words")
        return Answer(number=int(clean))
    return Answer(message=clean)

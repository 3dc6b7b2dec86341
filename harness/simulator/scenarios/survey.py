"""Never done: reads on, takes notes, finds another question. Runs into whatever cap it was given."""

from __future__ import annotations

import itertools
import re

from harness.simulator.script import Call, Scenario, Script, call, say

QUESTIONS = (
    ("How are amounts represented, and where could a float creep in?", "money|cents", "tally/money.py"),
    ("Which inputs make the reader fail, and are the messages good?", "ValueError", "tally/book.py"),
    ("Who depends on the order of names?", "sorted|min\\(|max\\(", "tally/split.py"),
    ("What does a person see who only runs the program?", "print|stdout", "tally/report.py"),
    ("What do the tests not say?", "def test_", "tests/test_book.py"),
    ("What does the specification leave open?", "ValueError|exactly", "SPEC.md"),
)


def _note(n: int, question: str) -> str:
    return (
        f"## {n}. {question}\n\nLooked at the code and at its tests side by side. The shape is consistent: integers in"
        " cents at every border, text only at the edges. Open points are the ones where a caller could pass something"
        " that no test passes today; they are listed with the file and the reason, so that somebody can turn each into"
        " a test. Confidence is moderate: this was read, not run.\n"
    )


def play(goal: str) -> Script:
    yield say(
        "A survey of this code base. I start with an overview.", call("list_files"), call("read_file", path="README.md")
    )
    notes = "# Survey\n"
    for n in itertools.count(1):
        question, pattern, path = QUESTIONS[(n - 1) % len(QUESTIONS)]
        back = yield say(
            f"Question {n}: {question} I search for the places that decide it, and read the one that matters most.",
            call("search", pattern=pattern),
            call("read_file", path=path),
        )
        if _told_to_finish(back.texts):
            break
        notes += "\n" + _note(n, question)
        calls: tuple[Call, ...] = (call("write_file", path="NOTES.md", content=notes, why="keep what was found"),)
        back = yield say(
            f"That answers it well enough; I write it down ({len(notes.split())} words so far) and go on, since each"
            " answer raises another one.",
            *calls,
        )
        if _told_to_finish(back.texts):
            break
    yield say(f"I was asked to finish. The survey stands in NOTES.md; it answers {notes.count('## ')} questions.")


def _told_to_finish(texts: tuple[str, ...]) -> bool:
    return any(re.search(r"\b(finish|wrap up|last (reply|turn))\b", text, re.IGNORECASE) for text in texts)


SCENARIOS = [Scenario("survey", re.compile(r"\b(survey|research)\b", re.IGNORECASE), play)]

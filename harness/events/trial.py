"""A trial of a check: the same command, run once more on other test files, to see whether it can fail. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.events.body import BlobRef

RAN_FOR = "trial "
_REF = re.compile(r"trial (?P<kind>[a-z]+) (?P<check>c[0-9]+\.[0-9]+) (?P<word>wf_[0-9a-f]+)")
WORDS = {
    "alone": "without the test files that are new",
    "broken": "with tests that fail at their end",
    "bare": "with tests that do nothing but fail",
    "start": "with the same on the files of the start",
    "fresh": "with new tests that fail at their end",
}
"""What each kind of trial is run with."""


@dataclass(frozen=True, slots=True)
class TrialRef:
    """What a trial is called: its kind, the call of the check that it tries, and the word that its tests fail with."""

    kind: str
    check: str
    word: str

    def __str__(self) -> str:
        return f"{RAN_FOR}{self.kind} {self.check} {self.word}"


def read(ref: str) -> TrialRef | None:
    """None for what is no trial."""
    match = _REF.fullmatch(ref)
    return None if match is None else TrialRef(match["kind"], match["check"], match["word"])


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial as far as the log tells: ``status`` is empty while it runs or waits to."""

    word: str
    status: str = ""
    exit_code: int | None = None
    preview: str = ""
    output: BlobRef | None = None

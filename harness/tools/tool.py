"""What a tool of the built-in agent is. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from harness.domain.actions.action import FileAction, RecordAction
from harness.tools import call_subject

READ = "read"
REVERSIBLE = "reversible"
CONTAINED = "contained"
IRREVERSIBLE = "irreversible"
ANSWERED = "answered"
"""The kind of a tool that has no effect outside the log: the supervisor answers it, and nothing is started."""
WHY = {"type": "string", "description": "One short sentence: why you do this. It is shown to the human as your claim."}


class Writes(Enum):
    """What a call writes to the one file that its ``path`` names."""

    NOTHING = "nothing"
    WHOLE = "whole"
    """Its ``content`` is the file from then on."""
    PIECE = "piece"
    """Its ``new`` stands where ``old`` stood."""


@dataclass(frozen=True, slots=True)
class CallWords:
    """How a call reads as a line: ``read a.py``, several of them as ``read 6 files``, what it found as ``3 hits``, or,
    where it ``ends`` with a text that is to be read, as ``answered: yes``.

    Without a ``verb`` it is its subject alone; with neither it is shown by its name and its input.
    """

    verb: str = ""
    several: tuple[str, str] = ("called", "time")
    finds: str = "line"
    ends: str = ""
    about: call_subject.Subject | None = None
    """What it is about, where that is not its ``path``; empty for a call of which it says nothing."""


def _nothing(_given: Mapping[str, object]) -> None:
    """Whatever fits the schema makes sense."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: ``kind`` is that of its actions, ``effect`` the effect class of a call that stays inside the sandbox
    (recovery rules hang on it).
    """

    name: str
    kind: str
    effect: str
    description: str
    properties: Mapping[str, Mapping[str, object]]
    required: tuple[str, ...]
    writes: Writes = Writes.NOTHING
    words: CallWords = CallWords()
    problem: Callable[[Mapping[str, object]], str | None] = _nothing
    """What makes no sense in an input that fits the schema, in a sentence for the model; None when it does."""

    @property
    def runs(self) -> bool:
        """True for what runs programs, which may do anything that the sandbox allows."""
        return self.kind not in (FileAction.KIND, RecordAction.KIND, ANSWERED)

    def definition(self) -> dict[str, object]:
        """The tool as the Messages API wants it."""
        schema = {
            "type": "object",
            "properties": {**self.properties, "why": WHY},
            "required": list(self.required),
            "additionalProperties": False,
        }
        return {"name": self.name, "description": self.description, "input_schema": schema}

"""What shows that an agent goes in circles: the same call again and again, errors in a row, denials in a row, turns
without progress. Counted from records, data only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.domain.calls.call_states import CallEnd
from harness.events import message_parts
from harness.events import types as t
from harness.reports import call_words
from harness.tools import registry, summary

IDLE_POINTS = 3
"""Weight of a turn that only looks; running something is more, and a turn with a command weighs 1."""
LONGEST = 5
"""Calls of the longest circle that is seen."""
_KEPT = 40


@dataclass(slots=True)
class Circles:
    """The counters behind the breakers; ``idle`` ones count turns since the newest progress."""

    same_calls: int = 0
    last_hash: str = ""
    recent: list[str] = field(default_factory=list)
    """The newest calls, by what they ask for, the newest last."""
    last_tool: str = ""
    last_call: str = ""
    last_end: str = ""
    """The newest call in a line, and in another one what came of the newest that ended."""
    errors_in_row: int = 0
    denied_in_row: int = 0
    """Calls since the newest one that was not denied, by a person or by the policy."""
    denied_why: str = ""
    idle_turns: int = 0
    idle_points: int = 0
    claimed_turns: int = 0
    claimed_points: int = 0
    believing: bool = True
    outcomes: dict[str, int | None] = field(default_factory=dict)

    def rounds(self) -> tuple[int, int]:
        """(how often the same two to five calls were made in the same order, how many they are): of the shortest circle
        that the newest calls go in.
        """
        calls = self.recent
        found = [(_rounds(calls, length), length) for length in range(2, LONGEST + 1)]
        return max(found, key=lambda one: (one[0], -one[1]))

    def begin_anew(self) -> None:
        """Counted from here."""
        self.recent = []
        self.same_calls = 0
        self.errors_in_row = 0
        self.denied_in_row = 0
        self.progress()

    def asked(self, calls: Iterable[message_parts.Call]) -> None:
        """A reply ends with these calls."""
        runs = False
        for call in calls:
            self.same_calls = self.same_calls + 1 if call.input_hash == self.last_hash else 1
            self.last_hash = call.input_hash
            self.recent = [*self.recent, call.input_hash][-_KEPT:]
            self.last_tool = call.tool
            self.last_call = summary.what(call.tool, call.input)
            runs = runs or (call.tool in registry.TABLE and registry.runs(call.tool))
        self.idle_turns += 1
        self.idle_points += 1 if runs else IDLE_POINTS

    def started(self, body: t.ToolStarted) -> None:
        """What changed shows in the states before two calls, so the second one says it of the first."""
        if body.worked:
            self.progress()
        elif body.snapshot and self.claimed_turns:
            self.idle_turns += self.claimed_turns
            self.idle_points += self.claimed_points
            self.claimed_turns = 0
            self.claimed_points = 0
            self.believing = False

    def checked(self, command: str, exit_code: int | None) -> None:
        """A check ended: another result is progress."""
        if self.outcomes.get(command) != exit_code:
            self.outcomes[command] = exit_code
            self.progress()

    def ended(self, body: t.ToolEnded) -> None:
        """A call of the agent's own ended."""
        came = call_words.outcome(self.last_tool, None, body)
        self.last_end = ": ".join(filter(None, (came.result, *(bit.text for bit in came.lines[:1]))))
        self.errors_in_row = 0 if body.status == CallEnd.OK else self.errors_in_row + 1
        self.denied_in_row = self.denied_in_row + 1 if body.status == CallEnd.DENIED else 0
        self.denied_why = body.preview if body.status == CallEnd.DENIED else ""
        if body.files_changed:
            self._claim()

    def progress(self) -> None:
        """Something came of it."""
        self.idle_turns = 0
        self.idle_points = 0
        self.claimed_turns = 0
        self.claimed_points = 0
        self.believing = True

    def _claim(self) -> None:
        """A tool says that it changed a file: believed until a state says otherwise, and then no more until one says
        that something did.
        """
        if self.believing:
            self.claimed_turns += self.idle_turns
            self.claimed_points += self.idle_points
            self.idle_turns = 0
            self.idle_points = 0


def _rounds(calls: list[str], length: int) -> int:
    """How often the newest calls repeat those so many before them; 0 for one and the same call, again and again."""
    if len(set(calls[-length:])) < 2:
        return 0
    same = 0
    while same + length < len(calls) and calls[-1 - same] == calls[-1 - same - length]:
        same += 1
    return (same + length) // length

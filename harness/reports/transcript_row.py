"""What a row of a transcript is, and one row for checks that follow each other. Pure; all text is raw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from harness.reports.call_words import Bit
from harness.reports.describing.line import Tone
from harness.tools import call_subject

_NAMED = 5
"""Checks that are named below the row of many."""


class Kind(Enum):
    """What a row is."""

    PROSE = "prose"
    """What the agent said."""
    TOLD = "told"
    """What it was told: the goal, a person's message, the harness's."""
    CALL = "call"
    """One call, or consecutive ones that only read."""
    EVENT = "event"


class Stage(Enum):
    """Where a call stands, the most urgent first: a row of several stands where the first of them does."""

    DOUBT = "doubt"
    ASKED = "asked"
    RUNNING = "running"
    PROPOSED = "proposed"
    FAILED = "failed"
    STOPPED = "stopped"
    OK = "ok"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row. ``what`` is the call or the text, ``label`` who says it, ``result`` how it ended, ``more`` lines below.

    ``since`` is when it started while it runs, ``spool`` names its output so far, ``ms`` how long it took (-1: not
    said), ``records`` are all records that it stands for.
    """

    seq: int
    ts: str
    kind: Kind
    what: str
    label: str = ""
    tone: Tone = "info"
    stage: Stage = Stage.NONE
    result: str = ""
    added: int = 0
    removed: int = 0
    ms: int = -1
    since: str = ""
    spool: str = ""
    more: tuple[Bit, ...] = ()
    records: tuple[int, ...] = ()


FINE = frozenset((Stage.OK, Stage.PROPOSED, Stage.RUNNING))
_SAID = {
    Stage.OK: "passed",
    Stage.FAILED: "failed",
    Stage.STOPPED: "stopped",
    Stage.DOUBT: "in doubt",
    Stage.ASKED: "asks you",
    Stage.RUNNING: "runs",
    Stage.PROPOSED: "to run",
}


def checked(members: Sequence[Row]) -> Row:
    """One row for checks that follow each other, each given as the row that it would have alone.

    Those that do not simply pass are named below it.
    """
    if len(members) == 1:
        return members[0]
    counts = Counter(one.stage for one in members)
    stage = next(stage for stage in Stage if counts[stage])
    others = [one for one in members if one.stage not in FINE]
    named = [Bit("quiet", call_subject.line(f"{_SAID[one.stage]}: {_told(one)}")) for one in others[:_NAMED]]
    if len(others) > _NAMED:
        named.append(Bit("quiet", f"(+{len(others) - _NAMED} more)"))
    running = next((one for one in members if one.stage is Stage.RUNNING), None)
    return replace(
        members[0],
        what=f"{len(members)} criteria",
        stage=stage,
        result=", ".join(f"{counts[at]} {said}" for at, said in _SAID.items() if counts[at]),
        since=running.since if running is not None else "",
        spool=running.spool if running is not None else "",
        ms=sum(one.ms for one in members if one.ms > 0),
        more=tuple(named),
        records=tuple(seq for one in members for seq in one.records),
    )


def _told(one: Row) -> str:
    return f"{one.what} · {one.result}" if one.result else one.what

"""The calibration set: results that are known to be bad or good, and how a judge's verdicts on them compare.

Each file in ``calibration/`` is one result as a judge would be shown it: ``good``, for a bad one its ``flaw``, goal,
further ``criteria``, ``contract``, ``patch``, and ``[[checks]]`` (command, passed, outcome, output).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from harness.events.plan.evaluation_events import NONE, SATISFIED
from harness.judge.case import Case, Checked, Criterion

_CHANGED = re.compile(r"^diff --git a/(.+) b/.+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Known:
    """One result, and what is known of it."""

    name: str
    good: bool
    flaw: str
    case: Case


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict on a known result; ``why`` in the judge's words, or why there is none."""

    name: str
    good: bool
    verdict: str
    why: str = ""

    @property
    def right(self) -> bool:
        """A bad result is to be sent back or failed, a good one to satisfy; no verdict is never right."""
        return self.verdict != NONE and (self.verdict == SATISFIED) == self.good


def known() -> list[Known]:
    """The whole set, by name."""
    found = []
    for item in files("harness.judge").joinpath("calibration").iterdir():
        name, _, ending = item.name.rpartition(".")
        if ending == "toml":
            found.append(_known(name, tomllib.loads(item.read_text("utf-8"))))
    return sorted(found, key=lambda one: one.name)


def _known(name: str, data: dict[str, Any]) -> Known:
    further = (Criterion(f"F{i}", text) for i, text in enumerate(data.get("criteria", ()), 1))
    made = Case(
        goal=data["goal"],
        criteria=(Criterion("goal", "the goal, in the words of the person who gave it, is reached"), *further),
        checks=tuple(Checked(**check) for check in data["checks"]),
        contract=data.get("contract", ""),
        files=tuple(f"changed {path}" for path in _CHANGED.findall(data.get("patch", ""))),
        patch=data.get("patch", ""),
    )
    return Known(name, data["good"], data.get("flaw", ""), made)


def table(found: Iterable[Judged]) -> dict[str, dict[str, int]]:
    """How many bad and good results were called what."""
    made = {kind: {"satisfied": 0, "sent back": 0, "no verdict": 0} for kind in ("bad", "good")}
    for one in found:
        row = made["good" if one.good else "bad"]
        column = {SATISFIED: "satisfied", NONE: "no verdict"}.get(one.verdict, "sent back")
        row[column] += 1
    return made

"""The criteria of a plan, one by one, with what decides each. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from harness.plan.files.criteria import ANY_FORM, Criterion, Problem, parse
from harness.plan.files.formats import Plan

NONE = "it has no criterion at all"


@dataclass(frozen=True, slots=True)
class Line:
    """One criterion, where it stands (an entry's id, or a line's number), the heading above it, and what decides it."""

    where: str
    found: Criterion | Problem
    under: str = ""


def of_plan(plan: Plan) -> list[Line]:
    """Every criterion of a plan; an entry without one is a problem."""
    return [
        Line(entry.id, parse(text) if text else Problem(entry.title, NONE, ANY_FORM))
        for entry in plan.entries
        for text in entry.criteria or ("",)
    ]

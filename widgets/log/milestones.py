"""What a reader of a long log looks for, with a mark for each: in the transcript and among the raw events the same."""

from __future__ import annotations

MILESTONES = {
    "checkpoint": ("◉", "second"),
    "context": ("↻", "second"),
    "phase": ("≡", "heading"),
    "plan": ("≡", "heading"),
    "task": ("▸", "heading"),
    "replan": ("≡", "attention"),
    "gate": ("◇", "good"),
    "contract": ("§", "heading"),
    "judge": ("§", "second"),
    "job": ("»", "second"),
    "violation": ("!", "bad"),
}
"""By the kind of an event (`harness.reports.describe`): its mark of one cell, and the colour role of that unless the
event turned out well or badly.
"""

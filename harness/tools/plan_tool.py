"""The tool ``plan``: what the model is told of it, and which inputs make sense. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping

from harness.domain.text import fields

NAME = "plan"
SHOW = "show"
START = "start"
NOTE = "note"
BLOCKED = "blocked"
STEPS = "steps"
REPLAN = "replan"
ACTIONS = (SHOW, START, NOTE, BLOCKED, STEPS, REPLAN)
MAX_STEPS = 30
MAX_STEP = 300
MAX_WORDS = 1000

DESCRIPTION = (
    "Your course of work. show: the plan with the state of each entry, and your steps. start: you begin with an entry."
    " note: something to remember of an entry. blocked: an entry cannot be worked on, and why. steps: your steps for"
    " the current phase, fresh, all of them. replan: what you assumed proved wrong; say the reason, and the new steps."
    " Whether an entry passes is decided by the harness, never here; entries cannot be added, removed or reworded."
)
PROPERTIES: Mapping[str, Mapping[str, object]] = {
    "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
    "entry": {"type": "string", "description": "Id of the entry (start, note, blocked)."},
    "text": {"type": "string", "description": "The note; or the reason (blocked, replan)."},
    "steps": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "maxItems": MAX_STEPS,
        "description": "The steps of the current phase, in order (steps, replan).",
    },
}
REQUIRED = ("action",)
_NEEDS = {
    SHOW: (),
    START: ("entry",),
    NOTE: ("entry", "text"),
    BLOCKED: ("entry", "text"),
    STEPS: ("steps",),
    REPLAN: ("text", "steps"),
}


def problem(value: Mapping[str, object]) -> str | None:
    """What is wrong with an input whose fields have their types; None when it makes sense."""
    action = fields.text(value, "action")
    needs = _NEEDS[action]
    for name in needs:
        if not value.get(name):
            return f"plan: {action} needs {name}"
    for name in ("entry", "text", "steps"):
        if name in value and name not in needs:
            return f"plan: {action} takes no {name}"
    steps = fields.texts(value, "steps")
    if len(steps) > MAX_STEPS:
        return f"plan: at most {MAX_STEPS} steps; put several into one"
    for step in steps:
        if not step.strip() or len(step) > MAX_STEP or "\n" in step:
            return f"plan: a step is one line of at most {MAX_STEP} characters"
    if len(fields.text(value, "text", "")) > MAX_WORDS:
        return f"plan: text has at most {MAX_WORDS} characters"
    return None

"""What a request is made of: the names of its layers in the order in which the model reads them, and their tokens as
its reply measured them. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

INSTRUCTIONS = "instructions and tools"
GOAL = "goal and criteria"
MEMORY = "memory and rules"
HANDOFF = "hand-off"
TASK = "current task"
RECENT = "recent turns"
ORDER = (INSTRUCTIONS, GOAL, MEMORY, HANDOFF, TASK, RECENT)


def measured(sizes: Mapping[str, int], tokens: int) -> dict[str, int]:
    """``sizes`` (of any unit) as shares of ``tokens``, which a reply was billed for: they add up to it exactly."""
    whole = sum(sizes.values())
    if whole <= 0 or tokens <= 0:
        return {}
    made: dict[str, int] = {}
    seen = 0
    given = 0
    for name, size in sizes.items():
        seen += size
        upto = tokens * seen // whole
        made[name] = upto - given
        given = upto
    return made

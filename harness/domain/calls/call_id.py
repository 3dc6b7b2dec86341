"""How a call is named: ``c<seq>.<index>``, where ``seq`` is the head of the log that whoever proposed it saw, so that
names only grow. Pure, standard library only.
"""

from __future__ import annotations


def name_call(seq: int, index: int = 0) -> str:
    """The name of one of the calls that are proposed together on that head."""
    return f"c{seq}.{index}"


def together(call: str) -> str:
    """Equal for calls that were proposed together."""
    return call.partition(".")[0]


def proposed_on(call: str) -> int:
    """The head on which a call was proposed. Raises ValueError for what names no call."""
    return int(together(call).removeprefix("c"))

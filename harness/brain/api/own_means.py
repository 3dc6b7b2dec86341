"""What the endpoint itself may do with a context, where a model's profile asks for it: clear old tool results, compact
from some size on, and bring the vendor's own memory tool. Pure; the names are the vendor's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.events.messages_api import Block
from harness.tools import registry

_CLEARING_BETA = "context-management-2025-06-27"
_COMPACTION_BETA = "compact-2026-01-12"
_MEMORY: Block = {"type": "memory_20250818", "name": registry.MEMORY}
_KEPT_USES = 3
_BLOCK = re.compile(rb'"type": ?"compaction"')
"""Quotes within a text are escaped, so no text looks like it."""


@dataclass(frozen=True, slots=True)
class Own:
    """``clear_from`` and ``compact_from``: input tokens from which it clears and compacts, 0 = never; ``memory``: the
    vendor's tool stands in the place of ours.
    """

    clear_from: int = 0
    compact_from: int = 0
    memory: bool = False

    def compacts(self, tokens: int) -> bool:
        """True when a request of at most so many tokens may be read twice: once to compact it, once to answer it."""
        return 0 < self.compact_from <= tokens


def fields(own: Own, messages: bytes) -> tuple[dict[str, object], frozenset[str]]:
    """What a request with these encoded messages says of it, and the betas that it must name: also for a block that is
    sent back, whatever is wanted by now.
    """
    edits: list[dict[str, object]] = []
    betas: set[str] = set()
    if own.clear_from:
        edits.append(_clearing(own))
        betas.add(_CLEARING_BETA)
    if own.compact_from:
        edits.append({"type": "compact_20260112", "trigger": _tokens(own.compact_from)})
    if own.compact_from or _BLOCK.search(messages):
        betas.add(_COMPACTION_BETA)
    return ({"context_management": {"edits": edits}} if edits else {}), frozenset(betas)


def offered(own: Own, definitions: list[Block]) -> list[Block]:
    """The tools of a role with the vendor's memory in the place of ours; a role without memory gets neither."""
    if not own.memory:
        return definitions
    return [dict(_MEMORY) if tool["name"] == registry.MEMORY else tool for tool in definitions]


def _clearing(own: Own) -> dict[str, object]:
    """In steps that pay for the prompt cache that each breaks; what was read from memory stays."""
    edit: dict[str, object] = {
        "type": "clear_tool_uses_20250919",
        "trigger": _tokens(own.clear_from),
        "keep": {"type": "tool_uses", "value": _KEPT_USES},
        "clear_at_least": _tokens(own.clear_from // 4),
    }
    return edit | ({"exclude_tools": [registry.MEMORY]} if own.memory else {})


def _tokens(count: int) -> dict[str, object]:
    return {"type": "input_tokens", "value": count}

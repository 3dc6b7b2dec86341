"""Records of memory as one line each. Raw text: keys are the agent's."""

from __future__ import annotations

from collections.abc import Sequence

from harness.events.conversation.memory_events import NOW, MemoryChanged, MemoryShown, ShownMemory

_DID = {
    "created": "remembers",
    "modified": "remembers anew",
    "deleted": "forgets",
    "proposed": "wants remembered",
    "learned": "has made remembered, by your rule,",
}
_MOST = 6


def changed(b: MemoryChanged) -> str:
    """What a call did to memory."""
    lesson = f" (lesson {b.lesson} waits for you)" if b.op == "proposed" else ""
    return f"{b.call_id} {_DID.get(b.op, b.op)} {b.key} of the {b.scope}{lesson}"


def named(memories: Sequence[ShownMemory]) -> str:
    """These memories by key, place and version, the first ones."""
    names = ", ".join(f"{entry.key} ({entry.scope} v{entry.version})" for entry in memories[:_MOST])
    return names + (f" and {len(memories) - _MOST} more" if len(memories) > _MOST else "")


def shown(b: MemoryShown) -> str:
    """What requests show of memory from then on."""
    when = "requests show" if b.at == NOW else "the next new beginning of the context shows"
    count = "1 memory" if len(b.memories) == 1 else f"{len(b.memories)} memories"
    return f"{when} {count}: {named(b.memories)}" if b.memories else f"{when} no memory"

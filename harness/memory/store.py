"""The log of memories on disk."""

from __future__ import annotations

from harness.eventlog.side_log import Kind
from harness.memory.model import Memories
from harness.memory.records import Entry, decode

MEMORIES: Kind[Memories, Entry] = Kind(
    "memory", "a memory", Memories, Memories.apply, decode, lambda entry: str(entry.origin.actor)
)

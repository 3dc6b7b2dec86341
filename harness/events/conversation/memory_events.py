"""Events about what is remembered outside the context, and what of it a request shows."""

from __future__ import annotations

import msgspec

from harness.events.body import Body

NOW = "now"
RESET = "reset"


class ShownMemory(msgspec.Struct, frozen=True):
    """One version of one memory, by the hash of its text."""

    scope: str
    key: str
    version: int
    sha: str


class MemoryChanged(Body, frozen=True, kw_only=True):
    """A call of this session changed what is remembered. ``op``: created, modified, deleted, proposed (a lesson that
    waits), learned (a lesson that is remembered now).
    """

    TYPE = "memory.changed"
    call_id: str
    scope: str
    key: str
    op: str
    sha_before: str = ""
    sha_after: str = ""
    lesson: str = ""


class MemoryShown(Body, frozen=True, kw_only=True):
    """What requests show of memory: from the next one on (``at`` now), or from the next new beginning of the context
    (``at`` reset). The text is what they show, to the letter.
    """

    TYPE = "memory.shown"
    at: str
    text: str
    memories: list[ShownMemory]

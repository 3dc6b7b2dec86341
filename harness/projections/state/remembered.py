"""What a session's requests show of memory, as its log says. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.events.conversation.memory_events import NOW, MemoryShown, ShownMemory


@dataclass(slots=True)
class Remembered:
    """``shown`` is in every request now; ``newest`` was said last and may wait for a new beginning of the context."""

    shown: list[ShownMemory] = field(default_factory=list)
    newest: list[ShownMemory] = field(default_factory=list)

    def told(self, body: MemoryShown) -> None:
        """A record says what is shown from now on, or from the next beginning on."""
        self.newest = body.memories
        if body.at == NOW:
            self.shown = body.memories

    def began_anew(self) -> None:
        """The context begins anew: what waited is shown."""
        self.shown = self.newest

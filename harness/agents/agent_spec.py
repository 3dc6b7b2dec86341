"""What the supervisor tells the process of one agent about it."""

from __future__ import annotations

import msgspec

from harness.protocol.config.credential import Credential


class Spec(msgspec.Struct, frozen=True):
    """One agent of one session, as its fork server is told."""

    sid: str
    folder: str
    keeper_socket: str
    supervisor_socket: str
    gen: int
    secret: str
    credential: Credential
    model: str
    max_tokens: int = 8192
    context_tokens: int = 80_000
    """The size that its requests are to be kept within, as far as it makes them itself."""
    api_clearing: int = 0
    """Input tokens from which the endpoint itself is to clear old tool results; 0 = never."""
    api_compaction: int = 0
    """Those from which it is to summarise what came before; 0 = never."""
    api_memory: bool = False
    """Its own memory tool stands in the place of ours."""
    cache_hour: bool = False
    """Its prompt cache is to live an hour instead of five minutes."""
    endpoint: str = ""
    """The credential's short name: whose gate its requests pass."""
    limits: tuple[int, int, int] | None = None
    """What its endpoint said of the model, in tokens: the window and the longest reply, 0 = it does not tell; None:
    nobody asked.
    """
    deadlines: tuple[float, float, float] = (300.0, 300.0, 3600.0)

    def __repr__(self) -> str:
        return f"Spec({self.sid}, gen {self.gen})"

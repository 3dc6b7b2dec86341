"""One attempt at a request, as an agent asks the ledger for it before it is sent."""

from __future__ import annotations

import msgspec


class Attempt(msgspec.Struct, frozen=True):
    """The worst case that is to be reserved, in tokens; ``hour``: written to a cache for an hour."""

    request_id: str
    attempt: int
    model: str
    est_input: int
    max_tokens: int
    hour: bool = False

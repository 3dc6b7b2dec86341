"""The entries of a log that is no session's: frozen kinds by the name that a line gives. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from harness.events.types import Envelope

E = TypeVar("E")
_envelope = msgspec.json.Decoder(Envelope)


class Entries(Generic[E]):
    """Decodes the lines of one log; ``kinds`` are its entries by the type that stands in a line."""

    def __init__(self, kinds: Mapping[str, type[E]]) -> None:
        self._decoders = {name: msgspec.json.Decoder(kind) for name, kind in kinds.items()}

    def decode(self, line: bytes) -> E | None:
        """One line; None for a kind that a newer version wrote. Raises msgspec.DecodeError."""
        envelope = _envelope.decode(line)
        decoder = self._decoders.get(envelope.type)
        return decoder.decode(envelope.data) if decoder is not None else None

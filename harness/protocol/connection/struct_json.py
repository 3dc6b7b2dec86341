"""JSON that knows structs, and is fast: for processes that have msgspec loaded anyway."""

from __future__ import annotations

import msgspec

from harness.protocol.connection import frames

_decode = msgspec.json.Decoder(dict[str, object]).decode


class StructJson:
    """A `Codec`. Lone surrogates become ``?``, as everywhere in frames."""

    def __init__(self) -> None:
        self._write = msgspec.json.Encoder().encode

    def encode(self, message: object) -> bytes:
        try:
            return self._write(message)
        except UnicodeEncodeError:
            return frames.dump(msgspec.to_builtins(message, str_keys=True))

    def decode(self, body: bytes) -> dict[str, object]:
        """Raises Garbage."""
        try:
            return _decode(body)
        except (msgspec.DecodeError, RecursionError) as exc:
            raise frames.Garbage(f"frame is not a JSON object: {exc}") from exc


STRUCT_JSON = StructJson()

"""A deterministic token count: about one token for four bytes, never more than one for each byte of the request.

A client that reserves one token per byte therefore always reserves enough, as with a real tokenizer.
"""

from __future__ import annotations

import json

BYTES_PER_TOKEN = 4


def of_bytes(size: int) -> int:
    """Tokens of a text of ``size`` UTF-8 bytes."""
    return -(-size // BYTES_PER_TOKEN)


def of_text(text: str) -> int:
    return of_bytes(len(text.encode("utf-8", "replace")))


def encode(value: object) -> bytes:
    """Compact canonical JSON without ``cache_control`` members: what is counted and what the prompt cache hashes."""
    return json.dumps(_unmarked(value), ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "replace"
    )


def _unmarked(value: object) -> object:
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(v) for v in value]
    return value


def cut(text: str, limit: int) -> str:
    """The longest beginning of ``text`` that has at most ``limit`` tokens."""
    return text.encode("utf-8", "replace")[: max(limit, 0) * BYTES_PER_TOKEN].decode("utf-8", "ignore")

"""Prompt caching as the service bills it: a prefix of tools → system → messages is written at a breakpoint and read by
later requests.

Rules kept: at most four breakpoints; a longer time to live stands before a shorter one; a prefix below the model's
minimum is never cached; a breakpoint finds an entry at most 20 blocks back; entries belong to one key and one model; a
read refreshes the entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.simulator import tokens
from harness.simulator.catalog import Model, Tokens
from harness.simulator.errors import ApiError

MAX_BREAKPOINTS = 4
LOOK_BACK = 20
TTL_SECONDS = {"5m": 300, "1h": 3600}


@dataclass(frozen=True, slots=True)
class Block:
    """One unit of the prompt, in order; ``ttl`` is set at a breakpoint."""

    data: bytes
    ttl: str | None

    @property
    def tokens(self) -> int:
        return tokens.of_bytes(len(self.data))


@dataclass(frozen=True, slots=True)
class Entry:
    expires: float
    ttl: str


@dataclass(slots=True)
class PromptCache:
    """Live entries by (key, model, prefix hash)."""

    entries: dict[tuple[str, str, bytes], Entry] = field(default_factory=dict)

    def account(self, key: str, model: Model, blocks: list[Block], now: float) -> Tokens:
        """The prompt's tokens split into fresh, read and written; entries are written and refreshed.

        ``now`` in seconds.
        """
        if len(self.entries) > 4096:
            self.entries = {k: e for k, e in self.entries.items() if e.expires > now}
        sums, hashes = _prefixes(blocks)
        marks = [(i, b.ttl) for i, b in enumerate(blocks) if b.ttl is not None and sums[i] >= model.min_cache]
        total = sums[-1] if sums else 0
        if not marks:
            return Tokens(input=total)
        hit = -1
        for i, _ in reversed(marks):
            hit = next((j for j in range(i, max(i - LOOK_BACK, -1), -1) if self._live(key, model, hashes[j], now)), -1)
            if hit >= 0:
                break
        read = sums[hit] if hit >= 0 else 0
        written = {"5m": 0, "1h": 0}
        at = read
        for i, ttl in marks:
            if i > hit:
                written[ttl] += sums[i] - at
                at = sums[i]
            old = self.entries.get((key, model.id, hashes[i]))
            kept = old.ttl if old is not None and old.expires > now else ttl
            self.entries[key, model.id, hashes[i]] = Entry(now + TTL_SECONDS[kept], kept)
        if hit >= 0:
            old = self.entries[key, model.id, hashes[hit]]
            self.entries[key, model.id, hashes[hit]] = Entry(now + TTL_SECONDS[old.ttl], old.ttl)
        return Tokens(input=total - at, cache_read=read, write_5m=written["5m"], write_1h=written["1h"])

    def _live(self, key: str, model: Model, digest: bytes, now: float) -> bool:
        entry = self.entries.get((key, model.id, digest))
        return entry is not None and entry.expires > now


def _prefixes(blocks: list[Block]) -> tuple[list[int], list[bytes]]:
    total = 0
    running = hashlib.sha256()
    sums: list[int] = []
    hashes: list[bytes] = []
    for block in blocks:
        total += block.tokens
        running.update(len(block.data).to_bytes(8, "big") + block.data)
        sums.append(total)
        hashes.append(running.digest())
    return sums, hashes


def blocks_of(body: dict[str, object]) -> list[Block]:
    """The prompt of a validated request as blocks. Raises ApiError on too many or misordered breakpoints."""
    blocks = list(_blocks(body))
    automatic = _ttl(body)
    if automatic is not None and blocks and blocks[-1].ttl is None:
        blocks[-1] = Block(blocks[-1].data, automatic)
    marks = [b.ttl for b in blocks if b.ttl is not None]
    if len(marks) > MAX_BREAKPOINTS:
        raise ApiError(
            400, f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {len(marks)}."
        )
    if "5m" in marks and "1h" in marks[marks.index("5m") :]:
        raise ApiError(
            400,
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block; blocks are processed in"
            " the order tools, system, messages",
        )
    return blocks


def _blocks(body: dict[str, Any]) -> Iterator[Block]:
    for tool in body.get("tools") or []:
        yield _block(b"tool", tool)
    system = body.get("system") or []
    for part in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        yield _block(b"system", part)
    for message in body["messages"]:
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield _block(str(message["role"]).encode(), part)


def _block(kind: bytes, part: dict[str, Any]) -> Block:
    return Block(kind + b" " + tokens.encode(part), _ttl(part))


def _ttl(part: dict[str, object]) -> str | None:
    control = part.get("cache_control")
    if control is None:
        return None
    if (
        not isinstance(control, dict)
        or control.get("type") != "ephemeral"
        or control.get("ttl", "5m") not in TTL_SECONDS
    ):
        raise ApiError(400, "cache_control: must be {'type': 'ephemeral'} with a ttl of '5m' or '1h'")
    return str(control.get("ttl", "5m"))

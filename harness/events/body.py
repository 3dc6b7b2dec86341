"""What every event of a log is made of: the base of all bodies, and the values that several of them carry."""

from __future__ import annotations

import msgspec


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of all event bodies; each subclass carries its log name in ``TYPE``."""

    TYPE = ""


UNSETTLED = "reserved"
"""Price source of a reply whose cost nobody could settle when it was recorded: its worst case stands in the log, and
the ledger has what it was.
"""


class BlobRef(msgspec.Struct, frozen=True):
    """A payload stored beside the log: SHA-256 in hex, size in bytes, media type."""

    sha: str
    bytes: int
    media: str = "application/octet-stream"


class Caps(msgspec.Struct, frozen=True, omit_defaults=True):
    """Hard limits of one session; None = no limit of that kind."""

    usd_nano: int | None = None
    tokens: int | None = None
    wall_s: int | None = None
    tool_calls: int | None = None


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one model request; ``input`` excludes cache reads and writes."""

    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h + self.output

    @property
    def given(self) -> int:
        """The whole input: what was read anew, from the cache and into it."""
        return self.total - self.output

    @property
    def cache_hit(self) -> float | None:
        """The share of the input that came from the cache; None without any input."""
        return self.cache_read / self.given if self.given else None

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            self.input - other.input,
            self.cache_read - other.cache_read,
            self.cache_write_5m - other.cache_write_5m,
            self.cache_write_1h - other.cache_write_1h,
            self.output - other.output,
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write_5m + other.cache_write_5m,
            self.cache_write_1h + other.cache_write_1h,
            self.output + other.output,
        )


class By(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who did it: peer credentials of the socket and the kind of client (``tui``, ``cli``, ``policy`` …)."""

    client: str = ""
    uid: int = -1
    pid: int = -1

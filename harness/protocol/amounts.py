"""Money, stretches of time and sizes as a person writes them."""

from __future__ import annotations

import os
import re

NANO = 1_000_000_000
_DURATION = re.compile(r"(\d+)\s*([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(KiB|MiB|GiB|TiB|%)")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def usd_to_nano(text: str) -> int:
    """``"12.50"`` → nano-USD. Raises ValueError on anything that is no non-negative amount."""
    m = re.fullmatch(r"\$?(\d+)(?:\.(\d{1,9}))?", text.strip())
    if not m:
        raise ValueError(f"{text!r} is not an amount in USD such as 2 or 2.50")
    return int(m[1]) * NANO + int((m[2] or "0").ljust(9, "0"))


def seconds(text: str) -> int:
    """``"8h"``, ``"90m"``, ``"1d 2h"`` → seconds. Raises ValueError."""
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise ValueError(f"{text!r} is not a duration such as 90m, 8h or 2d")
    return sum(int(n) * _SECONDS[u] for n, u in parts)


def size(text: str) -> int:
    """``"512MiB"``, ``"1.5 GiB"`` → bytes; ``"75%"`` → of this machine's memory. Raises ValueError."""
    m = _SIZE.fullmatch(text.strip())
    if not m:
        raise ValueError(f"{text!r} is not a size such as 512MiB or 10GiB")
    if m[2] == "%":
        if float(m[1]) > 100:
            raise ValueError(f"{text!r} is more memory than there is")
        return int(float(m[1]) / 100 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return int(float(m[1]) * _UNITS[m[2]])

"""Money, durations and sizes as a person writes them, and as the types of settings name them."""

from __future__ import annotations

import os
import re
from functools import partial

from harness.domain.settings.reading import Form

NANO = 1_000_000_000
MOST = NANO * NANO
"""The largest cap: a thousand million USD, so many tokens or calls."""
MOST_S = 100 * 365 * 86400
"""The longest stretch of time, a hundred years."""
_USD = re.compile(r"\$?([0-9]+)(?:\.([0-9]{1,9}))?")
_DIGITS = len(str(MOST))
_DURATION = re.compile(r"([0-9]+)\s*([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MOST_BYTES = 1 << 60
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(KiB|MiB|GiB|TiB|%)")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def usd_to_nano(text: str) -> int:
    """``"12.50"`` → nano-USD. Raises ValueError on anything that is no non-negative amount, or one beyond ``MOST``."""
    m = _USD.fullmatch(text.strip())
    if not m:
        raise ValueError(f"{text!r} is not an amount in USD such as 2 or 2.50")
    nano = _bounded(m[1]) * NANO + int((m[2] or "0").ljust(9, "0"))
    if nano > MOST:
        raise ValueError(f"{text[:40]!r} is more than the most that can be counted, {MOST // NANO:,} USD")
    return nano


def usd_typed(nano: int) -> str:
    """The same amount as a person would type it, none of it lost."""
    whole, part = divmod(nano, NANO)
    return f"{whole}.{f'{part:09d}'.rstrip('0'):0<2}"


def _bounded(digits: str) -> int:
    """The number, or one that is too large for anything where it has too many digits."""
    return int(digits) if len(digits.lstrip("0")) <= _DIGITS else MOST


def counted(number: int) -> int:
    """The number, which is to be a cap. Raises ValueError on one that can be none."""
    if number < 0:
        raise ValueError(f"{number} is no cap; it is 0 or more")
    if number > MOST:
        raise ValueError(f"it is more than the most that can be counted, {MOST:,}")
    return number


def seconds(text: str) -> int:
    """``"8h"``, ``"90m"``, ``"1d 2h"`` → seconds. Raises ValueError, also beyond ``MOST_S``."""
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise ValueError(f"{text!r} is not a duration such as 90m, 8h or 2d")
    found = sum(_bounded(n) * _SECONDS[u] for n, u in parts)
    if found > MOST_S:
        raise ValueError(f"{text[:40]!r} is longer than a hundred years")
    return found


def size(text: str) -> int:
    """``"512MiB"``, ``"1.5 GiB"`` → bytes. Raises ValueError."""
    m = _SIZE.fullmatch(text.strip())
    if not m or m[2] == "%":
        raise ValueError(f"{text!r} is not a size such as 512MiB or 10GiB")
    return int(float(m[1]) * _UNITS[m[2]])


def memory(text: str) -> int:
    """A size, or ``"75%"`` of this machine's memory → bytes. Raises ValueError."""
    m = _SIZE.fullmatch(text.strip())
    if not m or m[2] != "%":
        return size(text)
    if float(m[1]) > 100:
        raise ValueError(f"{text!r} is more memory than there is")
    return int(float(m[1]) / 100 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _usd(written: str | float) -> int:
    return usd_to_nano(written if isinstance(written, str) else f"{written:.9f}".rstrip("0").rstrip("."))


def _shown(units: dict[str, int], amount: int) -> str:
    """In the largest unit of which it is a whole number."""
    if not amount:
        return "0"
    unit, one = max(((unit, one) for unit, one in units.items() if amount % one == 0), key=lambda unit: unit[1])
    return f"{amount // one}{unit}"


USD = Form(_usd, 'an amount in USD such as "2.50"', (str, int, float), lambda nano: usd_typed(nano).removesuffix(".00"))
DURATION = Form(seconds, 'a duration such as "90m"', shown=partial(_shown, _SECONDS))
SIZE = Form(size, 'a size such as "512MiB"', shown=partial(_shown, {" bytes": 1, **_UNITS}))
MEMORY = SIZE._replace(read=memory, words='a size such as "512MiB" or "75%" of the memory')

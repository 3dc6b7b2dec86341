"""Money and time in words, the same on the screen, the command line, the cards and in the log. Pure.

Money is integer nano-USD, timestamps are those of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from harness.domain.decision import Decision

NANO = 1_000_000_000
"""Nano-USD in a dollar."""
_LEAST = 0.0001
"""Dollars that are told apart."""
_WHO = {"tui": "you, on the screen", "cli": "you, on the command line"}
_DECIDED: dict[str, str] = {
    Decision.ALLOW: "allowed",
    Decision.ALLOW_EDITED: "allowed as edited",
    Decision.DENY: "denied",
    Decision.ANSWER: "answered",
    Decision.RAISE: "raised",
    Decision.FINISH: "told to finish up",
    Decision.RETRY: "to be tried again",
    Decision.FRESH: "to begin anew",
    Decision.BELIEVE: "to be believed",
    Decision.STOP: "stopped",
    Decision.DONE: "said to be done",
    Decision.FAILED: "said to have failed",
    Decision.UNKNOWN: "left open",
}
AGES_S = 5
"""Seconds between two steps of an age: all ages on all screens take them at the same moment."""
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"))


def who(client: str, nobody: str = "someone") -> str:
    """Who did something, by the kind of client that a record names; ``nobody`` when it names none."""
    return _WHO.get(client, client) or nobody


def decided(decision: str) -> str:
    """What was decided, as something that has been done."""
    return _DECIDED.get(decision, decision.replace("_", " "))


def by_whom(client: str) -> str:
    """`` by you, on the screen``, behind what was done; empty when the record names nobody."""
    return f" by {who(client)}" if client else ""


def usd(nano: int) -> str:
    """An amount to reckon with: cents from a dollar up, more digits below."""
    amount = nano / NANO
    if 0 < amount < _LEAST:
        return f"<${_LEAST}"
    return f"${amount:,.2f}" if abs(amount) >= 1 or nano == 0 else f"${amount:.4f}"


def money(nano: int) -> str:
    """An amount to look at, in a few cells: ``$0.004``, ``$0.41``, ``$12.30``, ``$1,240``."""
    amount = nano / NANO
    if 0 < amount < 0.01:
        return f"${amount:.3f}" if amount >= 0.001 else "<$0.001"
    if amount < 1000:
        return f"${amount:.2f}"
    return f"${amount:,.0f}"


def spend(nano: int, unknown_nano: int, shown: Callable[[int], str] = money) -> str:
    """What counts as spent: what was paid, and apart from it the ``unknown_nano`` of it that is the worst case of
    requests of unknown outcome.
    """
    paid = shown(nano - unknown_nano)
    return f"{paid} + {shown(unknown_nano)} reserved, outcome unknown" if unknown_nano else paid


def spend_cell(nano: int, unknown_nano: int) -> str:
    """As `spend` in a few cells: ``$0.41``, or ``$0.41+?`` when there is more of unknown outcome."""
    return money(nano - unknown_nano) + ("+?" if unknown_nano else "")


def cap_text(nano: int | None) -> str:
    """A cap as people write it: ``$5``, ``$2.50``, or ``no cap``."""
    if nano is None:
        return "no cap"
    return f"${nano // NANO:,}" if nano % NANO == 0 else money(nano)


def parse_ts(ts: str) -> float | None:
    """Seconds since the epoch of a log timestamp; None when it is none."""
    try:
        moment = datetime.fromisoformat(ts)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def local(ts: str, form: str = "%Y-%m-%d %H:%M") -> str:
    """A log timestamp by the clock of whoever reads it, as every line for a person has it; what is none stays as it
    is, untrusted.
    """
    try:
        return datetime.fromisoformat(ts).astimezone().strftime(form)
    except (ValueError, OverflowError):
        return ts


def zoned(ts: str) -> str:
    """The same with the name of the zone, which the first line of a page of times has."""
    return local(ts, "%Y-%m-%d %H:%M %Z")


def instant(text: str) -> float | None:
    """Seconds since the epoch of a time that names its zone (RFC 3339); None for anything else."""
    try:
        made = datetime.fromisoformat(text)
        return made.timestamp() if made.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def span(seconds: float) -> str:
    """A stretch of time in at most four cells: ``5s``, ``12m``, ``3h``, ``9d``; never negative.

    Seconds come in steps of `AGES_S`, so that a screen full of them is not painted anew every second.
    """
    whole = max(0, int(seconds))
    for size, unit in _UNITS:
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole // AGES_S * AGES_S}s"


def time_text(seconds: int) -> str:
    """A stretch of time whole, as an amount of it is typed: ``8h``, ``34m 10s``, ``0s``."""
    whole = max(0, seconds)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    return " ".join(f"{count:,}{unit}" for count, unit in parts if count) or "0s"


def clock(seconds: float) -> str:
    """A stretch of time as a clock shows it: ``0:41``, ``12:03``, ``1:02:03``; never negative."""
    whole = max(0, int(seconds))
    minutes = f"{whole // 60 % 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{minutes:>05}" if whole >= 3600 else minutes


def age(ts: str, now: float) -> str:
    """How long ago a timestamp was at the last step of all ages, as `span`; empty when it is none."""
    then = parse_ts(ts)
    return "" if then is None else span(now // AGES_S * AGES_S - then)


def due(ts: str, now: float) -> str:
    """In how long a timestamp comes: ``now``, ``in 40s``, ``in 3m``; empty when it is none."""
    then = parse_ts(ts)
    if then is None:
        return ""
    seconds = round(then - now)
    if seconds <= 0:
        return "now"
    return f"in {seconds}s" if seconds < 100 else f"in {-(-seconds // 60)}m"


def stretch(seconds: float) -> str:
    """A stretch of time in two units at most: ``40s``, ``5m 10s``, ``2h 10m``, ``3d 4h``; never negative."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for size, unit in (*_UNITS, (1, "s")):
        if (count := left // size) and len(parts) < 2:
            parts.append(f"{count}{unit}")
        elif parts:
            break
        left %= size
    return " ".join(parts) or "0s"


def line(text: str, most: int = 240) -> str:
    """Any text as one line of bounded length: what is quoted cannot pass for a line of ours."""
    flat = " ".join(text[: 4 * most].split())
    return flat if len(flat) <= most else f"{flat[: most - 2]} …"


def repository(place: str) -> str:
    """What a repository is called, by its folder or the git folder in it; the place itself when that has no name."""
    parts = [part for part in place.split("/") if part and part != ".git"]
    return parts[-1].removesuffix(".git") if parts else place


def counted(n: int, noun: str, many: str = "") -> str:
    """``1 commit``, ``2 commits``; ``many``: the noun of several, where it is not made with an s."""
    return f"{n:,} {noun if n == 1 else many or f'{noun}s'}"


def whole_output(call: str, size: int) -> str:
    """How an agent reads the whole of an output of which it was shown a part."""
    return f"[{size} bytes in all; read_output with call {call} shows them]"

"""When a person is called who does not watch: which of the things that wait are named, and how loudly. Pure.

One thing is named once; only what is risky is named again while it waits, each time after twice as long. A notice says
whose it is and of what kind, never what an agent wrote, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harness.domain import problems
from harness.domain.calls.approval_kind import Request

RISKY = frozenset(("high", "critical"))
_MOST_DOUBLINGS = 5
_LINES = 5


class Want(msgspec.Struct, frozen=True):
    """Something that waits for a person. ``ident`` is its item of the queue (`needs`), ``name`` is fit to be shown."""

    ident: str
    name: str
    kind: str
    risk: str = "low"
    put_off: bool = False


class Told(msgspec.Struct, frozen=True):
    """What is remembered of an item; times in seconds since the epoch. ``times``: how often it was named, or seen on a
    screen that somebody watched.
    """

    since: float
    seen: float
    times: int = 0
    last: float = 0.0


class Memory(msgspec.Struct, frozen=True):
    """All that is remembered, by item; ``spoke`` is when a notice was last given."""

    items: dict[str, Told] = {}
    spoke: float = 0.0


class Pacing(msgspec.Struct, frozen=True):
    """Seconds: how long something waits before it is named, how long it is quiet between two notices, and after how
    long something risky is named again (None = never).
    """

    dwell_s: float
    cool_down_s: float
    again_s: float | None


class Notice(msgspec.Struct, frozen=True):
    """What is said at once. ``urgent``: something risky is among it; ``again``: it was all said before."""

    items: tuple[Want, ...]
    urgent: bool
    again: bool


def decide(
    memory: Memory, wants: Iterable[Want], now: float, watched: bool, pacing: Pacing
) -> tuple[Memory, Notice | None]:
    """What to say now, if anything, and what to remember. While somebody watches nothing is said, and what is there
    long enough counts as seen.
    """
    present = {want.ident: want for want in wants if not want.put_off}
    known = {ident: _not_after(told, now) for ident, told in memory.items.items()}
    spoke = min(memory.spoke, now)
    items = {ident: told for ident, told in known.items() if told.times and now - told.seen < pacing.cool_down_s}
    items |= {ident: _met(known.get(ident), now) for ident in present}
    due = [want for ident, want in present.items() if _due(want, items[ident], now, pacing)]
    if watched:
        for ident in present:
            items[ident] = _seen(items[ident], now, pacing)
        return Memory(items, spoke), None
    if not due or (spoke and now - spoke < pacing.cool_down_s):
        return Memory(items, spoke), None
    urgent = any(want.risk in RISKY for want in due)
    notice = Notice(tuple(due), urgent, all(items[want.ident].times for want in due))
    for want in due:
        told = items[want.ident]
        items[want.ident] = Told(told.since, now, told.times + 1, now)
    return Memory(items, now), notice


def _not_after(told: Told, now: float) -> Told:
    """A clock that was set back must not silence anything until it has caught up."""
    return Told(min(told.since, now), min(told.seen, now), told.times, min(told.last, now))


def _met(told: Told | None, now: float) -> Told:
    """What was told and comes back within the cool-down is the same thing still."""
    return Told(now, now) if told is None else Told(told.since, now, told.times, told.last)


def _seen(told: Told, now: float, pacing: Pacing) -> Told:
    if not told.times and now - told.since < pacing.dwell_s:
        return told
    return Told(told.since, now, max(told.times, 1), now)


def _due(want: Want, told: Told, now: float, pacing: Pacing) -> bool:
    if not told.times:
        return now - told.since >= pacing.dwell_s
    if want.risk not in RISKY or not pacing.again_s:
        return False
    return now - told.last >= pacing.again_s * (1 << min(told.times - 1, _MOST_DOUBLINGS))


def title(notice: Notice) -> str:
    """The first line of a notice: how much waits."""
    count = len(notice.items)
    still = "still " if notice.again else ""
    return f"Watchfloor: {count} {'thing' if count == 1 else 'things'} {still}{'needs' if count == 1 else 'need'} you"


def lines(notice: Notice) -> list[str]:
    """Whose it is and of what kind: what is risky first, at most five lines and one that counts the rest."""
    ranked = sorted(notice.items, key=lambda want: want.risk not in RISKY)
    told = [_line(want) for want in ranked[:_LINES]]
    rest = len(ranked) - _LINES
    return [*told, f"and {rest} more"] if rest > 0 else told


def _line(want: Want) -> str:
    risk = f" ({want.risk} risk)" if want.risk in RISKY else ""
    return f"{want.name}: {KINDS.get(want.kind, 'wants a look')}{risk}"


KINDS: dict[str, str] = {
    **problems.REQUESTS,
    Request.TOOL: "asks to do something",
    Request.QUESTION: "asks you something",
    problems.HELD: "stands still or failed",
    problems.RINGS: "goes on, and wants a look",
}
"""What of an item's kind is said."""

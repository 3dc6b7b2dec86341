"""A stretch of time as a row of cells: what a session did in each, and the clock above them. Pure."""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness.domain.state_span import ENDED, OFF, Stretch
from widgets.base import cells

SPANS = (300, 900, 3600, 6 * 3600, 86400, 7 * 86400)
"""Seconds that the whole row can stand for."""
_NAMES = {300: "5m", 900: "15m", 3600: "1h", 6 * 3600: "6h", 86400: "24h", 7 * 86400: "7d"}
_SIGNS = {"running": "━", OFF: "·"}
_STEPS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, 86400)
"""Seconds between two moments that a clock may name: all of them are round."""
_LABEL = 8
"""Cells that a label takes at least, the blanks behind it included."""
Run = tuple[str, str]
"""(cells, colour role)."""


def named(span: int) -> str:
    """A span as people say it."""
    return _NAMES.get(span, f"{span}s")


def fitting(seconds: float) -> int:
    """The shortest span that holds so much time."""
    return next((span for span in SPANS if span >= seconds), SPANS[-1])


def sign(state: str) -> str:
    """The cell of a state."""
    return _SIGNS.get(state) or cells.mark(state)


def legend() -> list[Run]:
    """What the cells mean."""
    told = {"running": "ran", "waiting": "waited", "parked": "stood", "failed": "failed", "done": "done"}
    return [(f"{sign(state)} {words}  ", cells.role(state)) for state, words in told.items()]


def runs(stretches: Sequence[Stretch], now: float, span: int, width: int) -> list[Run]:
    """What it did in each of ``width`` cells, the last of which ends now; neighbours that look alike are one run.

    A cell shows what took most of its time; an end stands where it came, and nothing behind it.
    """
    made: list[Run] = []
    begin = now - span
    at = 0
    for cell in range(width):
        since = begin + span * cell / width
        until = begin + span * (cell + 1) / width
        while at + 1 < len(stretches) and stretches[at + 1].since <= since:
            at += 1
        state = _most(stretches, at, since, until, last=cell == width - 1)
        text, role = (sign(state), cells.role(state)) if state else (" ", "quiet")
        if state == OFF:
            role = "quiet"
        if made and made[-1][1] == role:
            made[-1] = made[-1][0] + text, role
        else:
            made.append((text, role))
    return made


def _most(stretches: Sequence[Stretch], at: int, since: float, until: float, *, last: bool) -> str:
    """The state of most of this time, looked for from stretch ``at`` on; empty before the first, and behind an end."""
    spent: dict[str, float] = {}
    for here in range(at, len(stretches)):
        stretch = stretches[here]
        following = stretches[here + 1] if here + 1 < len(stretches) else None
        if stretch.since >= until and not last:
            break
        if following is not None and following.state == ENDED and since <= stretch.since:
            return stretch.state
        end = following.since if following is not None else until
        lasted = min(end, until) - max(stretch.since, since)
        if lasted >= 0:
            spent[stretch.state] = spent.get(stretch.state, 0.0) + lasted
    most = max(spent, key=lambda state: spent[state], default="")
    return "" if most == ENDED else most


def scale(now: float, span: int, width: int) -> str:
    """The clock above the cells, in local time: each label begins at its moment, and is a round one."""
    form = "%a %d" if span > 2 * 86400 else "%H:%M"
    begin = now - span
    step = next((step for step in _STEPS if step * width >= span * _LABEL), _STEPS[-1])
    ahead = time.localtime(now).tm_gmtoff
    moment = ((begin + ahead) // step + 1) * step - ahead
    line = ""
    while moment <= now:
        label = "╵" + time.strftime(form, time.localtime(moment))
        cell = int((moment - begin) / span * width)
        if (not line or cell > len(line)) and cell + len(label) <= width:
            line = f"{line:<{cell}}{label}"
        moment += step
    return f"{line:<{width}}"

"""One line for each record of: caps, allowances and breakers."""

from __future__ import annotations

from harness.domain.cap import OF_SESSION, amount_of, named
from harness.domain.text.formatting import usd
from harness.domain.text.line import first
from harness.events import types as t
from harness.reports.describing.line import Describers, Line

DESCRIBERS = Describers()
_on = DESCRIBERS.on


@_on(t.BudgetReached)
def _budget(b: t.BudgetReached) -> Line:
    need = f", the next step needs {amount_of(b.cap, b.need)}" if b.need else ""
    return Line("cap", f"{named(b.cap)}: {amount_of(b.cap, b.used)} of {amount_of(b.cap, b.limit)} used{need}", "warn")


@_on(t.CapsRaised)
def _raised(b: t.CapsRaised) -> Line:
    return Line(
        "caps",
        f"the cap on {named(b.cap)} is {amount_of(b.cap, b.limit)} now" if b.cap else f"now {caps_words(b.caps)}",
        "info",
    )


@_on(t.ModelSettled)
def _settled(b: t.ModelSettled) -> Line:
    whose = f"the {b.purpose}'s reply" if b.purpose else "the reply"
    return Line(
        "settled", f"{whose} cost {usd(b.cost_nano)}; at most {usd(b.recorded_nano)} was known when it came", "dim"
    )


@_on(t.FinishUp)
def _finish(b: t.FinishUp) -> Line:
    return Line("finish", f"one last reply for at most {usd(b.allowance_nano)}", "info")


@_on(t.BillsBelieved)
def _believed(b: t.BillsBelieved) -> Line:
    return Line("settled", "what its endpoint reports is taken as far as it can be, and nobody is asked again", "info")


@_on(t.BreakerOpened)
def _breaker(b: t.BreakerOpened) -> Line:
    times = f"{b.kind.replace('_', ' ')} {b.count} times"
    return Line("breaker", f"{times}: {first(b.detail)}" if b.detail else times, "bad")


def caps_words(caps: t.Caps) -> str:
    """All caps that are set, in one line."""
    held = ((cap, getattr(caps, cap.field)) for cap in OF_SESSION)
    return ", ".join(cap.words(value) for cap, value in held if value is not None) or "none"

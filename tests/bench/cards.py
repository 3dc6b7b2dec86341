"""How long the cards of requests of each kind are, in a real fleet."""

from __future__ import annotations

from tests import cardcases
from tests.bench.table import Figure, bench
from tests.fleetlib import fleet


@bench("cards")
def cards() -> list[Figure]:
    with fleet() as f:
        return [_figure(*one) for one in cardcases.measured(f)]


def _figure(name: str, case: cardcases.CardCase, view: cardcases.ApprovalView) -> Figure:
    """The rows above the rule, and those of the whole card, at each width."""
    found = [cardcases.length(view, width) for width in cardcases.WIDTHS]
    above = [float(one.above) for one in found]
    bound = cardcases.CRITICAL if view.risk == "critical" else cardcases.BOUND
    widths = " and ".join(map(str, cardcases.WIDTHS))
    whole = ", ".join(f"{one.needed} to be seen and {one.whole} in all" for one in found)
    reach = "to be read whole" if case.whole else f"≤ {bound} rows"
    return Figure(
        f"card of {name}",
        "rows",
        above,
        reach,
        None if case.whole else max(above) <= bound,
        note=f"at {widths} columns; {whole}",
    )

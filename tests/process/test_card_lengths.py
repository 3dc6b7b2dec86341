"""Cards of a real fleet, one of each kind of request: what has to be read first fits on a screen."""

from __future__ import annotations

import pytest

from tests import cardcases
from tests.fleetlib import fleet

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(300)]


def test_what_decides_stands_in_twenty_rows() -> None:
    with fleet() as f:
        long = []
        for name, case, view in cardcases.measured(f):
            above = {width: cardcases.length(view, width).above for width in cardcases.WIDTHS}
            bound = cardcases.CRITICAL if view.risk == "critical" else cardcases.BOUND
            if not case.whole and max(above.values()) > bound:
                long.append((name, above))
        assert long == []
        assert f.violations() == []

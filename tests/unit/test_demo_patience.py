"""A demo looks on for as long as something happens, and gives up where nothing does."""

from __future__ import annotations

import pytest

from app.demo.fleet import DemoError
from app.demo.stage import QUIET_S, Patience
from harness.views.session_views import SessionRow


def row(sid: str, seq: int) -> SessionRow:
    return SessionRow(sid=sid, name=f"name-{sid}", state="running", group="running", detail="asking", since="", seq=seq)


def test_it_goes_on_however_long_it_takes_and_ends_when_all_stand_still() -> None:
    now = 0.0
    patience = Patience(lambda: now)
    for seq in range(20):
        now += QUIET_S
        patience.see({"a": row("a", 5), "b": row("b", seq)})
    now += QUIET_S
    patience.see({"b": row("b", 19)})  # that one of them is over is news too
    now += QUIET_S
    patience.see({"b": row("b", 19)})
    now += 1
    with pytest.raises(DemoError, match=r"nothing has happened for 120 s: name-b is running \(asking\)"):
        patience.see({"b": row("b", 19)})

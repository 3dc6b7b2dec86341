"""The list paints again what looks different, and nothing that it shows is missed."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from harness.events.views import SessionRow
from tests.tui.app_pilot import shown
from tests.tui.app_world import World
from widgets.session_list import SessionList

OTHER: dict[str, object] = {
    "state": "failed",
    "group": "Errors",
    "cap_nano": 7,
    "spent_nano": 6,
    "checks_total": 3,
    "plan_total": 4,
    "no_criterion": True,
    "verified": True,
    "asks": "question",
    "next": "goes on by itself",
    "detail": "something else",
    "name": "another",
}
"""Values that show, for fields of a row."""


def changed(row: SessionRow, field: str) -> SessionRow:
    """The row with another value in this field."""
    value = getattr(row, field)
    other: object = OTHER.get(field)
    if other is None:
        match value:
            case bool():
                other = not value
            case int():
                other = value + 1
            case str():
                other = value + "x"
            case _:
                return row
    return msgspec.structs.replace(row, **{field: other})


@pytest.mark.parametrize("sessions", [2, 30], ids=["two lines each", "one line each"])
async def test_a_row_that_looks_different_is_painted_again(
    tmp_path: Path, sessions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scene(world: World) -> None:
        for n in range(sessions):
            world.add(f"job-{n:02d}")

    async with shown(tmp_path, scene) as s:
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now)  # or the clocks of the rows move by themselves
        shown_list = s.app.screen.query_one(SessionList)
        rows = list(shown_list.rows)
        shows: set[str] = set()
        for base in (rows[0], msgspec.structs.replace(rows[0], state="done", group="Done", checks_total=0)):
            shown_list.set_rows([base, *rows[1:]])
            await s.pilot.pause()
            before = s.grid
            for field in SessionRow.__struct_fields__:
                if field in ("sid", "since", "created"):  # its identity, its place, and its age, which moves by itself
                    continue
                shown_list.set_rows([changed(base, field), *rows[1:]])
                await s.pilot.pause()
                after = s.grid
                shown_list.refresh()
                await s.pilot.pause()
                assert after == s.grid, field
                if after != before:
                    shows.add(field)
                shown_list.set_rows([base, *rows[1:]])
                await s.pilot.pause()
        assert {"name", "state", "asks", "verified"} <= shows

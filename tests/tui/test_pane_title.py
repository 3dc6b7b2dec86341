"""The title of a pane: a plan has its figures and its meter there on a small screen too."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.events import types as t
from harness.views.session_views import SessionRow
from tests.tui.app_pilot import shown
from tests.tui.app_world import World, work
from widgets.base import cells
from widgets.panes import pane_title
from widgets.panes.pane_wall import PaneWall

ENTRIES = [t.PlanEntry(f"US-{n}", f"Entry {n}", ["true"]) for n in range(42)]
PASSED = [t.PlanFlipped(entry=f"US-{n}", passes=True, why="it passes", calls=[]) for n in range(17)]


@pytest.mark.parametrize("name", ["almanac", "refactor-billing", "a-name-that-is-longer-than-titles-are"])
@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40)])
async def test_a_plan_has_its_meter_in_the_title(tmp_path: Path, size: tuple[int, int], name: str) -> None:
    def scene(world: World) -> None:
        world.add(name, t.PlanLoaded(path="prd.json", form="tasks", entries=ENTRIES), *PASSED, *work(0))

    async with shown(tmp_path, scene, size=size) as s:
        await s.see("17/42", "thinking")
        wall = s.app.screen.query_one(PaneWall)
        title = s.grid[wall.region.y][wall.region.x :]
        assert "17/42 ━" in title, title
        assert "$0.04" in title
        assert name[:8] in title
        assert "running" in title or len(name) > len("almanac")
        assert "$0.04/$2" in title or size[0] < 120


@pytest.mark.parametrize("state", ["failed", "waiting"])
def test_what_somebody_has_to_act_on_keeps_its_word_and_a_session_without_a_plan_its_cap(state: str) -> None:
    row = t_row(state, total=42)
    assert pane_title.said(row, 40, held="").state == f" {state} "
    plain = t_row("running", total=0)
    assert pane_title.said(plain, 30, held=pane_title.ZOOMED) == pane_title.said(
        plain, 200, held=pane_title.ZOOMED
    )._replace(name=cells.safe(plain.name, 8))


def t_row(state: str, total: int) -> SessionRow:
    return SessionRow(
        "s", "refactor-billing", state, "running", "d", "", plan_passed=0, plan_total=total, cap_nano=2_000_000_000
    )

"""The fleet's table on the screen: what it shows at every size, its keys, and what is done to many sessions at once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.screens.bulk import BulkDialog
from app.screens.fleet import FleetScreen
from app.screens.session import SessionScreen
from harness.domain.calls.approval_kind import Request
from harness.events import types as t
from harness.views.session_views import SessionRow
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import SCENES, World, crowd
from widgets.fleet import fleet_columns
from widgets.fleet.fleet_columns import Column
from widgets.fleet.fleet_table import FleetTable
from widgets.panes.pane_wall import PaneWall
from widgets.session.session_list import SessionList


def fleet(s: Shown) -> FleetScreen:
    assert isinstance(s.app.screen, FleetScreen)
    return s.app.screen


def three(world: World) -> None:
    world.add("alpha", repo="/srv/core")
    world.log(world.add("beta", repo="/srv/shop"), t.SessionEnded(outcome="done", verified=True))
    world.log(world.add("gamma", repo="/srv/shop"), t.SessionDesired(state="paused"))


def names(s: Shown) -> list[str]:
    rows = s.app.snapshot.rows
    return [rows[sid].name for sid in fleet(s).table.shown]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scene", ["crowd50", "hostile"])
async def test_every_size_shows_the_table(tmp_path: Path, scene: str, size: tuple[int, int]) -> None:
    async with shown(tmp_path, SCENES[scene], size=size) as s:
        await s.press("4")
        await s.see("sort:state↑", "NAME", "DOING", "AGE", "? help", "sessions")
        assert len(s.grid) == size[1]
        assert all(len(line) <= size[0] for line in s.grid)
        assert s.app.no_control.hits == 0
        assert "\x1b" not in s.text
        if size[0] >= 80:
            await s.until("who needs the person is named, whatever else is said", lambda: " need you" in s.grid[-2])
        titles = s.grid[1]
        caps = size[0] >= 120
        assert ("$/CAP" in titles, " SPENT" in titles) == (caps, not caps), "a title says what stands below it"
        assert ("PLAN" in titles) == (size[0] >= 80)
        assert ("REPO" in titles and "$/h" in titles and "CHK" in titles) == (size[0] >= 120)
        assert s.grid[2].startswith("▌ "), "the first session is selected"
        await s.press("end")
        await s.until("the last one in sight", lambda: any(line.startswith("▌") for line in s.grid[2:-2]))
        assert s.grid[1] == titles, "the titles stay in sight"


async def test_sorting_keeps_the_selection_on_its_session(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        await s.press("4", "j", "j")
        chosen = fleet(s).table.selected
        await s.press("right")
        await s.see("NAME↑")
        assert names(s) == sorted(names(s), key=str.casefold)
        await s.press("o")
        await s.see("NAME↓", "sort:name↓")
        assert names(s) == sorted(names(s), key=str.casefold, reverse=True)
        await s.press("left", "left")
        await s.see("sort:age↑")
        title = s.grid[1].index("$/CAP")
        await s.pilot.click(FleetTable, offset=(title, 0))
        await s.see("$/CAP↓")
        await s.pilot.click(FleetTable, offset=(title, 0))
        await s.see("$/CAP↑")
        s.world.push_rows(s.world.add("newcomer"))
        await s.see("newcomer")
        assert fleet(s).table.selected == chosen
        assert next(line for line in s.grid if line.startswith("▌")).count(s.app.snapshot.rows[chosen].name)


async def test_a_table_that_lost_its_last_session_does_not_blame_the_filter(tmp_path: Path) -> None:
    async with shown(tmp_path, lambda world: world.add("alone")) as s:
        await s.press("4", "slash", *"zzz", "enter")
        await s.see("No session fits the filter")
        s.world.push_rows(gone=list(s.world.sessions))
        await s.see("No sessions")


async def test_what_was_said_on_the_way_does_not_cover_the_next_screen(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await s.press("4", "plus")
        await s.see(fleet(s).why_not("table.raise"))
        s.app.tell("it failed", bad=True)
        said = fleet(s).why_not("table.raise")
        await s.see("it failed")
        await s.press("3")
        await s.see("of cap", "it failed")
        assert said not in s.text


async def test_a_filter_is_typed_corrected_left_and_never_takes_the_screen_along(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await s.press("4", "slash", *"repo:shop")
        await s.see("/repo:shop", "2 of 3")
        assert names(s) == ["beta", "gamma"] or names(s) == ["gamma", "beta"]
        await s.press("space", "quotation_mark", *"shop", "quotation_mark", "colon")
        await s.see("shop: is nothing to filter by")
        assert len(names(s)) == 2, "a wrong filter leaves the table as it was"
        await s.press("enter")
        assert s.app.focused is not fleet(s).table, "a wrong filter is not left standing"
        await s.press(*(["backspace"] * 8), "enter")
        await s.see("/repo:shop", "2 of 3")
        assert s.app.focused is fleet(s).table
        assert ("table.unfilter", "esc", "show all") in s.help
        assert all(action != "go.back" for action, _, _ in s.help)
        await s.press("escape")
        await s.until("all are shown", lambda: len(names(s)) == 3)
        assert isinstance(s.app.screen, FleetScreen)
        await s.press("slash", *"nobody")
        await s.see("0 of 3")
        await s.press("escape", "escape")
        await s.until("back on the floor", lambda: len(s.app.screen_stack) == 1)


async def test_groups_have_titles_with_counts(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await s.press("4", "b")
        await s.see("RUNNING 2", "TO REVIEW 1", "group:state")
        await s.press("b")
        await s.see("core 1", "shop 2", "group:repo")
        await s.press("home")
        assert "core 1" in s.grid[2], "the title comes into sight with the first session"
        await s.press("b", "enter")
        await s.until("the session", lambda: isinstance(s.app.screen, SessionScreen))


async def test_many_are_stopped_after_one_question_that_lists_them(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await s.press("4", "asterisk")
        await s.see("3 marked")
        await s.press("s")
        await s.see("Stop 2 sessions", "will stop", "alpha · core", "gamma · shop", "left alone", "beta has ended")
        await s.press("s", "enter", "y")
        assert not s.world.of("desire"), "no bare letter stops anything"
        await s.press("escape")
        await s.until("the table", lambda: isinstance(s.app.screen, FleetScreen))
        await s.press("s", "ctrl+y")
        await s.until("both are asked for", lambda: len(s.world.of("desire")) == 2)
        await s.see("2 sessions stopping")
        assert {(c["state"], c["reason"]) for c in s.world.of("desire")} == {("stopped", "stopped by you")}
        await s.press("asterisk")
        await s.until("no mark", lambda: not fleet(s).table.marked)


async def test_a_mark_stays_on_its_session_and_what_is_hidden_is_named(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await s.press("4", "right")
        await s.press("home", "space")
        await s.see("1 marked")
        await s.press("slash", *"shop", "enter")
        await s.see("1 marked (1 not shown)")
        await s.press("p")
        await s.see("Pause 1 session", "alpha · core", "marked, not shown")
        await s.press("ctrl+y")
        await s.until("it is paused", lambda: s.world.of("desire"))
        assert s.world.of("desire")[0]["state"] == "paused"
        sid = next(iter(fleet(s).table.marked))
        s.world.push_rows(gone=[sid])
        await s.until("its mark goes with it", lambda: not fleet(s).table.marked)


async def test_the_table_is_found_as_it_was_left(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await s.press("4", "right", "b", "down", "space")
        await s.see("1 marked")
        await s.press("slash", *"shop", "enter", "end")
        await s.see("1 marked", "sort:name", "group:state", "2 of 3")
        before = (fleet(s).table.view, fleet(s).table.marked, fleet(s).table.selected)
        await s.press("2", "1", "4")
        await s.see("1 marked", "/shop", "sort:name", "group:state", "2 of 3")
        assert (fleet(s).table.view, fleet(s).table.marked, fleet(s).table.selected) == before
        await s.press("escape")
        await s.see("3 sessions")
        gone = next(iter(before[1]))
        await s.press("1")
        s.world.push_rows(gone=[gone])
        await s.until("it is gone", lambda: gone not in s.app.snapshot.rows)
        await s.press("4")
        await s.until("its mark went with it", lambda: not fleet(s).table.marked)


async def test_what_was_asked_is_done_to_those_listed_and_refusals_are_named(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await s.press("4", "asterisk", "s")
        await s.see("Stop 2 sessions")
        late = s.world.add("latecomer")
        s.world.push_rows(late)
        ended = next(x for x in s.world.sessions.values() if x.state.name == "alpha")
        s.world.log(ended, t.SessionEnded(outcome="failed"))
        s.world.refuse["desire"] = {"code": "ended", "message": "it has ended meanwhile"}
        await s.press("ctrl+y")
        await s.see("0 sessions stopping; 2 refused", "alpha: it has")
        assert {c["sid"] for c in s.world.of("desire")} == {
            x.sid for x in s.world.sessions.values() if x.state.name in ("alpha", "gamma")
        }


async def test_caps_are_raised_where_a_session_waits_at_its_own(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        three(world)
        for name, cap in (("poor", "session.usd"), ("tokens", "session.tokens")):
            detail = {"cap": cap, "limit": 2_000_000_000, "used": 2_000_000_000}
            world.ask(
                world.add(name), kind=Request.CAP, title="cap", options=["raise", "finish", "stop"], detail=detail
            )

    async with shown(tmp_path, scene) as s:
        await s.press("4", "end", "plus")
        await s.see("does not wait at a cap of its own")
        assert "marked can" not in s.text
        await s.press("asterisk", "plus")
        await s.see("Raise the cap of 1 session", "poor · shop")
        assert isinstance(s.app.screen, BulkDialog)
        await s.press("ctrl+u", *"0", "ctrl+y")
        await s.see("say how many dollars more")
        await s.press("ctrl+u", *"1.5", "ctrl+y")
        await s.until("it is raised", lambda: s.world.of("decide"))
        asked = s.world.of("decide")[0]
        assert (asked["decision"], asked["value"]) == ("raise", 3_500_000_000)
        assert len(s.world.of("decide")) == 1


async def test_archiving_removes_the_ended_ones(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await s.press("4", "asterisk", "D")
        await s.see("Archive 1 session", "beta · shop", "alpha has not ended; stop it first")
        await s.press("ctrl+y")
        await s.until("it is removed", lambda: s.world.of("remove"))
        await s.until("it is gone", lambda: sorted(names(s)) == ["alpha", "gamma"])


@pytest.mark.parametrize("size", SIZES)
async def test_once_sessions_are_marked_the_help_bar_begins_with_what_can_be_done_to_them(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with shown(tmp_path, three, size=size) as s:
        await s.press("4")
        await s.see("space mark")
        assert not s.grid[-1].startswith((" p", " s", " D", " +"))
        await s.press("asterisk")
        await s.see("p pause 1", "u resume 1", "s stop 2", "D archive 1")
        assert s.grid[-1].startswith(" p pause 1  u resume 1"), s.grid[-1]
        await s.press("asterisk")
        await s.until("none is marked", lambda: "stop 2" not in s.text)


def dozen(world: World) -> None:
    for number in range(12):
        world.add(f"session-{number:02}", t.LeaseGranted(gen=1, epoch=3))


async def test_a_question_about_many_lists_them_all_where_there_is_room(tmp_path: Path) -> None:
    async with shown(tmp_path, dozen, size=(120, 40)) as s:
        await s.press("4", "asterisk", "s")
        await s.see("Stop 12 sessions", *(f"will stop  session-{number:02}" for number in range(12)))
        assert sum("will stop" in line for line in s.grid) == 12


async def test_a_thousand_sessions_are_drawn_by_what_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shown(tmp_path, three, size=(120, 40)) as s:
        await s.press("4")
        table = fleet(s).table
        one = next(iter(s.app.snapshot.rows.values()))
        table.set_rows([msgspec.structs.replace(one, sid=f"s{n:04}", name=f"job {n:04}") for n in range(1000)])
        await s.until("all are there", lambda: len(table.shown) == 1000)
        drawn: set[str] = set()
        text_of = fleet_columns.text_of

        def noted(row: SessionRow, column: Column, cell: int, now: float) -> fleet_columns.Cell:
            drawn.add(row.sid)
            return text_of(row, column, cell, now)

        monkeypatch.setattr(fleet_columns, "text_of", noted)
        await s.press("G")
        await s.until("the last one", lambda: any(line.startswith("▌") and "job 0000" in line for line in s.grid))
        assert 0 < len(drawn) <= 2 * 40


async def test_an_empty_fleet_says_how_to_begin(tmp_path: Path) -> None:
    async with shown(tmp_path) as s:
        await s.press("4")
        await s.see("0 sessions", "No sessions", "n launch")
        await s.press("s")
        await s.see("no session is selected")


@pytest.mark.parametrize("size", SIZES)
async def test_the_timeline_shows_what_ran_waited_and_ended(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, SCENES["crowd"], size=size) as s:
        await s.press("4", "T")
        await s.see("last 5m", "━", "✓")
        await s.until("who waits has its cell", lambda: any(line.rstrip().endswith("◆") for line in s.grid[2:-2]))
        assert all(len(line) <= size[0] for line in s.grid)
        assert "DOING" not in s.grid[1]
        assert "…" not in s.grid[0], "what does not fit is left out whole"
        assert ":" in s.grid[1], "a clock stands above the cells"
        await s.press("right_square_bracket")
        await s.see("last 15m")
        assert {"table.longer", "table.shorter"} <= {entry[0] for entry in s.help} or size[0] < 80
        await s.press("left_square_bracket", "left_square_bracket")
        await s.see("last 5m")
        await s.press("slash", *"cart", "enter")
        await s.see("1 of 12")
        await s.press("T")
        await s.see("DOING")
        await s.press("right_square_bracket")
        await s.see("this is for the timeline")


async def test_a_timeline_follows_and_one_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    async with shown(tmp_path, three) as s:
        await s.press("4", "T")
        await s.until("all are asked for", lambda: len({c["sid"] for c in s.world.of("timeline")}) == 3)
        alpha = next(x for x in s.world.sessions.values() if x.state.name == "alpha")
        s.world.log(alpha, t.SessionEnded(outcome="failed"))
        s.world.push_rows(alpha)
        await s.until(
            "its end stands there", lambda: any(line.rstrip().endswith("✗") for line in s.grid if "alpha" in line)
        )
        s.world.refuse["timeline"] = {"code": "damaged", "message": "its log is damaged"}
        await s.press("right_square_bracket")
        await s.see("last 15m", "alpha", "gamma")


async def test_changed_lines_stand_in_the_table_and_in_the_row_of_what_is_to_review(tmp_path: Path) -> None:
    async with shown(tmp_path, three, size=(80, 24)) as s:
        await s.until("three rows", lambda: len(s.app.snapshot.rows) == 3)
        rows = [
            msgspec.structs.replace(r, files=2, lines_added=1240, lines_removed=3) for r in s.app.snapshot.rows.values()
        ]
        s.app.screen.query_one(SessionList).set_rows(rows)
        await s.see("+1.2k-3")
        assert s.text.count("+1.2k-3") == 1, "what runs needs the room for what it does"
        await s.press("4")
        assert "+1.2k" not in s.text
        fleet(s).table.set_rows(rows)
        await s.until("all have them", lambda: s.text.count("+1.2k-3") == 3)


@pytest.mark.parametrize("scene", ["crowd", "crowd50", "hostile"])
async def test_a_vast_floor_shows_its_list_as_a_table_beside_the_wall(tmp_path: Path, scene: str) -> None:
    async with shown(tmp_path, SCENES[scene], size=(200, 50)) as s:
        await s.until("rows", lambda: s.app.snapshot.rows)
        listed = s.app.screen.query_one(SessionList)
        width = listed.region.width
        lines = [line[:width] for line in s.grid[:-4]]
        assert all(line.endswith("▕") for line in lines[:20])
        for row in listed.rows[:3]:
            if scene != "hostile":
                (line,) = (found for found in lines if f" {row.name} " in found)
                assert " 0/1 " in line
                assert "$0." in line
        assert len(s.app.screen.query_one(PaneWall).places) == 4 or scene == "hostile"
        assert s.app.no_control.hits == 0

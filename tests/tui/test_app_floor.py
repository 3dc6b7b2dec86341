"""The floor: what is shown at every size, the keys, the panes, and what happens when the supervisor goes away."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from textual import events

from app.client import feed, snapshot
from app.screens import session_commands
from app.screens.floor import LIST_FILE, FloorScreen
from app.terminal import themes
from harness.domain import endpoints
from harness.events import types as t
from harness.protocol.client import Unreachable
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import PUSH, SCENES, World, crowd, folders, stamp, work
from tests.tui.painted import painted
from widgets.fleet.fleet_bar import Banner, FleetBar
from widgets.panes.pane_wall import PaneWall
from widgets.session.session_list import SessionList

pytestmark = pytest.mark.slow


def floor(s: Shown) -> FloorScreen:
    assert isinstance(s.app.screen, FloorScreen)
    return s.app.screen


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scene", ["crowd", "crowd50", "hostile"])
async def test_every_size_fills_the_screen_and_shows_the_fleet(
    tmp_path: Path, scene: str, size: tuple[int, int]
) -> None:
    async with shown(tmp_path, SCENES[scene], size=size) as s:
        await s.see("NEEDS YOU", "open request", "watchfloor", "? help")
        assert len(s.grid) == size[1]
        assert all(len(line) <= size[0] for line in s.grid)
        assert s.app.no_control.hits == 0
        assert s.grid[-2].startswith(" watchfloor  $1.24 today")
        assert "epoch" not in s.text
        if scene == "crowd":
            assert "RUNNING 6" in s.text or size[1] < 24
            assert "today" in s.text
            assert "cart-discount" in s.text
            assert (" 0/1 $0.05" in s.text) or not 120 <= size[0] < 200
            assert ("0/1            $0.05" in s.text) or size[0] < 200


@pytest.mark.parametrize("size", SIZES)
async def test_an_empty_floor_is_friendly_and_says_how_to_begin(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, size=size) as s:
        await s.see("No sessions yet", "n  launch an agent", "Nothing needs you.")
        await s.press("3")
        await s.see("No session has spent anything yet")


@pytest.mark.parametrize("size", SIZES)
async def test_a_floor_whose_sessions_were_all_removed_says_where_they_are(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    def scene(world: World) -> None:
        world.removed_nano = 1_500_000_000
        world.fleet["spent_total_nano"] = world.removed_nano

    async with shown(tmp_path, scene, size=size) as s:
        await s.see("No sessions now", "watchfloor ls --archived")
        await s.press("3")
        await s.see("(removed)", "$1.50")


async def test_a_narrow_terminal_is_one_column(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(60, 24)) as s:
        await s.see("NEEDS YOU")
        sessions = s.app.screen.query_one(SessionList)
        wall = s.app.screen.query_one(PaneWall)
        assert sessions.region.width == wall.region.width == 60
        assert sessions.region.bottom <= wall.region.y


async def test_long_names_are_cut_and_never_push_the_state_away(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.add("x" * 300, t.LeaseGranted(gen=1, epoch=3), goal="g" * 5000)

    async with shown(tmp_path, scene, size=(80, 24)) as s:
        await s.see("xxx…", "running")


async def test_the_log_of_the_selected_session_is_live(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        session = s.world.sessions[floor(s).list.selected]
        s.world.log(session, t.HarnessNote(level="info", text="a line that was just written", component="test"))
        s.world.push_rows(session)
        await s.see("a line that was just written")
        await s.until("the tick sleeping", lambda: s.app.idle)


async def test_a_flood_of_events_is_drawn_in_few_ticks(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        session = s.world.sessions[floor(s).list.selected]
        frames = 0
        inner = floor(s).sync

        def counted(*args: object) -> bool:
            nonlocal frames
            frames += 1
            return inner(*args)  # type: ignore[arg-type]

        floor(s).sync = counted  # type: ignore[method-assign]
        for step in range(200):
            s.world.log(session, *work(1000 + step))
            s.world.push_rows(session)
        await s.until(
            "all of it shown", lambda: s.app.snapshot.rows[session.sid].seq == session.state.seq and s.app.idle
        )
        assert frames < 100


async def test_selection_is_pinned_to_the_session_while_rows_change_places(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.press("j", "j", "j", "j", "j")
        chosen = floor(s).list.selected
        before = [r.sid for r in floor(s).list.rows]
        for sid in before[6:]:
            s.world.log(s.world.sessions[sid], t.SessionEnded(outcome="failed", reason="broken"))
        s.world.push_rows()
        await s.until("the rows changing places", lambda: [r.sid for r in floor(s).list.rows] != before)
        assert floor(s).list.selected == chosen
        assert floor(s).focused is floor(s).list


async def test_counts_and_ages_are_right_after_coming_back(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.see("NEEDS YOU 3", "RUNNING 6")
        await s.press("3")
        view = s.world.approvals()[0]
        session = s.world.sessions[view.sid]
        session.views.clear()
        s.world.log(
            session,
            t.ApprovalDecided(approval_id=view.approval_id, decision_id="d", decision="deny", call_id=view.call_id),
        )
        s.world.push_rows(session)
        s.world.push_approvals()
        await s.until("the row taken in", lambda: s.app.snapshot.rows[view.sid].state == "running")
        await s.press("escape")
        await s.see("NEEDS YOU 2", "RUNNING 7")
        await s.until("ages moving on", lambda: " 5s" in s.text)


async def test_a_removed_session_leaves_the_selection_with_its_neighbour(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.press("j")
        ids = [r.sid for r in floor(s).list.rows]
        s.world.sessions.pop(ids[1]).writer.close()
        s.world.push_rows(gone=[ids[1]])
        await s.until("the neighbour chosen", lambda: floor(s).list.selected == ids[2])


async def test_a_key_meant_for_a_session_that_has_just_gone_does_nothing_to_its_neighbour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shown(tmp_path, crowd) as s:
        going_on = [r.sid for r in floor(s).list.rows if not r.ended]
        floor(s).list.select(going_on[0])
        with monkeypatch.context() as forever:
            forever.setattr(session_commands, "ARM_S", 3600.0)
            s.world.sessions.pop(going_on[0]).writer.close()
            s.world.push_rows(gone=[going_on[0]])
            await s.until("the neighbour chosen", lambda: floor(s).list.selected == going_on[1])
            await s.press("p")
            await s.see("something else has just taken the place of what you saw")
            assert not s.world.of("desire")
        monkeypatch.setattr(session_commands, "ARM_S", 0.0)
        await s.press("p")
        await s.until("it paused", lambda: [r["sid"] for r in s.world.of("desire")] == [going_on[1]])


async def test_panes_split_move_zoom_pin_close_and_are_kept(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        wall = floor(s).wall
        await s.until("a first layout of four", lambda: len(wall.places) == 4)
        await s.press("l", "minus")
        await s.until("5 panes", lambda: len(wall.places) == 5)
        await s.press("minus")
        await s.until("6 panes", lambda: len(wall.places) == 6)
        first = wall.current
        await s.press("k")
        assert wall.current != first
        await s.press("z")
        assert wall.zoomed
        await s.until("one pane", lambda: list(wall.places) == [wall.current])
        await s.see("zoomed")
        await s.press("z", "X")
        await s.until("5 panes", lambda: len(wall.places) == 5)
        await s.press("h", "h", "h", "h")
        assert floor(s).focused is floor(s).list
        await s.press("end", "space")
        assert wall.current_session == floor(s).list.selected
        await s.press("home")
        assert wall.current_session != floor(s).list.selected
        kept = json.loads((s.world.folders.state / "layout.json").read_text())
        shown_then = {wall.session_of(leaf) for leaf in wall.places}
    (tmp_path / "again").mkdir()
    async with shown(
        tmp_path / "again",
        lambda world: (crowd(world), (world.folders.state / "layout.json").write_text(json.dumps(kept))),
        size=(200, 50),
    ) as s:
        wall = floor(s).wall
        await s.until("the layout coming back", lambda: len(wall.places) == 5)
        assert {wall.session_of(leaf) for leaf in wall.places} & shown_then
        await s.see("pinned")


async def test_a_broken_layout_file_is_told_and_replaced(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        crowd(world)
        (world.folders.state / "layout.json").write_text('{"id": "nonsense"}')

    async with shown(tmp_path, scene) as s:
        await s.see("cannot be used", "NEEDS YOU")


async def test_a_pane_too_small_says_so(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(80, 24)) as s:
        await s.press("vertical_line")
        await s.see("too small to split")


async def test_the_mouse_selects_opens_and_moves(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        lists = floor(s).list
        row = next(y for y, line in enumerate(s.grid) if "csv-export" in line[:40])
        await s.pilot.click(SessionList, offset=(5, row))
        assert s.app.snapshot.rows[lists.selected].name == "csv-export"
        await s.pilot.click(PaneWall, offset=(10, 25))
        assert floor(s).in_panes
        await s.pilot.click("QueueHead", offset=(5, 1))
        await s.see("WILL RUN")


async def test_pause_resume_and_stop_ask_the_supervisor(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        sid = next(r.sid for r in floor(s).list.rows if r.group == "running")
        floor(s).list.select(sid)
        await s.press("p")
        await s.until("paused", lambda: s.app.snapshot.rows[sid].desired == "paused")
        await s.until("no offer to pause it again", lambda: "p" not in {key for _, key, _ in s.help})
        await s.press("u")
        await s.until("resumed", lambda: s.app.snapshot.rows[sid].desired == "running")
        await s.press("s")
        await s.see(f"Stop {s.app.snapshot.rows[sid].name}", "ctrl+y stop it")
        await s.press("escape")
        assert [c["state"] for c in s.world.of("desire")] == ["paused", "running"]
        await s.press("s", "ctrl+y")
        await s.until("stopped", lambda: s.app.snapshot.rows[sid].state == "stopped")


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_what_is_paused_is_not_counted_as_running(tmp_path: Path, size: tuple[int, int]) -> None:
    def scene(world: World) -> None:
        world.add("works")
        for name in ("rests", "sleeps"):
            world.log(world.add(name), t.SessionDesired(state="paused"))

    async with shown(tmp_path, scene, size=size) as s:
        await s.see("RUNNING 1 · 2 parked", "● 1 running  ‖ 2 parked")
        await s.press("2")
        await s.see("1 running · 2 parked")
        await s.press("escape")
        session = next(x for x in s.world.sessions.values() if x.state.name == "rests")
        s.world.log(session, t.SessionDesired(state="running"))
        s.world.push_rows(session)
        await s.see("RUNNING 2 · 1 parked", "● 2 running  ‖ 1 parked")


async def test_the_newest_job_of_a_session_is_ended_after_asking(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        for_a_job = t.SessionParked(why="job", detail="job j1: make train")
        world.log(world.add("trainer"), *(started("j1", "make train"), started("j2", "serve"), for_a_job))

    def started(job: str, what: str) -> t.JobStarted:
        return t.JobStarted(clock=0.0, job=job, call_id="c1.0", what=what, limit_s=60)

    async with shown(tmp_path, scene) as s:
        row = next(iter(s.app.snapshot.rows.values()))
        assert row.jobs == {"j1": "make train", "j2": "serve"}
        await s.see("j2 started: serve", "J end job")
        await s.press("J")
        await s.see("End a job of trainer", "j2: serve", "Others")
        await s.press("ctrl+y")
        await s.until("asked", lambda: s.world.of("job_cancel"))
        (asked,) = s.world.of("job_cancel")
        assert (asked["sid"], asked["job"]) == (row.sid, "j2")


async def test_resuming_one_that_waits_for_an_answer_says_so(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        session = world.add("held")
        world.ask(session, PUSH, title="push to origin")
        world.log(session, t.SessionDesired(state="paused"))

    async with shown(tmp_path, scene) as s:
        await s.press("u")
        await s.see("held still waits for your answer: push to origin")
        assert "resumed" not in s.text


async def test_resuming_hands_over_the_key_of_this_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor may have been started by somebody who had none."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-this-screen")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")

    def scene(world: World) -> None:
        world.log(world.add("paused"), t.SessionDesired(state="paused"))

    async with shown(tmp_path, scene) as s:
        await s.press("u")
        await s.until("asked", lambda: s.world.of("desire"))
        (asked,) = s.world.of("desire")
        assert asked["credential"] == {"base_url": "http://127.0.0.1:9", "key": "sk-of-this-screen"}
        await s.see("paused: resumed")
        (s.world.folders.config / "config.toml").write_text("[model]\nnonsense = 1\n")
        await s.press("p")
        await s.until("paused again", lambda: s.app.snapshot.rows[asked["sid"]].desired == "paused")
        await s.press("u")
        await s.see("was not resumed", "nonsense")


async def test_a_refusal_is_shown_in_the_supervisors_words(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        session = world.add("finished")
        world.log(session, t.SessionEnded(outcome="done", verified=True))
        world.refuse["remove"] = {
            "code": "unsaved",
            "message": "notes.txt is neither committed nor pushed",
            "hint": "commit it, or keep it",
        }

    async with shown(tmp_path, scene) as s:
        await s.press("D")
        await s.see("Remove finished")
        await s.press("ctrl+y")
        await s.see("notes.txt is neither committed", "keep it")


async def test_a_dead_supervisor_is_said_at_once_and_everything_stays(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.world.stop()
        await s.until("the banner", lambda: "reconnecting" in s.app.screen.query_one(Banner).text)
        await s.see("supervisor not answering", "cart-discount", "not connected", "ctrl+r")
        session = s.world.sessions[floor(s).list.selected]
        s.world.log(session, t.HarnessNote(level="info", text="written without a supervisor", component="test"))
        await s.see("written without a supervisor")
        await s.press("p")
        await s.see("nothing was sent")
        await s.world.start()
        await s.until("reconnected", lambda: s.app.snapshot.live)
        await s.until("the banner gone", lambda: s.app.screen.query_one(Banner).text == "")


@pytest.mark.parametrize("looked", [True, False], ids=["a look before the first paint", "without"])
async def test_the_fleet_is_fetched_once(tmp_path: Path, looked: bool) -> None:
    async with shown(tmp_path, crowd, looked=looked) as s:
        await s.see("cart-discount")
        assert [call["op"] for call in s.world.calls] == ["hello", "subscribe"]
        session = next(iter(s.world.sessions.values()))
        session.state.name = "renamed"
        s.world.push_rows(session)
        await s.see("renamed")
        assert [call["op"] for call in s.world.calls] == ["hello", "subscribe"]
        await s.world.stop()
        await s.until("the loss", lambda: not s.app.snapshot.live)
        gone = s.world.sessions.pop(session.sid)
        gone.writer.close()
        s.world.calls.clear()
        await s.world.start()
        await s.until("reconnected", lambda: s.app.snapshot.live)
        assert session.sid not in s.app.snapshot.rows, "what went meanwhile is gone"
        assert [call["op"] for call in s.world.calls] == ["hello", "subscribe"]


async def test_a_first_look_opens_the_session_that_was_asked_for(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, looked=True, session="aaaaaaaaab") as s:
        await s.until("the session", lambda: not isinstance(s.app.screen, FloorScreen))


async def test_a_connection_that_died_before_the_first_paint_is_made_again(tmp_path: Path) -> None:
    world = World(folders(tmp_path))
    crowd(world)
    await world.start()
    first = await asyncio.to_thread(snapshot.first_look, world.folders)
    assert first.snapshot.live
    await world.stop()
    woken = asyncio.Event()
    made = feed.Feed(world.folders, woken.set, first)
    made.start()
    async with asyncio.timeout(30):
        while made.snapshot.live:
            woken.clear()
            await woken.wait()
        world.calls.clear()
        await world.start()
        while not made.snapshot.live:
            woken.clear()
            await woken.wait()
    assert made.snapshot.rows == first.snapshot.rows
    assert [call["op"] for call in world.calls] == ["hello", "subscribe"]
    await made.aclose()
    await world.__aexit__()


async def test_a_supervisor_that_stands_still_is_said_and_is_live_again_by_itself(tmp_path: Path) -> None:
    async with shown(tmp_path, patience=feed.Patience(pulse_s=0.05, mute_s=0.1)) as s:
        await s.until("live", lambda: s.app.snapshot.live)
        thaw = asyncio.Event()
        s.world.held["hello"] = thaw
        await s.until(
            "the banner", lambda: "the supervisor does not answer since" in s.app.screen.query_one(Banner).text
        )
        assert f"(process {os.getpid()})" in s.app.screen.query_one(Banner).text
        with pytest.raises(Unreachable, match="nothing was sent"):
            await s.app.feed.call("desire", sid="x", state="stopped")
        del s.world.held["hello"]
        thaw.set()
        await s.until("live again", lambda: s.app.snapshot.live and not s.app.screen.query_one(Banner).text)
        assert not s.world.of("desire")


async def test_without_a_supervisor_the_floor_opens_and_says_so(tmp_path: Path) -> None:
    async with shown(tmp_path, serve=False) as s:
        await s.see("supervisor not answering", "not connected")


async def test_detaching_stops_nothing(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.press("q")
        assert s.app.return_code == 0
        assert {c["op"] for c in s.world.calls} <= {"hello", "subscribe", "sessions", "approvals"}


async def test_themes_cycle_and_stay_readable(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        for name in ("light", "ansi", "dark"):
            await s.press("t")
            assert s.app.theme == name
            await s.see("NEEDS YOU", "cart-discount")
            chosen = next(strip for strip in painted(s.app.screen) if strip.text.startswith("▌"))
            drawn = {segment.text: segment.style.reverse for segment in chosen if segment.style is not None}
            assert not drawn["▌"], "a bar that is reversed shows the rest of its cell"
            assert any(drawn.values()) == (name == "ansi")


async def test_tmux_sequences_show_their_keys_and_work(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(200, 50), preset="tmux") as s:
        wall = floor(s).wall
        await s.until("a first layout of four", lambda: len(wall.places) == 4)
        await s.press("ctrl+b")
        assert ("pane.split_right", "ctrl+b %", "split") not in s.help
        assert any(key == '"' for _, key, _ in s.help), "sequences are shown by what is still to be pressed"
        assert all(action != "pane.split_right" for action, _, _ in s.help), "what is refused is not offered"
        await s.press("percent_sign")
        await s.see("too small to split")
        await s.press("ctrl+b", "quotation_mark")
        await s.until("5 panes", lambda: len(wall.places) == 5)
        await s.press("ctrl+b", "q")
        assert s.app.is_running
        assert any(key == "enter" for _, key, _ in s.help)


async def test_the_palette_says_why_an_action_is_not_possible_now(tmp_path: Path) -> None:
    async with shown(tmp_path, lambda world: world.log(world.add("over"), t.SessionEnded(outcome="done"))) as s:
        await s.see("over")
        await s.press("ctrl+p")
        await s.press(*"ause", "space", *"the", "space", *"sess")
        await s.see("not now: ")
        await s.press("enter")
        await s.until("the floor again", lambda: s.app.screen is floor(s))
        await s.see(floor(s).why_not("session.pause"))


async def test_the_palette_finds_actions_and_sessions(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.press("ctrl+p")
        await s.see("Launch a session")
        await s.press(*"costs")
        await s.see("Go to the costs")
        await s.press("enter")
        if s.app.screen_stack[-1].is_modal:
            await s.press("enter")
        await s.see("of cap")


async def test_help_shows_the_keys_of_the_screen_below(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.press("question_mark")
        await s.see("Floor", "Launch a session")
        await s.press("pagedown")
        await s.see("Split the pane to the right")
        await s.press("escape", "2", "question_mark")
        await s.see("Queue", "Approve edited")


# -- the help bar never lies -----------------------------------------------------------------------


def _here(s: Shown) -> tuple[object, ...]:
    return (len(s.app.screen_stack), s.text, len(s.world.calls), s.app.theme, s.app.return_code)


async def _prove(s: Shown, prepare: Callable[[], object], home: int) -> None:
    prepare()
    await s.settle()
    entries = list(s.help)
    assert entries[-1][0] == "app.help"
    keys = {ident: key for ident, keys in s.app.keys.keys.items() for key in keys[:1]}
    for ident, _shown, _label in sorted(entries, key=lambda e: e[0] == "app.detach"):
        await s.until("quiet", lambda: s.app.idle)
        if ident not in {entry[0] for entry in s.help}:
            continue  # an earlier key of this walk made it impossible, and the bar says so too
        before = _here(s)
        await s.press(keys[ident])
        await s.until(f"{ident} doing something", lambda then=before: _here(s) != then)
        while len(s.app.screen_stack) > home and s.app.return_code is None:
            await s.press("escape")
        if s.app.return_code is None and len(s.app.screen_stack) == home:
            prepare()
            await s.settle()


async def test_every_key_in_the_help_bar_of_the_list_does_something(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        await s.press("j", "j", "j", "j")
        await _prove(s, lambda: floor(s).list.focus(), 1)


async def test_every_key_in_the_help_bar_of_the_panes_does_something(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        await _prove(s, lambda: floor(s).wall.focus(), 1)


@pytest.mark.parametrize("open_with", [("2",), ("enter",), ("3",), ("4",), ("4", "slash", "c", "enter")])
async def test_every_key_in_the_help_bar_of_other_screens_does_something(
    tmp_path: Path, open_with: tuple[str, ...]
) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        await s.press(*open_with)
        await s.pilot.pause(0.7)
        await _prove(s, lambda: None, 2)


async def test_the_help_bar_drops_what_is_impossible(tmp_path: Path) -> None:
    async with shown(tmp_path) as s:
        shown_ids = {action for action, _, _ in s.help}
        assert "session.launch" in shown_ids
        assert not shown_ids & {"session.open", "session.stop", "pane.zoom", "go.back"}


async def test_the_panes_read_as_transcripts_and_one_key_shows_every_event(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.see("✓ pytest -q", "12 passed in 0.40s")
        assert "inside-the-sandbox" not in s.text
        await s.press("v")
        await s.see("by rule inside-the-sandbox")
        await s.press("pageup", "v")
        await s.see("12 passed in 0.40s")
        assert "inside-the-sandbox" not in s.text


async def test_a_running_call_moves_on_in_its_pane(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        session = world.add("tests")
        world.log(
            session,
            t.ToolProposed(call_id="c9.0", tool="exec", ref="u", input={"argv": ["make", "test"]}),
            t.ToolStarted(call_id="c9.0", action_hash="h", effect="contained"),
        )
        spool = world.folders.session(session.sid).spool
        spool.mkdir()
        (spool / "c9.0-1.out").write_text("....\n61 %\n", "utf-8")

    async with shown(tmp_path, scene) as s:
        await s.see("▶ make test", "61 %")
        (session,) = s.world.sessions.values()
        spool = s.world.folders.session(session.sid).spool
        (spool / "c9.0-1.out").write_text("....\n61 %\n87 %\n", "utf-8")
        await s.see("87 %")
        s.world.log(session, t.ToolEnded(call_id="c9.0", status="ok", exit_code=0, preview="3 passed in 9.00s\n"))
        s.world.push_rows(session)
        await s.see("✓ make test  3 passed in 9.00s")
        assert "87 %" not in s.text


async def test_done_by_its_own_word_looks_unlike_what_a_check_saw(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.log(world.add("seen"), t.SessionEnded(outcome="done", verified=True))
        world.log(world.add("said"), t.SessionEnded(outcome="done"))
        world.log(world.add("halted"), t.SessionEnded(outcome="stopped"))
        world.log(world.add("broken"), t.SessionEnded(outcome="failed", reason="it would not"))

    async with shown(tmp_path, scene) as s:
        await s.see("ERRORS 1", "TO REVIEW 2", "DONE 1", "✓ seen", "~ said", "■ halted", "✗ broken")
        await s.see("◆ 1 needs you", "✗ 1 error", "● 0 running", "✓ 2 to review", "■ 1 done")
        assert s.text.index("ERRORS 1") < s.text.index("TO REVIEW 2") < s.text.index("DONE 1")
        await s.press("3", "end", "home")
        await s.see("✓ seen", "~ said", "■ halted", "✗ broken", "of cap")
        assert sum(line.lstrip().startswith("▌") for line in s.grid) == 1, (
            "the selected one is marked by more than a colour"
        )


async def test_one_pane_is_enough_on_a_small_screen_and_the_current_one_is_marked_without_focus(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(80, 24)) as s:
        await s.see("NEEDS YOU")
        assert len(floor(s).wall.places) == 1
        assert sum(line.count("▌ ") for line in s.grid if "─" in line) == 1, "the only pane is the current one too"
    (tmp_path / "large").mkdir()
    async with shown(tmp_path / "large", crowd, size=(200, 50)) as s:
        wall = floor(s).wall
        await s.until("four panes", lambda: len(wall.places) == 4)
        assert floor(s).focused is floor(s).list
        titles = [line[56:] for line in s.grid if "▌ " in line[56:]]
        assert len(titles) == 1
        assert "cart-discount" in titles[0]
        await s.press("l", "j")
        await s.press("h")
        assert floor(s).focused is floor(s).list
        assert wall.current != 1
        assert sum(line[56:].count("▌ ") for line in s.grid) == 1


async def test_the_pane_with_the_selected_session_is_marked_where_it_is_not_the_current_one(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        wall = floor(s).wall
        await s.until("four panes", lambda: len(wall.places) == 4)
        other = next(wall.session_of(leaf) for leaf in wall.places if leaf != wall.current)
        floor(s).list.select(other)
        await s.until(
            "its mark", lambda: any("▸ " in line and s.app.snapshot.rows[other].name in line for line in s.grid)
        )
        assert sum(line[56:].count("▌ ") for line in s.grid) == 1, "the current one keeps its own"
        await s.press("space")
        await s.see("pinned")
        assert wall.current_session == other
        assert [wall.session_of(leaf) for leaf in wall.places].count(other) == 1, "no other pane shows it twice"
        hidden = next(sid for sid in s.app.snapshot.rows if sid not in {wall.session_of(leaf) for leaf in wall.places})
        floor(s).list.select(hidden)
        await s.until("the selected one on the wall", lambda: hidden in {wall.session_of(leaf) for leaf in wall.places})
        assert wall.current_session == other, "what is pinned stays"
        floor(s).list.select(other)
        await s.press("space")
        floor(s).list.select(hidden)
        await s.until("the pane follows again", lambda: wall.current_session == hidden)


async def test_an_empty_pane_is_marked_as_well_while_it_is_the_current_one(tmp_path: Path) -> None:
    async with shown(tmp_path, lambda world: world.add("only"), size=(80, 24)) as s:
        await s.see("only")
        await s.press("tab", "minus")
        await s.see("▌ empty ━", "space shows the selected session here")
        await s.press("1", "shift+tab")
        await s.until("the list has the keys", lambda: floor(s).focused is floor(s).list)
        await s.see("▌ empty ─")


async def test_panes_fold_when_the_screen_shrinks_and_come_back(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        wall = floor(s).wall
        await s.until("four panes", lambda: len(wall.places) == 4)
        await s.press("end")
        selected = floor(s).list.selected
        await s.pilot.resize_terminal(80, 24)
        await s.until("fewer", lambda: 1 <= len(wall.places) < 4)
        assert all(place.width >= 40 for place in wall.places.values())
        assert selected in {wall.session_of(leaf) for leaf in wall.places}, "what is selected stays in sight"
        await s.pilot.resize_terminal(200, 50)
        await s.until("all of them", lambda: len(wall.places) == 4)


@pytest.mark.parametrize("key", ["vertical_line", "minus"])
async def test_a_split_keeps_what_is_selected_in_sight(tmp_path: Path, key: str) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        wall = floor(s).wall
        await s.until("four panes", lambda: len(wall.places) == 4)
        for _ in range(3):
            await s.press("down", key)
            assert floor(s).list.selected in {wall.session_of(leaf) for leaf in wall.places}
        for _ in range(4):
            await s.press("X")
        await s.press("down", "down")
        assert floor(s).list.selected in {wall.session_of(leaf) for leaf in wall.places}


async def test_what_ended_leaves_the_wall_to_what_goes_on(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        for name in ("one", "two", "three", "four"):
            world.add(name)

    async with shown(tmp_path, scene, size=(200, 50)) as s:
        wall = floor(s).wall
        await s.until("four panes", lambda: len(wall.places) == 4)
        held = {wall.session_of(leaf): leaf for leaf in wall.places}
        sid = next(sid for sid, leaf in held.items() if leaf != 1)
        over = s.world.sessions[sid]
        s.world.log(over, t.SessionEnded(outcome="done", verified=True))
        s.world.push_rows(over)
        await s.until("it ended", lambda: s.app.snapshot.rows[sid].ended)
        assert wall.session_of(held[sid]) == sid, "nothing else wants its place"
        newer = s.world.add("newer")
        s.world.push_rows(newer)
        await s.until("the newer one in its place", lambda: wall.session_of(held[sid]) == newer.sid)


async def test_ages_are_those_of_now_as_soon_as_the_floor_is_uncovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shown(tmp_path, crowd) as s:
        await s.press("3")
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 26 * 3600)
        await s.press("1")
        await s.see("opens it")
        assert any("opens it" in line and "1d" in line for line in s.grid)


async def test_a_border_is_dragged_and_the_theme_is_remembered(tmp_path: Path) -> None:
    async with shown(tmp_path, crowd, size=(200, 50)) as s:
        wall = floor(s).wall
        await s.until("four panes", lambda: len(wall.places) == 4)
        line = max(place.x for place in wall.places.values()) - 1
        await s.pilot.mouse_down(PaneWall, offset=(line, 5))
        await s.pilot.hover(PaneWall, offset=(line + 20, 5))
        await s.pilot.mouse_up(PaneWall, offset=(line + 20, 5))
        await s.until("a wider pane", lambda: max(place.x for place in wall.places.values()) - 1 == line + 20)
        await s.until("it kept", lambda: (s.world.folders.state / "layout.json").exists())
        await s.press("t")
        file = s.world.folders.state / themes.FILE
        assert themes.remembered(file) == s.app.theme == "light"
        file.write_text("no theme of ours")
        assert themes.remembered(file) == ""
        assert themes.remembered(file.with_name("nothing")) == ""


async def test_the_border_of_the_list_is_dragged_and_kept_for_screens_of_that_width(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        crowd(world)
        (world.folders.state / LIST_FILE).write_text('{"-normal": 30, "-vast": 9000}')

    async with shown(tmp_path, scene, size=(120, 40)) as s:
        listed = floor(s).list
        await s.until("its usual width", lambda: listed.outer_size.width == 38)
        chosen = listed.selected
        await s.pilot.mouse_down(SessionList, offset=(37, 5))
        await s.pilot.hover(PaneWall, offset=(12, 5))
        await s.until("it follows the mouse", lambda: listed.outer_size.width == 51)
        await s.pilot.mouse_up(PaneWall, offset=(60, 5))
        await s.until("the panes keep their least", lambda: listed.outer_size.width == 80)
        kept = s.world.folders.state / LIST_FILE
        await s.until("it is kept", lambda: json.loads(kept.read_text())["-wide"] == 80)
        for kind, x in ((events.MouseDown, 79), (events.MouseUp, 70)):
            event = kind(None, x, 6, 0, 0, 1, False, False, False, x, 6)
            event.set_sender(s.app)
            s.app.post_message(event)
        await s.until("narrower again", lambda: listed.outer_size.width == 71)
        await s.settle()
        assert listed.selected == chosen, "what is let go of in the list is no click"
        for size, width in (((80, 24), 30), ((60, 20), 60), ((200, 50), 160), ((140, 40), 71)):
            await s.pilot.resize_terminal(*size)
            await s.until(f"{width} cells at {size}", lambda width=width: listed.outer_size.width == width)


@pytest.mark.parametrize("text", ["[]", "no json", '{"-normal": "x"}', "7"])
async def test_widths_that_nobody_can_read_are_none(tmp_path: Path, text: str) -> None:
    def scene(world: World) -> None:
        crowd(world)
        (world.folders.state / LIST_FILE).write_text(text)

    async with shown(tmp_path, scene, size=(80, 24)) as s:
        await s.until("the usual width", lambda: floor(s).list.outer_size.width == 36)


async def test_a_question_has_its_mark_and_what_runs_a_clock(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.ask(world.add("curious"), kind="question", title="Which colour?", options=["answer", "done", "stop"])
        world.log(
            world.add("busy"),
            t.ToolProposed(call_id="c9.0", tool="exec", ref="u", input={"argv": ["make"]}),
            t.ToolStarted(call_id="c9.0", action_hash="h", effect="contained"),
        )

    async with shown(tmp_path, scene) as s:
        await s.see("? curious", "● busy")
        line = next(line for line in s.grid if "● busy" in line)
        assert re.search(r" running +\d+:\d\d ", line), line


@pytest.mark.parametrize("size", SIZES)
async def test_a_plan_is_counted_on_the_row(tmp_path: Path, size: tuple[int, int]) -> None:
    def scene(world: World) -> None:
        entries = [t.PlanEntry(id=f"e{n}", title=f"step {n}", checks=["true"], passes=n < 2) for n in range(3)]
        world.log(world.add("planned"), t.PlanLoaded(path="prd.json", form="userStories", entries=entries))
        world.add("plain")

    async with shown(tmp_path, scene, size=size) as s:
        await s.see("plan 2/3 ━━", " 0/1 ")
        assert "✓0/1" not in s.text
        assert not [line for line in s.grid if "plain" in line and "plan " in line], "one without a plan counts none"
        floor(s).list.select(next(row.sid for row in s.app.snapshot.rows.values() if row.name == "planned"))
        await s.see("plan: prd.json: 2 of 3 pass")


async def test_the_form_asks_once_when_nothing_would_decide_and_the_row_stays_marked(tmp_path: Path) -> None:
    def bare(world: World) -> None:
        world.add("bare", checks=())

    async with shown(tmp_path, bare, size=(120, 40)) as s:
        await s.see("∅")
        await s.press("n")
        await s.see("Launch a session")
        await s.press("g", "o", "ctrl+y")
        await s.see("nothing says when it is done; launch once more")
        assert not s.world.of("launch")
        await s.press("ctrl+y")
        await s.until("it is sent", lambda: s.world.of("launch"))


@pytest.mark.parametrize(("detail", "below"), [("thinks", "goal: Fix it"), ("reads " * 8 + "the end", "the end")])
async def test_a_vast_list_says_the_words_of_the_selected_row_once(tmp_path: Path, detail: str, below: str) -> None:
    async with shown(tmp_path, lambda world: world.add("job", goal="Fix it"), size=(200, 50)) as s:
        listed = floor(s).list
        listed.set_rows([msgspec.structs.replace(listed.rows[0], detail=detail)])
        await s.until("the words", lambda: detail.strip() in s.text)
        width = listed.region.width
        lines = [line[:width] for line in s.grid[:6]]
        assert sum(detail.strip()[:12] in line for line in lines) == 1
        assert any(below in line for line in lines)


@pytest.mark.parametrize("width", [60, 80, 120])
async def test_a_crowded_list_says_what_is_done_and_the_spend_and_how_fast_where_it_fits(
    tmp_path: Path, width: int
) -> None:
    async with shown(tmp_path, lambda world: crowd(world, 31), size=(width, 40)) as s:
        await s.until("one line each", lambda: sum(" dark-mode" in line for line in s.grid) > 0)
        listed = [line[: floor(s).list.region.width] for line in s.grid if " dark-mode" in line]
        assert "git push" in listed[0], "a narrow one leaves it the room"
        assert ("$0.35" in listed[0]) == (width == 60)
        assert "waiting" not in listed[0], "the title of its group says the state"
        assert bool(set("▁▂▃▄▅▆▇█") & set(listed[0])) == (width == 60)


@pytest.mark.parametrize("size", SIZES)
async def test_a_notice_is_as_wide_as_it_needs_and_leaves_a_path_whole(tmp_path: Path, size: tuple[int, int]) -> None:
    path = "/home/somebody/projects/tally/out/session.tar"
    async with shown(tmp_path, crowd, size=size) as s:
        s.app.tell(f"exported to {path}, which others can check")
        await s.see(path)
        assert all(len(line) <= size[0] for line in s.grid)


async def test_what_is_wrong_never_touches_the_totals_beside_it(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        crowd(world)
        down = {"url": "http://x.test", "state": endpoints.PERSON, "since": stamp(7200), "why": "no"}
        world.fleet["endpoints"] = [down]

    async with shown(tmp_path, scene, size=(80, 24)) as s:
        await s.see("endpoint needs you for 2h")
        bar = s.app.screen.query_one(FleetBar)
        for width in range(50, 130):
            await s.pilot.resize_terminal(width, 24)
            await s.until("the totals at that width", lambda width=width: bar.size.width == width)
            line = bar.render_line(0).text
            assert " endpoint needs you" in line, line

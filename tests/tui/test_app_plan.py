"""A plan with its live state on the session's screen, and what marks a long transcript."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.events import types as t
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import PAYLOADS, Session, World, work
from tests.tui.plan_scene import MARKED, passes, planned
from widgets.plan.plan_view import PlanView

TO_PLAN = ("enter", "right_square_bracket", "right_square_bracket")


def line_of(s: Shown, text: str) -> str:
    return next(line for line in s.grid if text in line)


@pytest.mark.parametrize("size", SIZES)
async def test_the_plan_stands_in_its_tab_as_the_log_has_it(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, planned, size=size) as s:
        await s.press(*TO_PLAN)
        await s.see(
            "prd.json", "8/14 done", "━━━", "▶ B-09  build part 9", "2 attempts", "note: the table needs an index"
        )
        assert "in progress" in line_of(s, "2 attempts")
        await s.see("✓ B-08", "■ B-10", "blocked: no key for the map service")
        assert "plan 8/14 ━" in s.grid[0], "and in the session's title"
        await s.press("end")
        await s.see("ship  0/4", "gate: it goes to production", "○ S-01", "after B-09")
        assert "8/14 done" in line_of(s, "prd.json"), "its title stays"
        await s.press("home")
        await s.see("build  8/10", "steps: 1. write the table; 2. index it", "✓ B-01")
        assert all(len(line) <= size[0] for line in s.grid)


@pytest.mark.parametrize("far", [False, True])
async def test_it_goes_on_by_itself_also_where_no_file_can_be_read(tmp_path: Path, far: bool) -> None:
    async with shown(tmp_path, planned, far=far) as s:
        (session,) = s.world.sessions.values()
        await s.press(*TO_PLAN)
        await s.see("▶ B-09", "8/14 done")
        passes(s.world, session, "B-09", 11)
        s.world.log(session, t.IterationStarted(n=12, entry="S-01", attempt=1, digest="d"))
        s.world.push_rows(session)
        await s.see("9/14 done", "✓ B-09", "▶ S-01", "ship  0/4")
        s.world.log(session, t.GateOpened(phase="ship", message="go"))
        s.world.push_rows(session)
        await s.see("◇ gate, opened by you: it goes to production")


async def test_the_file_of_the_plan_is_not_shown_beside_it_and_progress_is(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        worktree = world.folders.worktrees / planned(world).sid
        worktree.mkdir(parents=True)
        (worktree / "prd.json").write_text('{"userStories": [{"id": "OLD", "title": "x", "passes": true}]}', "utf-8")
        (worktree / "progress.txt").write_text("looked at the table\n", "utf-8")

    async with shown(tmp_path, scene) as s:
        await s.press(*TO_PLAN)
        await s.see("8/14 done")
        await s.press("end")
        await s.see("progress.txt", "looked at the table")
        assert [file.name for file in s.app.screen.query_one(PlanView).files] == ["prd.json", "progress.txt"]


PROJECTS = "# Changelog\n\n## 1.0\n\n- First release.\n"


@pytest.mark.parametrize("written", [False, True])
async def test_of_a_changelog_only_what_the_session_wrote_is_shown(tmp_path: Path, written: bool) -> None:
    def scene(world: World) -> None:
        session = planned(world)
        worktree = world.folders.worktrees / session.sid
        worktree.mkdir(parents=True)
        (worktree / "progress.txt").write_text("looked at the table\n", "utf-8")
        (worktree / "CHANGELOG.md").write_text(("- tried the index\n" if written else "") + PROJECTS, "utf-8")
        if written:
            patch = "diff --git a/CHANGELOG.md b/CHANGELOG.md\n--- a/CHANGELOG.md\n+++ b/CHANGELOG.md\n"
            patch += "@@ -1,2 +1,3 @@\n+- tried the index\n # Changelog\n \n"
            files = [{"path": "CHANGELOG.md", "status": "modified", "added": 1, "removed": 0}]
            session.diff = {"files": files, "patch": patch}

    async with shown(tmp_path, scene) as s:
        await s.press(*TO_PLAN)
        await s.see("8/14 done")
        await s.press("end")
        await s.see("looked at the table", *(("CHANGELOG.md, what this session wrote", "tried the index") * written))
        assert "First release" not in s.text
        told = [(file.name, [line.text for line in file.lines]) for file in s.app.screen.query_one(PlanView).files]
        notes = [("CHANGELOG.md, what this session wrote", ["- tried the index"])]
        assert told[1:] == [("progress.txt", ["looked at the table"]), *(notes * written)]


def ran(world: World, session: Session, command: str, code: int) -> None:
    """The harness ran a check, which exited so."""
    call = f"c{session.writer.head}.0"
    world.log(
        session,
        t.ToolProposed(call_id=call, tool="check", ref="", input={"command": command}),
        t.ToolEnded(call_id=call, status="error" if code else "ok", exit_code=code),
    )


@pytest.mark.parametrize("size", [(60, 20), (120, 40)])
async def test_a_session_without_a_plan_shows_what_decides_that_it_is_done(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    def scene(world: World) -> None:
        session = world.add("cart", checks=["make test", "make lint"])
        ran(world, session, "make test", 1)

    async with shown(tmp_path, scene, size=size) as s:
        await s.press(*TO_PLAN)
        await s.see("checks", "0/2 passed", "✗ make test", "○ make lint")
        session = next(iter(s.world.sessions.values()))
        ran(s.world, session, "make test", 0)
        s.world.push_rows(session)
        await s.see("1/2 passed", "✓ make test")


async def test_nothing_of_a_hostile_plan_reaches_the_terminal_as_it_is(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        entries = [t.PlanEntry(id=f"{n}{text}", title=text, checks=[], phase=text) for n, text in enumerate(PAYLOADS)]
        phases = [t.PlanPhase(name=text, gate=text) for text in PAYLOADS]
        session = world.add(
            "hostile", t.PlanLoaded(path=PAYLOADS[0] + "\0", form="tasks", entries=entries, phases=phases)
        )
        world.log(session, t.PlanUpdated(steps=list(PAYLOADS)))
        for entry in entries:
            world.log(session, t.PlanUpdated(entry=entry.id, state="blocked", reason=entry.title, note=entry.title))

    async with shown(tmp_path, scene) as s:
        await s.press(*TO_PLAN)
        await s.see("0/14 done")
        for key in ("home", "pagedown", "pagedown", "end"):
            await s.press(key)
            assert s.app.no_control.hits == 0


@pytest.mark.parametrize("size", SIZES)
async def test_a_long_transcript_is_marked_where_something_turned(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, lambda world: world.add("long", *(body for body, _ in MARKED)), size=size) as s:
        await s.press("enter")
        await s.see(*(seen for _, seen in MARKED))
        await s.press("right_square_bracket")
        await s.see("◉ checkpoint", "↻ context", "◇ gate", "§ judge", "» job", "≡ replan")


@pytest.mark.parametrize("size", SIZES)
async def test_a_pane_shows_the_plan_and_every_title_counts_it(tmp_path: Path, size: tuple[int, int]) -> None:
    def scene(world: World) -> None:
        planned(world)
        world.add("without", *work())

    async with shown(tmp_path, scene, size=size) as s:
        session = next(iter(s.world.sessions.values()))
        await s.see("almanac", "plan 8/14 ━")
        await s.press("P")
        await s.see("prd.json", "8/14 done", "▶ B-09  build part 9")
        passes(s.world, session, "B-09", 11)
        s.world.push_rows(session)
        await s.see("9/14 done", "plan 9/14", "✓ B-09")
        if size[1] < 30:  # one pane, which follows the selection
            await s.press("down")
            await s.until("the other session's", lambda: "9/14 done" not in s.text and "no plan" in s.text)
            await s.press("P")
            await s.see("12 passed in 0.40s")
            await s.press("P")
            await s.see("has no plan")
            await s.press("up")
            await s.until("the title counts it", lambda: re.search(r"● almanac running (plan )?9/14 ", s.text))
        else:
            await s.press("P")
            await s.until("its transcript again", lambda: "9/14 done" not in s.text)
        await s.press("enter", "P")
        await s.see("Plan & progress", "9/14 done")

"""The session, costs and launch screens."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from textual import events
from textual.message import Message
from textual.widgets import Input, TextArea

from app.client.remote_log import PIECE_BYTES
from app.launch import launch_form, launch_history
from app.screens.dialogs.picking import Picker
from app.screens.launch import LaunchForm
from harness.bundle import session_bundle
from harness.events import types as t
from tests.tui.app_pilot import SIZES, Shown, shown
from tests.tui.app_world import SCENES, World, crowd, hostile
from widgets.base.tab_line import TabLine
from widgets.diff.diff_view import DiffView
from widgets.log.event_log import EventLog
from widgets.log.transcript import Transcript
from widgets.plan.plan_view import PlanView

pytestmark = pytest.mark.slow

PATCH = """\
diff --git a/src/cart.py b/src/cart.py
--- a/src/cart.py
+++ b/src/cart.py
@@ -1,2 +1,2 @@
 def total(items):
-    return sum(items)
+    return sum(items) - discount(items)
"""


def first(world: World) -> None:
    crowd(world)
    session = next(iter(world.sessions.values()))
    session.diff = {"files": [{"path": "src/cart.py", "status": "M", "added": 1, "removed": 1}], "patch": PATCH}
    worktree = world.folders.worktrees / session.sid
    worktree.mkdir(parents=True)
    (worktree / "PLAN.md").write_text("# Cart\n- [x] find the fault\n- [ ] repair it\n", "utf-8")


async def test_a_session_is_exported_into_the_folder_that_the_screen_was_opened_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    async with shown(tmp_path, first) as s:
        await s.press("enter", "X")
        await s.until("the exported file", lambda: any(here.glob("cart-discount-*.watchfloor.tar")))
        await s.see("records,")
        (file,) = here.glob("*.watchfloor.tar")
        assert session_bundle.check(file).ok
        await s.press("X")
        await s.see("is not exported")


@pytest.mark.parametrize("size", SIZES)
async def test_all_tabs_at_all_sizes(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, first, size=size) as s:
        await s.press("enter")
        await s.see("cart-discount", "Transcript", "✓ pytest -q", "12 passed in 0.40s", "discount; I will look at")
        await s.press("right_square_bracket")
        await s.see("what happened", "says")
        await s.press("right_square_bracket")
        await s.see("PLAN.md", "1/2 done", "✓ find the fault", "○ repair it")
        await s.press("right_square_bracket")
        await s.see("src/cart.py", "discount(items)")
        await s.press("right_square_bracket")
        await s.see("session ━", "requests", "cache hit  91%")
        await s.press("right_square_bracket")
        await s.see("source  event log", "evidence  open request")
        assert all(len(line) <= size[0] for line in s.grid)
        await s.press("escape")
        await s.see("NEEDS YOU")


@pytest.mark.parametrize("size", SIZES)
async def test_costs_show_the_dearest_first(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(tmp_path, crowd, size=size) as s:
        await s.press("3")
        await s.see("session", "spent", "of cap", "$0.35")
        lines = [line for line in s.grid if "of $2" in line]
        assert "dark-mode" in lines[0]
        await s.press("enter")
        await s.see("requests")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_layers_of_the_context_stand_on_the_session(tmp_path: Path, size: tuple[int, int]) -> None:
    def asked(world: World) -> None:
        world.add(
            "layers",
            t.ModelRequest(
                request_id="r1",
                attempt=1,
                model="m",
                reservation="x",
                reserved_nano=1,
                est_input=1,
                max_tokens=100,
                upto_seq=2,
                layers={"goal and criteria": 100, "current task": 300},
                working=80_000,
            ),
            t.ModelMessage(
                request_id="r1",
                message_id="m",
                model="m",
                stop="done",
                usage=t.Usage(input=20_000, output=1200),
                cost_nano=1,
                parts=[],
            ),
        )

    async with shown(tmp_path, asked, size=size) as s:
        await s.press("enter")
        await s.see("Transcript", "layers")
        tall = size[1] > 32
        if tall:
            await s.see("21.2k of 80.0k tokens", "goal 5.0k", "task 15.0k")
        else:
            assert "21.2k" not in s.text, "a short screen keeps its lines for the transcript"
        await s.press(*["right_square_bracket"] * 4)
        await s.see("21.2k of 80.0k tokens", "current task: 15,000 tokens")
        assert s.text.count("21.2k of 80.0k tokens") == 1, "one bar is enough"


async def test_plan_files_are_shown_as_they_change_on_disk(tmp_path: Path) -> None:
    async with shown(tmp_path, first) as s:
        sid = next(iter(s.world.sessions))
        await s.press("enter", *["right_square_bracket"] * 2)
        await s.see("1/2 done")
        worktree = s.world.folders.worktrees / sid
        (worktree / "PLAN.md").write_text("# Cart\n- [x] find the fault\n- [x] repair it\n", "utf-8")
        (worktree / "prd.json").write_text(
            json.dumps({"userStories": [{"id": "US-1", "title": "Discounts", "passes": False}]}), "utf-8"
        )
        await s.see("2/2 done", "US-1 Discounts", "0/1 done")
        (worktree / "prd.json").unlink()
        await s.until("the file gone", lambda: "US-1" not in s.text)
        assert [file.name for file in s.app.screen.query_one(PlanView).files] == ["checks", "PLAN.md"]


async def test_search_filter_and_a_whole_record(tmp_path: Path) -> None:
    async with shown(tmp_path, first) as s:
        await s.press("enter", "v")
        await s.see("what happened")
        await s.press("slash")
        await s.see("Search in cart-discount")
        await s.press(*"ignores", "enter")
        await s.see("search ignores")
        await s.press("enter")
        await s.see("model.message", "esc closes")
        await s.press("escape", "n", "N", "f")
        await s.see("only")
        here = s.app.screen
        assert ("log.unfilter", "esc", "show all") in s.help
        await s.press("escape")
        await s.until("all events", lambda: "only" not in s.text)
        assert s.app.screen is here, "esc leaves the filter before the session"
        assert s.screen.can("go.back")
        await s.press("f")
        await s.see("only")
        await s.press("slash", *"nowhere at all".replace(" ", ""), "enter")
        await s.see("not found: nowhereatall")


async def test_an_answer_that_comes_while_the_screen_is_taken_down_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shown(tmp_path, first) as s:
        answer = asyncio.Event()
        s.world.held["diff"] = answer

        async def linger(line: TabLine) -> None:
            """The last widget to go: the others are gone when the answer arrives, and it waits until that was taken."""
            while line.screen.query(DiffView):
                await asyncio.sleep(0.01)
            answer.set()
            while len(s.app.workers):
                await asyncio.sleep(0.01)

        await s.press("enter", *["right_square_bracket"] * 3)
        await s.until("the diff asked for", lambda: len(s.app.workers))
        monkeypatch.setattr(TabLine, "on_unmount", linger, raising=False)
        s.app.post_message(events.Key("escape", None))
        while len(s.app.screen_stack) > 1 or not answer.is_set():
            await asyncio.sleep(0.01)
        await s.see("NEEDS YOU")
        assert s.app.is_running


async def test_saying_something_reaches_the_agent(tmp_path: Path) -> None:
    async with shown(tmp_path, first) as s:
        await s.press("enter", "m")
        await s.see("Say to cart-discount")
        await s.press(*"hold", "ctrl+y")
        await s.until("the message", lambda: s.world.of("say"))
        assert s.world.of("say")[0]["text"] == "hold"


async def test_a_session_that_vanishes_says_so(tmp_path: Path) -> None:
    async with shown(tmp_path, first) as s:
        sid = next(iter(s.world.sessions))
        await s.press("enter")
        s.world.sessions.pop(sid).writer.close()
        s.world.push_rows(gone=[sid])
        await s.see("this session is gone")
        await s.press("m", "p", "s", "escape")
        await s.see("NEEDS YOU")


async def test_attaching_opens_the_session_at_once(tmp_path: Path) -> None:
    from app.input import keymap
    from app.shell.navigation import Opening
    from app.shell.watch_app import WatchApp
    from tests.tui.app_world import folders

    world = World(folders(tmp_path))
    crowd(world)
    async with world:
        sid = list(world.sessions)[3]
        app = WatchApp(world.folders, keymap.build("default", {}), opening=Opening(sid))
        async with app.run_test(size=(120, 40)) as pilot:
            s = Shown(world, app, pilot)
            await s.see("search-index", "Transcript", "✓ pytest -q")


# -- from elsewhere --------------------------------------------------------------------------------


def long(world: World) -> None:
    first(world)
    session = next(iter(world.sessions.values()))
    world.log(session, *(t.HarnessNote(level="info", text=f"note {i}", component="test") for i in range(3000)))


async def test_a_screen_without_the_disk_shows_follows_filters_and_searches_the_log(tmp_path: Path) -> None:
    async with shown(tmp_path, long, far=True) as s:
        await s.press("v")
        await s.see("note 2999")  # in a pane of the floor
        await s.press("enter", "right_square_bracket")
        await s.see("what happened", "note 2999", "following")
        view = s.app.screen.query_one(EventLog)
        await s.press("g")
        await s.see("Make the tests pass.", "note 0")
        session = next(iter(s.world.sessions.values()))
        s.world.log(session, t.HarnessNote(level="info", text="the newest", component="test"))
        s.world.push_rows(session)
        await s.press("G")
        await s.see("the newest")
        view.search("note 1234")
        await s.see("note 1234")
        while view.groups != frozenset({"talk"}):
            await s.press("f")
        await s.until("the whole log looked at", lambda: "looked at" not in view.status)
        await s.see("Make the tests pass.")
        asked = [call for call in s.world.calls if call["op"] == "read"]
        assert max(call["most_bytes"] for call in asked) <= PIECE_BYTES


async def test_a_screen_without_the_disk_shows_the_transcript_from_its_end_to_its_beginning(tmp_path: Path) -> None:
    def talk(world: World) -> None:
        first(world)
        session = next(iter(world.sessions.values()))
        world.log(session, *(t.UserMessage(text=f"word {i}", origin="human") for i in range(1500)))

    async with shown(tmp_path, talk, far=True) as s:
        await s.see("word 1499")  # in a pane of the floor
        await s.press("enter")
        await s.see("Transcript", "word 1499")
        await s.press("pageup", "pageup")
        await s.until("earlier words", lambda: "word 1499" not in s.text and "word 14" in s.text)
        await s.press("g")
        await s.see("Make the tests pass.", "12 passed in 0.40s")
        await s.press("G")
        await s.see("word 1499")


async def test_a_log_that_is_gone_is_said_in_its_place(tmp_path: Path) -> None:
    async with shown(tmp_path, first, far=True) as s:
        s.world.refuse["read"] = {"code": "gone", "message": "this session's folder is not there any more"}
        await s.press("enter")
        await s.see("this session's folder is not there any more")


# -- launching -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
async def test_the_form_says_what_is_wrong_beside_the_field_and_launches(
    tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with shown(tmp_path, size=size) as s:
        await s.press("n")
        await s.see("Launch a session", "ctrl+y launch")
        await s.press("ctrl+y")
        await s.see("Goal: say what the agent should achieve")
        await s.press(*"fix", "tab", *"true", "tab", "end", "x", "ctrl+y")
        await s.see("is not an amount in")
        await s.press("end", *["backspace"] * 3, "5", "0", "tab", *"mine", "ctrl+y")
        await s.until("the launch", lambda: s.world.of("launch"))
        (sent,) = s.world.of("launch")
        assert (sent["goal"], sent["checks"], sent["name"], sent["caps"]["usd_nano"]) == (
            "fix",
            ["true"],
            "mine",
            5_500_000_000,
        )
        await s.see("launched mine", "● mine")


async def test_what_was_said_of_a_field_goes_when_it_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with shown(tmp_path) as s:
        await s.press("n", "f4")
        await s.see("nothing was launched before")
        await s.press("m")
        assert "nothing was launched before" not in s.text
        await s.press("tab", "tab", "end", "x", "ctrl+y")
        await s.see("is not an amount in")
        await s.press("tab", "m")
        assert "is not an amount in" in s.text, "another field says nothing about it"
        await s.press("shift+tab", "end", "backspace")
        assert "is not an amount in" not in s.text


@pytest.mark.parametrize("size", [*SIZES, (120, 32)])
async def test_the_command_that_launches_the_same_is_whole_or_says_how_much_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    ours = tmp_path / ("deep" * 30) / "ours"
    ours.mkdir(parents=True)
    monkeypatch.chdir(ours)
    async with shown(tmp_path / "home", size=size) as s:
        await s.press("n", *"mend the cart", "tab", *"pytest -q tests", "tab", "end", "backspace", "7")
        for keys in ((), ("f2",)):
            await s.press(*keys)
            ((row, keyline),) = [(n, line) for n, line in enumerate(s.grid) if "ctrl+y launch" in line]
            begin = next(n for n, line in enumerate(s.grid) if "$ watchfloor launch" in line)
            said = "".join(line.split("│")[1].strip() for line in s.grid[begin : row - 1])
            assert said.endswith(("--cap-usd 5.07", "characters⟩")), said
            assert size[0] < 120 or said.endswith("--cap-usd 5.07"), "there is room for all of it"
            assert not s.grid[row - 1].split("│")[1].strip(), "the keys stand apart"
            assert "tab next field" in keyline


async def test_what_is_typed_stands_in_one_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with shown(tmp_path) as s:
        await s.press("n", *"GOAL", "tab", *"CHECK", "tab", "tab", *"NAME")
        typed = (("Goal ", "GOAL"), ("Checks ", "CHECK"), ("Name ", "NAME"))
        assert len({line.index(word) for label, word in typed for line in s.grid if label in line and "│" in line}) == 1


async def test_rare_fields_unfold_and_all_is_done_with_the_keyboard_at_80x24(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prd.json").write_text("{}")
    async with shown(tmp_path, size=(80, 24)) as s:
        await s.press("n")
        await s.see("Repository", "Goal", "Checks", "Cap in USD", "Name", "Model", "more: begin from", "$ watchf")
        await s.press(*"fix", "f2")
        await s.see("Begin from", "a branch, tag or commit")
        await s.press(*"main", "tab", "f3")
        await s.see("Plan file", "prd.json", "enter takes it")
        await s.press("enter")
        for _ in range(5):
            await s.press("tab")
        await s.see("a number; empty = as configured")
        await s.press(*"many", "ctrl+y")
        await s.see("Token cap: 'many' is not a whole number")
        assert not s.world.of("launch")
        await s.press(*["backspace"] * 4, *"9000", "ctrl+y")
        await s.until("the launch", lambda: s.world.of("launch"))
        (sent,) = s.world.of("launch")
        assert (sent["start"], sent["plan"], sent["caps"]["tokens"]) == ("main", "prd.json", 9000)
        assert all(len(line) <= 80 for line in s.grid)


async def test_the_form_is_filled_from_an_earlier_launch_and_from_a_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with shown(tmp_path, size=(80, 24)) as s:

        def filled() -> list[str]:
            return [s.app.screen.query_one(field, TextArea).text for field in ("#goal", "#checks")]

        await s.press("n", "f4")
        await s.see("nothing was launched before")
        await s.press(*"mend", "tab", *"true", "f5")
        await s.see("Keep as a template")
        await s.press(*"usual", "enter")
        await s.until("the form", lambda: isinstance(s.app.screen, LaunchForm))
        await s.until("the offer of what was kept", lambda: ("launch.earlier", "f4", "earlier") in s.help)
        await s.press("ctrl+y")
        await s.until("the launch", lambda: s.world.of("launch"))
        await s.until("the floor", lambda: len(s.app.screen_stack) == 1)
        await s.press("n", "f4")
        await s.see("template usual", "mend")
        await s.press(*"usual", "enter")
        await s.until("the template", lambda: filled() == ["mend", "true"])
        await s.press("escape", "n", "f4", "down", "enter")
        await s.until("the earlier launch", lambda: filled() == ["mend", "true"])
    kept = launch_history.load(s.world.folders.state)
    assert ([one.goal for one in kept.past], list(kept.templates)) == (["mend"], ["usual"])


async def test_the_form_offers_the_goals_of_sessions_that_were_launched_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with shown(tmp_path, lambda world: world.add("cart", goal="Mend the cart\n\x1b[2Jat once")) as s:
        await s.press("n")
        await s.until("the offer of their goals", lambda: ("launch.earlier", "f4", "earlier") in s.help)
        await s.press("f4")
        await s.see("Mend the cart", "goal only")
        await s.press(*"mend", "enter")
        goal = s.app.screen.query_one("#goal", TextArea)
        await s.until("the goal", lambda: goal.text.startswith("Mend the cart\n"))
        assert "\x1b" not in goal.text


async def test_what_was_written_stands_in_the_form_that_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with shown(tmp_path, size=(80, 24)) as s:

        def written() -> list[str]:
            form = s.app.screen
            return [form.query_one("#goal", TextArea).text, form.query_one("#branch", Input).value]

        await s.press("n", *"mend it", "f2", *"main", "escape")
        await s.until("the floor", lambda: len(s.app.screen_stack) == 1)
        await s.press("n")
        await s.see("Launch a session, as you left it", "Begin from")
        assert written() == ["mend it", "main"]
        await s.press("f4")
        await s.see("an empty form")
        await s.press("enter")
        await s.until("it is empty", lambda: written() == ["", ""])
        await s.press("f4")
        await s.see("what stood here before", "f4 brings back what is written here")
        await s.press("enter")
        await s.until("it is back", lambda: written() == ["mend it", "main"])
        await s.press("f4", "down")
        await s.press("enter")
        await s.until("it is empty again", lambda: written() == ["", ""])
        await s.press("escape", "n")
        await s.see("Launch a session")
        assert "as you left it" not in s.text
        await s.press(*"again", "ctrl+y", "ctrl+y")
        await s.until("the launch", lambda: s.world.of("launch"))
        await s.until("the floor", lambda: len(s.app.screen_stack) == 1)
        await s.press("n")
        await s.see("Launch a session")
        assert written() == ["", ""], "what was launched is not kept"


async def test_the_form_offers_a_choice_exactly_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "prd.json").write_text("{}")
    async with shown(tmp_path, size=(160, 40)) as s:
        await s.press("n", "f2")
        offered = {}
        for field in launch_form.FIELDS:
            s.app.screen.query_one(f"#{field.id}").focus()
            await s.pilot.pause()
            offered[field.id] = "f3 choose" in s.text
            assert "f4 earlier" not in s.text
            await s.press("f3")
            if offered[field.id]:
                await s.until(f"a choice for {field.id}", lambda: isinstance(s.app.screen, Picker))
                await s.press("escape")
            assert not isinstance(s.app.screen, Picker), field.id
        assert {name for name, choice in offered.items() if choice} >= {"model", "role", "judge", "fresh", "branch"}
        assert not offered["goal"]


async def test_what_a_session_begins_from_is_chosen_among_what_the_repository_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    async with shown(tmp_path, size=(100, 40)) as s:
        s.world.starts = ["main", "evil\x1b[2J[bold]", "v1.0"]
        await s.press("n", "f2", "f3")
        await s.see("Begin from", "main", "evil␛[2J[bold]", "v1.0", "enter takes it")
        await s.press(*"v1", "enter")
        await s.until("it stands in the field", lambda: s.app.screen.query_one("#branch", Input).value == "v1.0")
        assert s.world.of("starts")[0]["repo"] == str(tmp_path)
        s.app.screen.query_one("#repo", Input).value = "/not/there"
        await s.press("f3")
        await s.see("/not/there does not exist")
        assert s.app.no_control.hits == 0


async def test_phrases_of_the_plan_are_offered_with_a_guess_and_added_to_what_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    async with shown(tmp_path, size=(120, 50)) as s:
        s.world.unbound = [
            {"text": "Tests pass", "count": 71, "guess": "make test"},
            {"text": "Lint \x1b[2Jpasses", "count": 2, "guess": ""},
        ]
        await s.press("n", "f2")
        s.app.screen.query_one("#plan", Input).value = "prd.json"
        field = s.app.screen.query_one("#phrases", TextArea)
        field.load_text("It builds=make")
        field.focus()
        await s.press("f3")
        await s.see("Tests pass=make test", "Lint ␛[2Jpasses=")
        await s.press("enter")
        await s.until("it stands in the field", lambda: field.text == "It builds=make\nTests pass=make test")
        assert s.world.of("phrases")[0]["plan"] == "prd.json"
        assert s.app.no_control.hits == 0


async def test_a_repository_is_offered_however_many_folders_stand_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(250):
        (tmp_path / f"a{number}").mkdir()
    ours = tmp_path / "ours"
    beside = tmp_path / "z"
    (ours / ".git").mkdir(parents=True)
    (beside / ".git").mkdir(parents=True)
    monkeypatch.chdir(ours)
    async with shown(tmp_path / "home", size=(160, 40)) as s:
        await s.press("n", "shift+tab")
        await s.press("f3")
        await s.until("a choice", lambda: isinstance(s.app.screen, Picker))
        await s.see("/ours", "/z")


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
async def test_the_form_says_that_it_names_only_some_of_its_further_fields(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with shown(tmp_path, size=size) as s:
        await s.press("n")
        await s.see("f2 more: begin from")
        (line,) = (one for one in s.grid if "f2 more: begin from" in one)
        assert "…" in line, line


@pytest.mark.parametrize("size", SIZES)
async def test_a_long_choice_leaves_room_for_what_its_keys_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    async with shown(tmp_path, size=size) as s:
        s.world.starts = [f"branch-{number:02}" for number in range(60)]
        await s.press("n", "f2", "f3")
        await s.see("branch-00", "enter takes it  esc takes none")
        await s.press("up")
        await s.see("branch-59", "enter takes it  esc takes none")


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
async def test_a_choice_that_is_too_long_is_one_line_and_of_a_path_the_end_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    ours = tmp_path / ("deep" * 30) / "ours"
    (ours / ".git").mkdir(parents=True)
    monkeypatch.chdir(ours)
    async with shown(tmp_path / "home", size=size) as s:
        await s.press("n", "shift+tab")
        await s.press("f3")
        await s.see("…", "deepdeep/ours ")
        assert any("│ …" in one and one.index("…") < one.index("deep/ours ") for one in s.grid), s.text


async def test_a_refused_launch_keeps_what_was_typed(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.refuse["launch"] = {"code": "bad_repo", "message": "/tmp is not a git repository", "hint": "run git init"}

    async with shown(tmp_path, scene) as s:
        await s.press("n", *"keepme", "ctrl+y")
        await s.see("nothing says when it is done")
        await s.press("ctrl+y")
        await s.see("Repository: /tmp is not a git repository", "keepme")
        await s.press("escape")
        await s.see("No sessions yet")


async def test_what_a_launch_warns_of_stays_until_it_was_read(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.warnings = ["there is no key for http://127.0.0.1:1", "the model no-such is in no \x1b[31mprice list[/]"]

    async with shown(tmp_path, scene) as s:
        await s.press("n", *"fix", "ctrl+y")
        await s.see("nothing says when it is done")
        await s.press("ctrl+y")
        await s.see("Launched", "there is no key for http://127.0.0.1:1", "price list[/]", "ctrl+y read")
        assert "\x1b" not in s.text
        await s.press("ctrl+y")
        await s.until("the floor", lambda: len(s.app.screen_stack) == 1)
        assert [row.name for row in s.app.snapshot.rows.values()] == ["session"]


# -- hostile text ----------------------------------------------------------------------------------


async def test_hostile_text_is_shown_and_never_acts_on_any_screen(tmp_path: Path) -> None:
    async with shown(tmp_path, hostile, size=(200, 50)) as s:
        sid = next(sid for sid, row in s.app.snapshot.rows.items() if "click" in row.name)
        for keys in ((), ("question_mark",), ("2",), ("3",), ("ctrl+p",)):
            await s.press(*keys)
            await s.pilot.pause(0.1)
            _harmless(s)
            await s.press("escape") if keys else None
        s.app.open_session(sid)
        await s.see("Transcript")
        for _ in range(6):
            await s.press("right_square_bracket")
            await s.pilot.pause(0.1)
            _harmless(s)
        for view in ("end", "v"):
            await s.press(view, "up", "enter")
            await s.see("esc closes")
            _harmless(s)
            await s.press("escape")
        await s.press("m")
        await s.pilot.pause(0.1)
        _harmless(s)
        assert s.app.no_control.hits == 0
        looks = {"hello", "subscribe", "sessions", "approvals", "costs", "diff", "plan"}
        assert {c["op"] for c in s.world.calls} <= looks


def _harmless(s: Shown) -> None:
    assert not [
        c
        for c in s.text
        if c != "\n"
        and (
            ord(c) < 32
            or 0x7F <= ord(c) < 0xA0
            or 0x202A <= ord(c) <= 0x202E
            or 0x2066 <= ord(c) <= 0x2069
            or c in "\u200b\u200d"
        )
    ]


async def test_clicking_every_cell_of_hostile_text_runs_nothing(tmp_path: Path) -> None:
    async with shown(tmp_path, SCENES["hostile"], size=(120, 40)) as s:
        await s.press("2")
        await s.see("RISK")
        row = next((y for y, line in enumerate(s.grid) if "@click" in line), 3)
        for x in range(0, 120, 9):
            await s.pilot.click(offset=(x, row))
        assert s.app.is_running
        assert not s.world.of("decide")
        assert s.app.return_code is None


async def test_a_toast_with_markup_shows_it_as_text(tmp_path: Path) -> None:
    async with shown(tmp_path) as s:
        s.app.tell("[@click=app.do('app.detach')]\x1b]52;c;?\x07[/] and [bold]x[/bold]")
        await s.see("[bold]x[/bold]", "␛]52")


async def test_note_of_a_hostile_component_reaches_the_floor_log(tmp_path: Path) -> None:
    def scene(world: World) -> None:
        world.add("plain", t.HarnessNote(level="warning", text="\x1b[2Jgone\u202e", component="\x07"))

    async with shown(tmp_path, scene) as s:
        await s.see("␛[2Jgone⟨U+202E⟩")


async def test_a_pane_is_filled_although_textual_tells_its_log_no_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells none to a log that it arranged for an update between its mount and the next layout."""
    kept_back: list[Message] = []
    post = Transcript.post_message

    def post_message(log: Transcript, message: Message) -> bool:
        if isinstance(message, events.Resize) and not kept_back:
            kept_back.append(message)
            return False
        return post(log, message)

    monkeypatch.setattr(Transcript, "post_message", post_message)
    async with shown(tmp_path, lambda world: world.add("plain", t.HarnessNote(level="warning", text="here I am"))) as s:
        await s.see("here I am")
        assert kept_back


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_what_holds_a_session_up_says_what_comes_next_and_what_to_do(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    def scene(world: World) -> None:
        world.log(world.add("resting"), t.SessionDesired(state="paused"))
        world.add("working")

    async with shown(tmp_path, scene, size=size) as s:
        sid = next(row.sid for row in s.app.snapshot.rows.values() if row.name == "resting")
        s.app.open_session(sid)
        await s.see("next: it stays as it is until you resume it", f"you can: resume it (u or watchfloor resume {sid})")
        s.app.open_session(next(row.sid for row in s.app.snapshot.rows.values() if row.name == "working"))
        await s.see("working")
        await s.until("no advice for what goes on", lambda: "next:" not in s.text and "you can:" not in s.text)

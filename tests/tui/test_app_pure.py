"""The pure parts of the screen: tiles, keys, arming, cells, plan files, the launch form, the reply filter."""

from __future__ import annotations

import json
import os
import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from app.action_table import registry
from app.action_table.action import SCOPES
from app.input import keymap
from app.input.arming import ARM_S, Arming
from app.launch.launch_form import FieldError, Wish, request_of
from app.screens.queue_foot import Looked, armed
from app.terminal import themes
from app.terminal.terminal_filters import NoControl, ReplyFilter
from harness.domain.text import formatting
from harness.events.body import Caps
from harness.protocol.config.config import Config
from harness.views.session_views import ERRORS, NEEDS_YOU, REVIEW, RUNNING, ApprovalView, SessionRow
from tests.tui.app_world import PAYLOADS
from widgets.base import cells
from widgets.panes import tiling
from widgets.panes.pane_wall import ranked
from widgets.panes.tiling import Leaf, Node, Rect, Split
from widgets.plan import plan_view
from widgets.queue.queue_head import by_weight
from widgets.session.session_order import layout, ordered

# -- tiles -----------------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> Node:
    """A tree grown by real commands."""
    tree: Node = Leaf(1)
    for _ in range(draw(st.integers(0, 8))):
        ids = [leaf.id for leaf in tiling.leaves(tree)]
        leaf = draw(st.sampled_from(ids))
        match draw(st.sampled_from(["split", "split", "close", "resize", "assign", "pin"])):
            case "split":
                tree = tiling.split(tree, leaf, across=draw(st.booleans()))
            case "close":
                tree = tiling.close(tree, leaf)
            case "resize":
                tree = tiling.resize(
                    tree, leaf, across=draw(st.booleans()), delta=draw(st.sampled_from([-200, 50, 200]))
                )
            case "pin":
                tree = tiling.pin(tree, leaf, draw(st.sampled_from(["a", "b"])))
            case _:
                tree = tiling.assign(tree, leaf, draw(st.sampled_from(["", "a", "b"])))
    return tree


@given(trees(), st.integers(40, 250), st.integers(10, 80))
def test_panes_never_overlap_and_stay_inside_the_wall(tree: Node, width: int, height: int) -> None:
    places = tiling.regions(tree, Rect(0, 0, width, height))
    taken: set[tuple[int, int]] = set()
    for area in places.values():
        mine = {(x, y) for x in range(area.x, area.x + area.width) for y in range(area.y, area.y + area.height)}
        assert not mine & taken
        taken |= mine
        assert area.x >= 0
        assert area.y >= 0
        assert area.x + area.width <= width
        assert area.y + area.height <= height
    assert places.keys() == {leaf.id for leaf in tiling.leaves(tree)}


@given(trees())
def test_a_layout_survives_being_saved(tree: Node) -> None:
    assert tiling.from_data(json.loads(json.dumps(tiling.to_data(tree)))) == tree


@given(trees(), st.sampled_from(["left", "right", "up", "down"]))
def test_moving_to_a_neighbour_and_back_lands_on_a_pane_that_touches(tree: Node, way: tiling.Direction) -> None:
    places = tiling.regions(tree, Rect(0, 0, 400, 200))
    back: dict[str, tiling.Direction] = {"left": "right", "right": "left", "up": "down", "down": "up"}
    for leaf in places:
        other = tiling.neighbour(places, leaf, way)
        if other is not None:
            assert tiling.neighbour(places, other, back[way]) is not None


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"id": "1", "sid": ""},
        {"id": True, "sid": ""},
        {"across": True, "share": 5, "first": {"id": 1, "sid": ""}, "second": {"id": 2, "sid": ""}},
    ],
)
def test_a_broken_layout_file_is_refused(data: object) -> None:
    with pytest.raises(ValueError):
        tiling.from_data(data)


def test_doubled_panes_are_refused_and_the_last_pane_cannot_be_closed() -> None:
    with pytest.raises(ValueError):
        tiling.from_data(tiling.to_data(Split(True, Leaf(1), Leaf(1))))
    assert tiling.close(Leaf(1), 1) == Leaf(1)
    assert tiling.close(Split(True, Leaf(1), Leaf(2)), 1) == Leaf(2)


def test_panes_of_vanished_sessions_get_the_next_one_nobody_shows() -> None:
    tree = Split(True, Leaf(1), Split(False, Leaf(2, "gone"), Leaf(3, "b")))
    assert tiling.fill(tree, ["b", "c"], {"b", "c"}) == Split(True, Leaf(1), Split(False, Leaf(2, "c"), Leaf(3, "b")))
    assert [x.sid for x in tiling.leaves(tiling.fill(tree, [], set()))] == ["", tiling.EMPTY, tiling.EMPTY]


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-5, "0:00"), (41.9, "0:41"), (723, "12:03"), (3723, "1:02:03"), (36000, "10:00:00")]
)
def test_a_clock_shows_what_a_clock_shows(seconds: float, shown: str) -> None:
    assert formatting.clock(seconds) == shown


@given(trees(), st.integers(40, 250), st.integers(5, 80), st.randoms())
def test_panes_that_cannot_be_read_fold_away_and_the_kept_one_never(
    tree: Node, width: int, height: int, rng: random.Random
) -> None:
    ids = {leaf.id for leaf in tiling.leaves(tree)}
    kept = rng.choice(sorted(ids))
    area = Rect(0, 0, width, height)
    places = tiling.regions(tiling.fold(tree, area, kept), area)
    assert kept in places.keys() <= ids
    assert all(place.width >= tiling.MIN_WIDTH and place.height >= tiling.MIN_HEIGHT for place in places.values())
    everything = tiling.regions(tree, area)
    if all(place.width >= tiling.MIN_WIDTH and place.height >= tiling.MIN_HEIGHT for place in everything.values()):
        assert places == everything


@given(trees(), st.integers(90, 250), st.integers(20, 80), st.integers(0, 250), st.integers(0, 80))
def test_a_dragged_border_comes_along_as_far_as_both_sides_can_be_read(
    tree: Node, width: int, height: int, x: int, y: int
) -> None:
    area = Rect(0, 0, width, height)
    tree = tiling.fold(tree, area, next(tiling.leaves(tree)).id)
    before = tiling.regions(tree, area)
    lines = [(bx, by) for bx in range(width) for by in range(0, height, 3) if tiling.border_at(tree, area, bx, by)]
    held = {place.x - 1 for place in before.values()} | {place.y for place in before.values()}
    assert all(bx in held or by in held for bx, by in lines)
    way = tiling.border_at(tree, area, *lines[0]) if lines else None
    if way is not None:
        moved = tiling.drag(tree, area, way, x, y)
        assert [leaf.id for leaf in tiling.leaves(moved)] == [leaf.id for leaf in tiling.leaves(tree)]
        assert tiling.from_data(tiling.to_data(moved)) == moved, "it can be saved"


def test_a_border_is_dragged_to_where_the_mouse_is() -> None:
    area = Rect(0, 0, 141, 40)
    tree = Split(True, Leaf(1), Split(False, Leaf(2), Leaf(3)))
    assert tiling.border_at(tree, area, 70, 5) == ()
    assert tiling.border_at(tree, area, 100, 20) == (1,)
    assert tiling.border_at(tree, area, 100, 21) is None
    wider = tiling.drag(tree, area, (), 90, 5)
    assert tiling.regions(wider, area)[1].width == 90
    assert tiling.regions(tiling.drag(tree, area, (), 5, 5), area)[1].width == tiling.MIN_WIDTH
    assert tiling.regions(tiling.drag(wider, area, (1,), 100, 30), area)[3].y == 30


def test_the_wall_ranks_who_needs_somebody_then_the_newest_and_last_what_ended() -> None:
    def made(sid: str, group: str, created: str, ended: bool = False) -> SessionRow:
        return SessionRow(sid, sid, "", group, "", "", created=created, ended=ended)

    rows = [
        made("old", RUNNING, "1"),
        made("new", RUNNING, "3"),
        made("asks", NEEDS_YOU, "2"),
        made("over", REVIEW, "9", ended=True),
        made("broken", ERRORS, "1"),
    ]
    assert ranked(rows) == ["asks", "broken", "new", "old", "over"]


# -- keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", list(keymap.PRESETS))
def test_presets_have_no_conflicts(preset: str) -> None:
    assert keymap.build(preset, {}).keys.keys() == registry.BY_ID.keys()


def test_own_keys_win_and_a_conflict_names_both_actions() -> None:
    assert keymap.build("default", {"pane.zoom": "Z, ctrl+b z"}).keys["pane.zoom"] == ("Z", "ctrl+b z")
    with pytest.raises(keymap.KeymapError, match=r"'p'.*session\.pause.*pane\.zoom"):
        keymap.build("default", {"pane.zoom": "p"}, Path("config.toml"))
    with pytest.raises(keymap.KeymapError, match=r"no action .pane\.zoomm."):
        keymap.build("default", {"pane.zoomm": "p"})
    with pytest.raises(keymap.KeymapError, match="not a preset"):
        keymap.build("emacs", {})
    with pytest.raises(keymap.KeymapError, match="opens a sequence"):
        keymap.build("tmux", {"pane.pin": "ctrl+b"})


@pytest.mark.parametrize("key", ["a", "y", "enter", "A", "shift+a", "space"])
def test_approving_can_never_be_put_on_a_bare_key(key: str) -> None:
    with pytest.raises(keymap.KeymapError, match="too easily pressed"):
        keymap.build("default", {"queue.approve": key})


def test_sequences_are_known_by_their_prefix() -> None:
    keys = keymap.build("tmux", {})
    assert keys.prefixes == {"ctrl+b"}
    assert keys.sequences["ctrl+b", "percent_sign"] == ["pane.split_right"]
    assert keys.shown("pane.split_right") == "ctrl+b %"


@given(st.sampled_from(sorted({key for action in registry.ACTIONS for key in action.keys})))
def test_a_key_reads_back_as_it_is_shown(key: str) -> None:
    if registry.show_key(key) not in "↑↓←→" and "pg" not in registry.show_key(key) and key != "escape":
        assert keymap.parse_keys(registry.show_key(key)) == (key,)


def test_the_documented_keys_are_current() -> None:
    docs = Path(__file__).parents[2] / "docs" / "keys.md"
    assert docs.read_text("utf-8") == registry.markdown(), (
        "docs/keys.md is stale: python -m app.action_table.registry > docs/keys.md"
    )


def test_every_action_has_words_and_a_known_scope() -> None:
    for action in registry.ACTIONS:
        assert action.title
        assert action.help.endswith(".")
        assert set(action.scopes) <= set(SCOPES)
        assert action.bar == 0 or action.label


def test_themes_cycle() -> None:
    assert [theme.name for theme in themes.themes()] == list(themes.NAMES)
    assert themes.following("ansi") == "dark"


# -- arming ----------------------------------------------------------------------------------------

KEY = ("a1", "hash", "80x20")


def test_a_card_arms_after_half_a_second_of_being_whole() -> None:
    state = Arming().observe(KEY, False, 0.0)
    assert "scroll" in state.refusal(9.0)
    state = state.observe(KEY, True, 10.0)
    assert state.refusal(10.0 + ARM_S - 0.01)
    assert not state.refusal(10.0 + ARM_S)


def test_a_card_that_is_not_painted_yet_is_not_said_to_have_more_below() -> None:
    keys = keymap.build("default", {})
    state = Arming().observe(KEY, False, 0.0, begun=False)
    assert "only just appeared" in state.refusal(9.0)
    assert "looking" in armed(keys, Looked(state, at_end=False), 9.0, "approves").plain
    state = state.observe(KEY, False, 9.1)
    assert "more below" in armed(keys, Looked(state, at_end=False), 9.1, "approves").plain


@given(st.lists(st.floats(0.0, 1.0), max_size=40))
def test_any_burst_of_early_presses_never_finds_the_card_armed(offsets: list[float]) -> None:
    """Presses no further apart than half a second keep starting the wait over, so a held or replayed key cannot
    decide.
    """
    state = Arming().observe(KEY, True, 0.0)
    now = 0.0
    for gap in offsets:
        now += min(gap, ARM_S - 0.001)
        assert state.refusal(now)
        state = state.pressed(now).observe(KEY, True, now)


@given(st.sampled_from([("a2", "hash", "80x20"), ("a1", "other", "80x20"), ("a1", "hash", "60x20")]), st.floats(0, 100))
def test_anything_new_on_screen_starts_over(other: tuple[str, ...], at: float) -> None:
    state = Arming().observe(KEY, True, 0.0).observe(other, True, at)
    assert state.refusal(at)


# -- drawing ---------------------------------------------------------------------------------------


@given(st.text(), st.integers(1, 80))
def test_fitting_is_exact_in_cells(text: str, width: int) -> None:
    assert cell_len(cells.fit(cells.safe(text, width), width)) == width


@given(st.text(alphabet=st.characters(min_codepoint=0, max_codepoint=0x2FF)), st.integers(1, 60))
def test_what_is_shown_never_acts(text: str, width: int) -> None:
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in cells.safe(text, width))


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (0, "$0.00"),
        (410_000, "<$0.001"),
        (4_100_000, "$0.004"),
        (410_000_000, "$0.41"),
        (12_300_000_000, "$12.30"),
        (1_240_000_000_000, "$1,240"),
    ],
)
def test_money(nano: int, text: str) -> None:
    assert formatting.money(nano) == text


@given(st.integers(0, 200), st.floats(0, 4.99), st.floats(0, 4.99))
def test_two_places_that_show_an_age_within_one_step_say_the_same(steps: int, one: float, other: float) -> None:
    then = 1_767_225_600.0 + 3
    begin = 1_767_225_600.0 + steps * formatting.AGES_S
    said = {formatting.age("2026-01-01T00:00:03.000Z", begin + at) for at in (one, other)}
    assert said == {formatting.span(begin - then)}


def test_ages_are_short_and_never_negative() -> None:
    now = formatting.parse_ts("2026-11-21T10:00:00.000Z")
    assert now is not None
    assert formatting.age("2026-11-21T09:59:55.000Z", now) == "5s"
    assert formatting.age("2026-11-21T09:59:51.000Z", now) == "5s"
    assert formatting.age("2026-11-21T09:59:01.000Z", now) == "55s"
    assert formatting.age("2026-11-21T11:59:55.000Z", now) == "0s"
    assert formatting.age("2026-11-18T11:59:55.000Z", now) == "2d"
    assert formatting.age("never", now) == ""


@given(st.integers(0, 10**12), st.integers(1, 10**12), st.integers(1, 40))
def test_a_meter_is_full_only_at_the_cap(used: int, limit: int, width: int) -> None:
    whole, rest = cells.bar(used, limit, width)
    assert len(whole) + len(rest) == width
    assert bool(whole) == (used > 0)
    if width > 1:
        assert (not rest) == (used >= limit)


def _row(sid: str, group: str, since: str = "2026-11-21T09:00:00Z") -> SessionRow:
    return SessionRow(sid=sid, name=sid, state="running", group=group, detail="", since=since, created=since)


@given(
    st.lists(
        st.tuples(st.uuids().map(str), st.sampled_from(["needs you", "running", "done", "new group"])), max_size=20
    ),
    st.booleans(),
)
def test_the_list_shows_every_session_once(rows: list[tuple[str, str]], dense: bool) -> None:
    made = ordered(_row(sid, group) for sid, group in rows)
    assert sorted(r.sid for r in made) == sorted(sid for sid, _ in rows)
    items = layout(made, rows[0][0] if rows else "", dense=dense)
    assert sorted(i.row.sid for i in items if i.row and i.part == 0) == sorted(sid for sid, _ in rows)
    assert len({i.group for i in items if i.row is None}) == sum(1 for i in items if i.row is None)


def test_the_queue_weighs_stake_against_age_and_puts_deferred_last() -> None:
    def view(ident: str, risk: str, ts: str, deferred: str | None = None) -> ApprovalView:
        return ApprovalView(
            approval_id=ident,
            sid="s",
            session_name="n",
            kind="tool",
            title="t",
            options=["allow"],
            risk=risk,
            ts=ts,
            seq=1,
            deferred=deferred,
        )

    now = formatting.parse_ts("2026-11-21T10:10:00Z")
    assert now is not None
    views = [
        view("old-low", "low", "2026-11-21T10:00:00Z"),
        view("new-critical", "critical", "2026-11-21T10:08:30Z"),
        view("new-medium", "medium", "2026-11-21T10:09:00Z"),
        view("deferred", "critical", "2026-11-20T10:00:00Z", ""),
    ]
    assert [v.approval_id for v in by_weight(views, now)] == ["new-critical", "old-low", "new-medium", "deferred"]


# -- plan files ------------------------------------------------------------------------------------


def test_plan_files_of_all_known_kinds_are_counted() -> None:
    prd = json.dumps(
        {
            "project": "Shop",
            "userStories": [
                {"id": "US-1", "title": "Cart", "passes": True},
                {"id": "US-2", "title": "Pay", "passes": False, "notes": "later"},
            ],
        }
    )
    assert plan_view.parse("prd.json", prd)[1:] == (1, 2)
    assert plan_view.parse("feature_list.json", json.dumps([{"description": "x", "passes": False}]))[1:] == (0, 1)
    assert plan_view.parse("prd.json", json.dumps({"tasks": [{"id": "T-1", "title": "a", "passes": True}]}))[1:] == (
        1,
        1,
    )
    assert plan_view.parse("PLAN.md", "# Plan\n- [x] one\n- [ ] two\n* [X] three\ntext")[1:] == (2, 3)
    lines, _, _ = plan_view.parse("prd.json", '{"half')
    assert lines[0].kind == "note"
    assert lines[1].text == '{"half'


@given(st.text(), st.sampled_from(plan_view.FILES))
def test_any_text_in_a_plan_file_is_shown_somehow(text: str, name: str) -> None:
    lines, done, total = plan_view.parse(name, text)
    assert 0 <= done <= total <= len(lines)


def test_links_and_pipes_are_never_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("top secret")
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "PLAN.md").symlink_to(secret)
    os.mkfifo(folder / "TODO.md")
    (folder / "progress.txt").write_text("one\n")
    assert plan_view.stamps(folder).keys() == {"progress.txt"}
    files = {file.name: file for file in plan_view.read(folder, ["PLAN.md", "TODO.md", "progress.txt"])}
    assert files["PLAN.md"].lines[0].kind == files["TODO.md"].lines[0].kind == "note"
    assert files["progress.txt"].lines[0].text == "one"


def test_a_huge_plan_file_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "progress.txt").write_bytes(b"x\n" * plan_view.MAX_BYTES)
    (file,) = plan_view.read(tmp_path, ["progress.txt"])
    assert file.lines[-1].text.endswith("more bytes")
    assert len(file.lines) <= plan_view.MAX_LINES + 2


# -- the launch form -------------------------------------------------------------------------------


def test_the_form_becomes_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    cfg = Config(file=tmp_path / "config.toml")
    request = request_of(Wish(str(tmp_path), " do it ", "pytest -q\n\nmake lint", "n", "", "2.50"), cfg)
    assert request.goal == "do it"
    assert request.checks == ["pytest -q", "make lint"]
    assert request.caps is not None
    assert request.caps.usd_nano == 2_500_000_000
    assert request.model == cfg.model.default
    assert request.credential is None
    assert request_of(Wish(str(tmp_path), "x", "", "", "", "none"), cfg).caps == Caps()


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (Wish("/no/such/folder", "x", "", "", "", "1"), "repo"),
        (Wish("/", " ", "", "", "", "1"), "goal"),
        (Wish("/", "x", "", "", "", "lots"), "cap"),
    ],
)
def test_the_form_names_the_field_that_is_wrong(wish: Wish, field: str) -> None:
    with pytest.raises(FieldError) as caught:
        request_of(wish, Config(file=Path("config.toml")))
    assert caught.value.field == field


# -- the walls -------------------------------------------------------------------------------------


@given(st.text())
def test_the_last_wall_leaves_nothing_that_acts(text: str) -> None:
    wall = NoControl()
    (segment,) = wall.apply([Segment(text)], Color(0, 0, 0))
    assert not any(
        ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069
        for c in segment.text
    )
    assert wall.hits == len(text) - len(segment.text)


def test_the_last_wall_lets_the_framework_and_wide_letters_pass() -> None:
    wall = NoControl()
    segments = [Segment("日本 é ✓ ━"), Segment("\x1b[H", None, [(1,)])]  # type: ignore[list-item]
    assert wall.apply(segments, Color(0, 0, 0)) == segments
    assert wall.hits == 0


ANSWERS = (
    "\x1b]11;rgb:aaaa/aaaa/aaaa\x1b\\",
    "\x1b]4;5;rgb:aa/aa/aa\x07",
    "\x1bP1$r0m\x1b\\",
    "\x1b_Gi=1;OK\x1b\\",
    "\x1bP1+r61=1b\x1b\\",
    "\x1b]52;c;GRk=\x07",
)


@given(
    st.lists(st.one_of(st.sampled_from(ANSWERS), st.text(string.ascii_letters, min_size=1, max_size=4)), max_size=8),
    st.data(),
)
def test_answers_vanish_and_keys_stay_however_the_bytes_are_cut(parts: list[str], data: st.DataObject) -> None:
    stream = "".join(parts)
    wanted = "".join(part for part in parts if part not in ANSWERS)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=4))) if len(stream) > 1 else []
    walls = ReplyFilter()
    got = "".join(walls.feed(stream[a:b], 0.0) for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True) if a != b)
    # A read that ends in an escape has passed it on already: at worst that is the escape key, which cancels.
    assert got.replace("\x1b", "") == wanted
    assert walls.expire(9.0) == ""


@pytest.mark.parametrize("key", ["\x1b", "\x1bx", "\x1b[A", "\x1b[<0;1;1M", "\x1b[200~hi\x1b[201~", "q", "\x19"])
def test_what_a_person_types_passes(key: str) -> None:
    assert ReplyFilter().feed(key, 0.0) == key


@pytest.mark.parametrize("key", ["\x1b]", "\x1bP", "\x1b_"])
def test_alt_and_an_opener_passes_when_nothing_follows(key: str) -> None:
    wall = ReplyFilter()
    assert wall.feed(key, 0.0) == ""
    assert wall.expire(0.1) == ""
    assert wall.expire(0.4) == key
    assert wall.feed("q", 0.5) == "q"


def test_escape_and_a_bracket_typed_by_a_person_both_arrive() -> None:
    wall = ReplyFilter()
    assert wall.feed("\x1b", 0.0) == "\x1b"
    assert wall.feed("]", 0.2) == "]"
    assert wall.feed("\x1b", 1.0) == "\x1b"
    assert wall.feed("]", 1.02) == ""
    assert wall.expire(1.5) == "]"


def test_an_answer_without_end_does_not_hold_the_keyboard_for_ever() -> None:
    wall = ReplyFilter()
    assert wall.feed("\x1b]11;" + "x" * 9000, 0.0) == ""
    assert wall.feed("q", 0.1) == "q"
    assert wall.feed("\x1b]1", 1.0) == ""
    assert wall.expire(1.4) == ""
    assert wall.feed("q", 1.5) == "q"


def test_the_payloads_are_really_dangerous() -> None:
    wall = NoControl()
    for payload in PAYLOADS[:12]:
        wall.apply([Segment(payload)], Color(0, 0, 0))
    assert wall.hits >= 12


def test_a_layout_in_which_no_pane_follows_gets_one_that_does_unless_all_are_pinned() -> None:
    a = tiling.Leaf(1, "a", pinned=True)
    tree = tiling.Split(True, a, tiling.Leaf(2, "b"))
    assert [leaf.sid for leaf in tiling.leaves(tiling.following(tree))] == ["a", tiling.FOLLOW]
    all_pinned = tiling.pin(tree, 2, "b")
    assert tiling.following(all_pinned) == all_pinned
    assert [leaf.sid for leaf in tiling.leaves(tiling.pin(tree, 1, "b"))] == ["b", tiling.FOLLOW]


@given(st.text(st.sampled_from("ab日 "), max_size=30), st.integers(0, 40), st.integers(0, 20))
def test_a_window_on_a_line_says_at_which_end_more_of_it_is(text: str, left: int, width: int) -> None:
    shown = cells.window(text, Style.null(), left, width, Style.null()).text
    assert cells.length(shown) == width
    if width > 2:
        assert shown.endswith("…") == (cells.length(text) > left + width)
        assert shown.startswith("…") == (left > 0 and bool(text))
    if not left and cells.length(text) <= width:
        assert shown.rstrip() == text.rstrip()

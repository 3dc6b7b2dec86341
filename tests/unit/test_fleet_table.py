"""The fleet's table without a screen: what a filter means, how rows stand, what a cell says, what an act reaches."""

from __future__ import annotations

import re
import string
import time
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.framework import bulk
from harness.projections.state.spend_rate import KEPT, STEP_S, Burned, lately, per_hour
from harness.views.session_views import GROUPS, SessionRow
from widgets.base import cells
from widgets.base.cells import MARKS
from widgets.fleet import fleet_columns
from widgets.fleet.fleet_filter import KEYS, Filter, FilterError, Term, parse
from widgets.fleet.fleet_order import GROUPINGS, SORTINGS, View, entries, neighbour

NOW = 1_800_000_000.0
HOSTILE = st.text(st.characters(codec="utf-8"), max_size=30)
STATES = st.sampled_from(sorted(MARKS))


def stamp(seconds_ago: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW - seconds_ago))


def row(sid: str = "s", **fields: object) -> SessionRow:
    given_ = {"name": sid, "state": "running", "group": "running", "detail": "", "since": stamp(60)}
    return SessionRow(sid=sid, **(given_ | {"created": stamp(3600)} | fields))  # type: ignore[arg-type]


ROWS = st.lists(
    st.builds(
        row,
        st.uuids().map(str),
        name=HOSTILE,
        repo=HOSTILE,
        detail=HOSTILE,
        state=STATES,
        group=st.sampled_from([*GROUPS, "a group of tomorrow"]),
        spent_nano=st.integers(0, 10**12),
        plan_passed=st.integers(0, 5),
        plan_total=st.integers(0, 5),
        since=st.sampled_from([stamp(5), stamp(90_000), "", "no time"]),
        files=st.none() | st.integers(0, 10**6),
        lines_added=st.integers(0, 10**9),
        lines_removed=st.integers(0, 10**9),
        burned=st.lists(st.integers(0, 10**9), max_size=KEPT),
        burned_step=st.just(int(NOW // STEP_S) - 1),
    ),
    max_size=12,
    unique_by=lambda r: r.sid,
)


def meant(text: str, *rows: SessionRow) -> list[str]:
    return [r.sid for r in rows if parse(text).test(NOW)(r)]


# -- filters ---------------------------------------------------------------------------------------


def test_a_filter_means_what_it_says() -> None:
    a = row("a", name="fix Login", repo="/home/you/shop", state="waiting", group="needs you", approvals=["x"])
    b = row("b", name="port", repo="/srv/core", spent_nano=2_000_000_000, created=stamp(8000))
    c = row("c", name="tidy up", repo="/srv/core", state="done", group="to review", verified=True, ended=True)
    for text, sids in (
        ("", "abc"),
        ("login", "a"),
        ("state:waiting", "a"),
        ("state:wai,run", "ab"),
        ("STATE:Done", "c"),
        ("-state:done", "ab"),
        ("repo:core port", "b"),
        ("repo:core -port", "c"),
        ('"tidy up"', "c"),
        ('name:"x L",login', "a"),
        ("group:review,needs", "ac"),
        ('group:"to r"', "c"),
        ("is:asking", "a"),
        ("is:verified is:ended", "c"),
        ("spent:>1.5", "b"),
        ("spent:<$1.50", "ac"),
        ("age:>2h", "b"),
        ("age:<120m", "ac"),
        ("-", ""),
    ):
        assert "".join(meant(text, a, b, c)) == sids, text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("stat:waiting", 'stat: is nothing to filter by; known: state, .*as a text: "stat:waiting"'),
        ("state:", "state: needs a value, such as state:waiting"),
        ("state:asleep", "state:asleep is unknown; state can be: waiting, running"),
        ("is:", "is: needs a value, such as is:verified"),
        ("spent:much", "spent:much is no limit; write it as spent:>1.50, or with <"),
        ("spent:>2h", "spent:>2h is no limit"),
        ("age:>2", "age:>2 is no limit; write it as age:>2h, or with <"),
        (",", "a comma stands alone"),
    ],
)
def test_a_wrong_filter_says_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(FilterError, match=told):
        parse(text)


VALUE = st.text(st.characters(codec="utf-8", exclude_characters='"'), min_size=1, max_size=12)
TERMS = st.one_of(
    st.builds(
        Term, st.sampled_from(["", "repo", "name", "branch"]), st.lists(VALUE, min_size=1, max_size=3).map(tuple)
    ),
    st.builds(Term, st.just("state"), st.lists(STATES, min_size=1, max_size=3).map(tuple), st.booleans()),
    st.builds(
        Term,
        st.just("age"),
        st.tuples(st.builds("{}{}{}".format, st.sampled_from("<>"), st.integers(0, 99), st.just("h"))),
    ),
)


PLAIN = re.compile(r'[^\s:",-][^\s:",]*')


def spelled(wanted: Filter) -> str:
    """A text that means this filter."""
    return " ".join(
        ("-" if term.negated else "")
        + (term.key and term.key + ":")
        + ",".join(value if PLAIN.fullmatch(value) else f'"{value}"' for value in term.values)
        for term in wanted.terms
    )


@given(st.lists(TERMS, max_size=4))
def test_a_filter_that_is_spelled_reads_back_as_itself(terms: list[Term]) -> None:
    wanted = Filter(tuple(terms))
    assert parse(spelled(wanted)) == wanted


@given(st.text(st.sampled_from(string.printable + "ä⟨\u202e" + '":-,<>$'), max_size=40), ROWS)
def test_no_text_breaks_a_filter_and_a_minus_turns_it_round(text: str, rows: list[SessionRow]) -> None:
    try:
        wanted = parse(text)
    except FilterError:
        return
    assert all(term.key in ("", *KEYS) and term.values for term in wanted.terms)
    for term in wanted.terms:
        one = Filter((term,))
        other = Filter((Term(term.key, term.values, not term.negated),))
        assert all(one.test(NOW)(r) != other.test(NOW)(r) for r in rows)
    assert [r for r in rows if wanted.test(NOW)(r)] == [
        r for r in rows if all(Filter((term,)).test(NOW)(r) for term in wanted.terms)
    ]


# -- order -----------------------------------------------------------------------------------------

VIEWS = st.builds(View, st.sampled_from(sorted(SORTINGS)), st.booleans(), st.sampled_from(GROUPINGS))


@given(ROWS, VIEWS)
def test_every_session_stands_once_in_its_order_and_under_its_title(rows: list[SessionRow], view: View) -> None:
    made = entries(rows, view, NOW)
    shown = [entry.row for entry in made if entry.row is not None]
    assert sorted(r.sid for r in shown) == sorted(r.sid for r in rows)
    titles = [entry for entry in made if entry.row is None]
    assert sum(entry.count for entry in titles) == (len(rows) if view.group else 0)
    assert len({entry.title for entry in titles}) == len(titles)
    if not view.group:
        keys = [SORTINGS[view.sort].key(r, NOW) for r in shown]
        assert keys == sorted(keys, reverse=view.descending)
    assert entries(reversed(rows), view, NOW) == made, "the order of arrival says nothing"


def test_the_same_column_again_turns_the_order_round_and_another_begins_anew() -> None:
    view = View().sorted_by("spent")
    assert view.descending
    assert not view.sorted_by("spent").descending
    assert view.sorted_by("spent").sorted_by("name") == View("name")
    assert [View(), View().regrouped(), View().regrouped().regrouped()] == [View(group=g) for g in GROUPINGS]
    assert View(group=GROUPINGS[-1]).regrouped() == View()


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef")))
def test_who_vanishes_leaves_its_place_to_a_neighbour(before: Sequence[str], gone: str, alive: set[str]) -> None:
    found = neighbour(before, gone, alive - {gone})
    assert (found in before and found in alive and found != gone) or found == ""
    assert bool(found) == (gone in before and bool(set(before) & alive - {gone}))


# -- cells -----------------------------------------------------------------------------------------


@given(ROWS, st.integers(1, 260))
def test_cells_are_as_wide_as_their_columns_and_together_as_the_screen(rows: list[SessionRow], width: int) -> None:
    columns = fleet_columns.placed(width, needed=fleet_columns.longest(rows))
    assert sum(cell for _, cell in columns) <= width
    if width >= 60:
        there = [column.id for column, _ in fleet_columns.placed(width)]
        assert [column.id for column, _ in columns] == there, "which columns there are depends on the screen alone"
    for column, cell in columns:
        assert sum(cell_len(text) for text, _ in fleet_columns.head(column, View(column.id), cell)) == cell
        for r in rows:
            assume(cell >= 6)
            texts = fleet_columns.text_of(r, column, cell - 2 if column.id == "state" else cell, NOW)
            assert sum(cell_len(text) for text, _ in texts) == (cell - 2 if column.id == "state" else cell)
            assert all(ch.isprintable() for text, _ in texts for ch in text)


@given(st.text(min_size=1, max_size=40), st.sampled_from([80, 100, 120, 160, 200]))
def test_what_short_names_leave_goes_to_what_a_session_does(name: str, width: int) -> None:
    needed = fleet_columns.longest([row("a", name=name), row("b", name="x")])
    assert needed["name"] == max(1, cell_len(cells.safe(name, 30)))
    wide = {column.id: cell for column, cell in fleet_columns.placed(width)}
    made = {column.id: cell for column, cell in fleet_columns.placed(width, needed=needed)}
    assert made["name"] >= min(wide["name"], needed["name"] + 1), "and no name is cut for it"
    assert made["doing"] - wide["doing"] == sum(wide[key] - made[key] for key in ("name", "repo") if key in wide)


def test_a_click_finds_the_column_below_it() -> None:
    x = 0
    for column, cell in fleet_columns.placed(120):
        assert fleet_columns.column_at(120, x) == fleet_columns.column_at(120, x + cell - 1) == column.id
        x += cell
    assert fleet_columns.column_at(120, 500) == ""


# -- burn ------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(-9000, 9000), st.integers(-5, 10**9)), max_size=40))
def test_what_was_burned_is_bounded_and_nothing_of_the_last_hour_is_lost(paid: list[tuple[int, int]]) -> None:
    made = Burned()
    for ago, nano in paid:
        made = made.paid(stamp(ago), nano)
        assert len(made.nano) <= KEPT
        assert all(part >= 0 for part in made.nano)
    moment = NOW
    forward = Burned()
    for _, nano in paid:
        moment += 60
        forward = forward.paid(stamp(NOW - moment), nano)
    kept = [
        nano
        for at, (_, nano) in enumerate(paid)
        if nano > 0 and (NOW + 60 * (at + 1)) // STEP_S > moment // STEP_S - KEPT
    ]
    assert sum(lately(forward.step, forward.nano, moment)) == sum(kept)


def test_a_rate_is_of_the_time_that_there_is() -> None:
    young = Burned().paid(stamp(0), 1_000_000_000)
    assert per_hour(young.step, young.nano, NOW) == 12_000_000_000
    assert per_hour(young.step, young.nano, NOW + 7200) == 0
    old = Burned()
    for ago in range(3600 * 2, -1, -60):
        old = old.paid(stamp(ago), 10_000_000)
    assert per_hour(old.step, old.nano, NOW) == pytest.approx(600_000_000, rel=0.1)
    assert Burned().paid("no time", 5).paid("", 5).nano == (10,)


# -- many at once ----------------------------------------------------------------------------------


@given(st.lists(st.booleans(), max_size=20))
def test_an_act_reaches_those_that_it_can_and_says_why_not_the_rest(can: list[bool]) -> None:
    rows = [row(str(at), ended=not yes) for at, yes in enumerate(can)]
    act = bulk.Act("stop", "Stop", "", "", "stopping", lambda r: f"{r.name} has ended" if r.ended else "")
    found = bulk.reach(act, rows)
    assert [r.sid for r in found.targets] == [str(at) for at, yes in enumerate(can) if yes]
    assert [why for _, why in found.spared] == [f"{at} has ended" for at, yes in enumerate(can) if not yes]


def test_what_became_of_it_is_one_sentence() -> None:
    act = bulk.Act("stop", "Stop", "", "", "stopping", lambda r: "")
    assert bulk.outcome(act, 1, {}) == "1 session stopping"
    assert bulk.outcome(act, 1, {}, ["a still waits"]) == "1 session stopping; a still waits"
    assert bulk.outcome(act, 2, {"a": "gone"}) == "2 sessions stopping; 1 refused: a: gone"
    many = bulk.outcome(act, 0, {name: "gone" for name in "abcde"})
    assert many == "0 sessions stopping; 5 refused: a: gone, b: gone, c: gone, and 2 more"

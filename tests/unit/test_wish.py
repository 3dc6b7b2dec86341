"""The launch form's fields: they make one request, the command line shown makes the same, and what was launched is
remembered without a secret.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli.grammar import parser
from app.cli.verbs import sessions
from app.launch import launch_form, launch_history
from app.launch.launch_form import FieldError, Wish
from harness.protocol.config.choices import FRESH, JUDGE_AT
from harness.protocol.config.config import Config

CFG = Config(file=Path("/nowhere/config.toml"))
TEXT = st.text(min_size=1, max_size=20).filter(lambda text: bool(text.strip()))
LINE = TEXT.map(lambda text: " ".join(text.split())).filter(lambda text: bool(text) and len(text.splitlines()) == 1)
OPTIONAL = st.one_of(st.just(""), LINE)
LINES = st.lists(LINE, max_size=3).map("\n".join)
NUMBER = st.one_of(st.just(""), st.integers(0, 10**9).map(str), st.just("1,000"))
WISHES = st.builds(
    Wish,
    repo=st.just("/"),
    goal=TEXT,
    checks=LINES,
    name=OPTIONAL,
    model=OPTIONAL,
    cap=st.sampled_from(["none", "5.00", "2", "$0.5", "0"]),
    branch=OPTIONAL,
    plan=OPTIONAL,
    write_plan=OPTIONAL,
    gates=LINES,
    fresh=st.sampled_from(["", *FRESH]),
    tokens=NUMBER,
    wall=st.sampled_from(["", "90m", "8h", "1d 2h"]),
    calls=NUMBER,
    judge=st.sampled_from(["judge", "review"]),
    judge_model=OPTIONAL,
    judge_cycles=st.sampled_from(["", "3"]),
    judge_at=st.sampled_from(["", *JUDGE_AT]),
    role=OPTIONAL,
    protect=LINES,
    may_change=LINES,
)


@settings(max_examples=150, deadline=None)
@given(WISHES)
def test_the_command_that_is_shown_launches_the_same(one: Wish) -> None:
    words = launch_form.command_of(one, CFG)
    args = parser.build().parse_args(words[1:])
    assert sessions.requested(args, CFG, args.goal, args.check) == launch_form.request_of(one, CFG)


def test_a_value_that_looks_like_the_end_of_options_is_a_value() -> None:
    args = parser.build().parse_args(["launch", "--repo=/", "--goal=--", "--check=--"])
    assert (args.goal, args.check) == ("--", ["--"])


def test_a_field_that_is_as_it_began_is_in_no_command() -> None:
    one = replace(launch_form.first(CFG, "/"), goal="mend it")
    assert launch_form.command_of(one, CFG) == ["watchfloor", "launch", "--repo", "/", "--goal", "mend it"]


@pytest.mark.parametrize(
    ("field", "text", "says"),
    [
        ("repo", "/no/such/folder", "no such folder"),
        ("goal", " ", "what the agent should achieve"),
        ("cap", "lots", "not an amount in USD"),
        ("cap", "", "not an amount in USD"),
        ("tokens", "many", "not a whole number"),
        ("calls", "-1", "not a whole number"),
        ("wall", "soon", "not a duration"),
        ("fresh", "often", "none of"),
        ("judge", "maybe", "none of"),
        ("judge_cycles", "x", "not a whole number"),
        ("judge_at", "noon", "none of"),
    ],
)
def test_what_cannot_be_used_names_its_field(field: str, text: str, says: str) -> None:
    one = replace(launch_form.first(CFG, "/"), **{"goal": "mend it", "judge": "judge", field: text})
    with pytest.raises(FieldError, match=says) as caught:
        launch_form.request_of(one, CFG)
    assert caught.value.field == field


def test_a_judge_that_was_not_asked_for_is_not_told_how() -> None:
    with pytest.raises(FieldError) as caught:
        launch_form.request_of(replace(launch_form.first(CFG, "/"), goal="x", judge_cycles="2"), CFG)
    assert caught.value.field == "judge"


@pytest.mark.parametrize(
    ("code", "message", "field"),
    [
        ("not_git", "x is not a git repository", "repo"),
        ("bad_start", "'x' is no branch", "branch"),
        ("bad_plan", "x is no plan", "plan"),
        ("bad_role", "there is no role 'x'", "role"),
        ("bad_role", "a judge looks at most 20 times, not 40", "judge_cycles"),
        ("bad_plan", "a judge looks at tasks only where a plan is", "judge_at"),
        ("bad_plan", "--fresh says when the context of a plan begins anew", "fresh"),
        ("bad_pattern", "x", "protect"),
        ("other", "who knows", ""),
    ],
)
def test_a_refusal_stands_beside_the_field_that_it_is_about(code: str, message: str, field: str) -> None:
    assert launch_form.about(code, message) == field


# -- what was launched before ----------------------------------------------------------------------


def test_the_latest_stands_first_and_once(tmp_path: Path) -> None:
    known = launch_history.load(tmp_path)
    for number in range(launch_history.MOST + 5):
        known = launch_history.launched(known, replace(launch_form.first(CFG, "/"), goal=f"goal {number}"))
    known = launch_history.launched(known, replace(launch_form.first(CFG, "/"), goal="goal 50", checks="true"))
    known = launch_history.kept(known, "mine", known.past[1])
    launch_history.store(tmp_path, known)
    again = launch_history.load(tmp_path)
    assert again == known
    assert [one.goal for one in again.past][:3] == ["goal 50", "goal 54", "goal 53"]
    assert len(again.past) == launch_history.MOST
    assert (tmp_path / launch_history.FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("field", ["goal", "checks", "name"])
def test_a_launch_with_a_secret_in_it_is_not_remembered(field: str) -> None:
    one = replace(launch_form.first(CFG, "/"), **{"goal": "x", field: "use ghp_0123456789abcdefABCDEF0123456789"})
    assert launch_history.launched(launch_history.Launches(), one) == launch_history.Launches()


@pytest.mark.parametrize("text", [b"", b"\xff", b"{}", b"[]", b'{"past":[{"goal":1}]}'])
def test_what_cannot_be_read_counts_as_nothing(tmp_path: Path, text: bytes) -> None:
    (tmp_path / launch_history.FILE).write_bytes(text)
    assert launch_history.load(tmp_path) == launch_history.Launches()

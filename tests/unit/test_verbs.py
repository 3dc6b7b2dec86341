"""Every verb that the command line understands leads to a function that exists."""

from __future__ import annotations

import importlib
import re

import pytest

from app.cli.grammar import parser
from app.cli.grammar.registry import GROUPS, VERBS


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lss"], "did you mean ls?"),
        (["xyzzy"], "see them with: watchfloor --help"),
        (["show"], "list them with: watchfloor ls"),
        (["deny"], "list them with: watchfloor approvals"),
        (["memory", "list"], "'ls'"),
    ],
)
def test_what_was_most_likely_meant_is_said(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser.build().parse_args(words)
    assert says in capsys.readouterr().err


def test_each_leads_to_a_function() -> None:
    assert [verb.name for verb in VERBS.values() if not verb.run] == ["attach"], "the screen, which is no function"
    for module, _, function in (verb.run.partition(":") for verb in VERBS.values() if verb.run):
        assert callable(getattr(importlib.import_module(f"app.{module}"), function))


def test_the_help_lists_each_verb_once_in_a_group_of_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    named = [verb.name for group in GROUPS for verb in group.verbs]
    assert len(named) == len(set(named))
    with pytest.raises(SystemExit):
        parser.build().parse_args(["--help"])
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines() if re.match(r"  [a-z]", line)] == named
    assert max(map(len, said.splitlines())) <= 100


@pytest.mark.parametrize(
    "words",
    [
        ["launch", "--goal", "x", "--repo", ""],
        ["launch", "--goal", "x", "--model", " "],
        ["launch", "--goal", "x", "--judge-model", ""],
        ["launch", "--goal", "x", "--role", ""],
        ["launch", "--goal", "x", "--plan", ""],
        ["launch", "--goal", "x", "--name", ""],
        ["merge", "one", "--into", ""],
        ["merge", "one", "--repo", ""],
        ["pr", "one", "--into", ""],
        ["pr", "one", "--repo", ""],
        ["pr", "one", "--as", ""],
        ["pr", "one", "--remote", ""],
        ["fork", "one", "--at", ""],
        ["launch", "--goal", "x", "--plan-from-goal", ""],
        ["logs", "one", "--payload", ""],
        ["continue", "one", "--rounds", " "],
        ["continue", "one", "--cap-usd", ""],
        ["demo", "--speed", "nan"],
        ["demo", "--speed", "-1"],
        ["demo", "--speed", "1e9"],
    ],
    ids=" ".join,
)
def test_an_option_that_says_nothing_usable_is_wrong_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.build().parse_args(words)
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"argument {words[-2]}" in said
    assert said.endswith(
        ("is empty: give it a value, or leave the option out", "is no number of seconds from 0 to 3600")
    )


@pytest.mark.parametrize("verb", ["verify", "score", "receipts", "grants", "roles", "brief", "jobs", "approvals"])
def test_an_empty_name_does_not_mean_all(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.build().parse_args([verb, ""])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("is empty: give it a value, or leave the option out\n")
    assert parser.build().parse_args([verb]).verb == verb


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["answer", "one", "--option", "2", "and more"], {"id": "one", "option": 2, "text": "and more"}),
        (["continue", "one", "--cap-usd", "+2", "go on"], {"id": "one", "cap_usd": "+2", "text": "go on"}),
        (["continue", "one", "--check", "a", "go on", "--check", "b"], {"text": "go on", "check": ["a", "b"]}),
        (["export", "one", "--thin", "file"], {"file": "file", "thin": True}),
        (["stop", "one", "--reason", "late", "two"], {"ids": ["one", "two"], "reason": "late"}),
        (["deny", "one", "--json", "two", "no"], {"ids": ["one", "two"], "reason": "no"}),
    ],
)
def test_options_may_stand_anywhere(words: list[str], found: dict[str, object]) -> None:
    given = vars(parser.build().whole(words))
    assert {name: given[name] for name in found} == found


@pytest.mark.parametrize(
    "words", [["show", "one", "two"], ["answer", "one", "--option", "2", "a", "b"], ["memory", "ls", "x"]]
)
def test_a_word_too_many_is_still_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.build().whole(words)
    assert ended.value.code == 2
    assert f"unrecognized arguments: {words[-1]}" in capsys.readouterr().err


def test_what_is_left_out_is_the_default() -> None:
    given = parser.build().parse_args(["merge", "one"])
    assert (given.into, given.repo) == ("", "")
    assert parser.build().parse_args(["launch", "--goal", "x"]).repo == "."

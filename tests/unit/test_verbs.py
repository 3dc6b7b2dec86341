"""Every verb that the command line understands leads to a function that exists."""

from __future__ import annotations

import importlib
import re

import pytest

from app.cli import overview, parser
from app.main import VERBS


def test_the_table_holds_every_verb_but_the_one_that_opens_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser.build().parse_args(["no-such-verb"])
    offered = capsys.readouterr().err.partition("choose from")[2]
    assert set(VERBS) == set(re.findall(r"[a-z]+", offered)) - {"attach"}


def test_each_leads_to_a_function() -> None:
    for module, function in VERBS.values():
        assert callable(getattr(importlib.import_module(f"app.{module}"), function))


def test_the_help_lists_each_verb_once_in_a_group_of_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    named = [name for names in overview.GROUPS.values() for name in names]
    assert len(named) == len(set(named))
    assert set(named) == set(VERBS) | {"attach"}
    with pytest.raises(SystemExit):
        parser.build().parse_args(["--help"])
    said = capsys.readouterr().out
    assert "more:" not in said
    assert [line.split()[0] for line in said.splitlines() if re.match(r"  [a-z]", line)] == named
    assert max(map(len, said.splitlines())) <= 100

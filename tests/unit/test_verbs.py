"""Every verb that the command line understands leads to a function that exists."""

from __future__ import annotations

import argparse
import importlib

from app.cli import parser
from app.main import VERBS


def known() -> set[str]:
    built = parser.build()
    (choices,) = [action.choices for action in built._actions if isinstance(action, argparse._SubParsersAction)]
    return set(choices)


def test_the_table_holds_every_verb_but_the_one_that_opens_the_screen() -> None:
    assert set(VERBS) == known() - {"attach"}


def test_each_leads_to_a_function() -> None:
    for module, function in VERBS.values():
        assert callable(getattr(importlib.import_module(f"app.cli.{module}"), function))

"""A verb of the command line, declared beside its arguments: ``@verb("ls", "cli.verbs.sessions:ls", "list …")``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

Arguments = Callable[[argparse.ArgumentParser], None]
"""Adds the arguments of a verb to its parser."""


class Verb(NamedTuple):
    """``run``: a module below `app` and a function in it, imported when the verb is used; empty: the screen."""

    name: str
    run: str
    words: str
    arguments: Arguments
    json: bool


class Group:
    """Verbs for one purpose, in the order of the help."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.verbs: list[Verb] = []

    def verb(self, name: str, run: str, words: str, *, json: bool = True) -> Callable[[Arguments], Arguments]:
        """Declare a verb whose arguments the decorated function adds; ``json``: it takes ``--json``."""

        def declare(arguments: Arguments) -> Arguments:
            self.verbs.append(Verb(name, run, words, arguments, json))
            return arguments

        return declare


def nothing(_: argparse.ArgumentParser) -> None:
    """No arguments."""

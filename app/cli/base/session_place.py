"""What verbs about one session take first: which."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Verb = Callable[..., argparse.ArgumentParser]
"""Adds a verb to the grammar: its name, what it does in words."""


def named(p: argparse.ArgumentParser) -> None:
    """The verb is about the session that is named."""
    p.add_argument("id", metavar="ID", help="session id, the beginning of one, or its name")

"""What verbs about one session take first: which."""

from __future__ import annotations

import argparse


def named(p: argparse.ArgumentParser) -> None:
    """The verb is about the session that is named."""
    p.add_argument("id", metavar="ID", help="session id, the beginning of one, or its name")

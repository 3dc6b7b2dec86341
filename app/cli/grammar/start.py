"""Verbs that begin work."""

from __future__ import annotations

import argparse
import contextlib

from app.cli.base.session_place import named
from app.cli.grammar import launch
from app.cli.grammar.verb import Group
from harness.domain.text.display_safe import to_display

GROUP = Group("start")
verb = GROUP.verb


def _seconds(text: str) -> float:
    """A number of seconds. Raises ArgumentTypeError for one that nobody can wait for."""
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) <= 3600:
            return value
    raise argparse.ArgumentTypeError(f"{to_display(text)!r} is no number of seconds from 0 to 3600")


@verb("demo", "demo:run", "play four agents against a local model server: no key, no network", json=False)
def demo(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--headless", action="store_true", help="no screen; approve the push, check everything, print JSON lines"
    )
    p.add_argument(
        "--long", action="store_true", help="one agent and a plan of 42 entries, with what days bring, in some minutes"
    )
    p.add_argument("--attach", action="store_true", help="come back to the newest demo that is still running")
    p.add_argument("--stop", action="store_true", help="stop every running demo")
    p.add_argument("--keep", action="store_true", help="keep the headless demo's folders")
    p.add_argument(
        "--speed",
        type=_seconds,
        default=None,
        help="seconds of thinking a turn (default: watchable on a screen, none when headless)",
    )


verb("launch", "cli.verbs.sessions:launch", "start an agent on a repository")(launch.add_launch)
verb(
    "continue",
    "cli.verbs.continue_:go_on",
    "take an ended session up again, with more rounds, budget, words or another check",
)(launch.add_continue)


@verb(
    "fork",
    "cli.verbs.checkpoints:fork",
    "begin another session from a session's checkpoint: its files, commits and plan",
)
def fork(p: argparse.ArgumentParser) -> None:
    named(p)
    p.add_argument("--at", metavar="CHECKPOINT", default="", help="where to begin (default: the work as it is now)")
    p.add_argument("--goal", metavar="TEXT", default="", help="another goal (default: the same)")
    p.add_argument("--name", metavar="N", default="", help="short name (default: made from the goal)")

"""Verbs that load something large only when asked: demo, completion, keys."""

from __future__ import annotations

import argparse

from app.cli import exits
from app.cli.context import Context
from app.cli.output import say


def completion(ctx: Context, args: argparse.Namespace) -> int:
    import shtab

    from app.cli import parser

    say(shtab.complete(parser.build(), shell=args.shell))
    return exits.OK


def keys(ctx: Context, args: argparse.Namespace) -> int:
    from app import actions

    say(actions.key_table(markdown=args.markdown))
    return exits.OK


def demo(ctx: Context, args: argparse.Namespace) -> int:
    from app import demo as play

    return play.run(args)

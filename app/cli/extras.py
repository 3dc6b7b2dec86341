"""Verbs that load something large only when asked: demo, completion, keys."""

from __future__ import annotations

import argparse

from app.cli import exits
from app.cli.context import Context
from app.cli.output import say, table


def completion(ctx: Context, args: argparse.Namespace) -> int:
    import shtab

    from app.cli import parser

    say(shtab.complete(parser.build(), shell=args.shell))
    return exits.OK


def keys(ctx: Context, args: argparse.Namespace) -> int:
    from app import actions, keymap
    from harness.protocol import config as configuration

    ui = configuration.load(ctx.folders).ui
    keys = keymap.build(ui.preset, ui.keys, ctx.folders.config_file).keys
    if args.markdown:
        say(actions.markdown(dict(keys)))
        return exits.OK
    body = [(" ".join(actions.show_key(k) for k in keys.get(a.id, ())), a.id, a.title) for a in actions.ACTIONS]
    for line in table(("KEYS", "ACTION", "WHAT"), body, width=ctx.width):
        say(line)
    return exits.OK


def demo(ctx: Context, args: argparse.Namespace) -> int:
    from app import demo as play

    return play.run(args)

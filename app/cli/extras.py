"""Verbs that load something large only when asked: demo, completion, keys."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from app.cli import exits
from app.cli.context import Context
from app.cli.output import say, table

_REQUESTS = ("approvals", "approve", "reject", "deny", "answer", "defer")
"""Verbs whose ids are those of requests; all others' are those of sessions."""


def completion(ctx: Context, args: argparse.Namespace) -> int:
    import shtab

    from app.cli import parser

    grammar = parser.build()
    of_sessions = shtab.cmd("watchfloor ls --names 2>/dev/null")
    of_requests = shtab.cmd("watchfloor approvals --names 2>/dev/null")
    for name, verb in _verbs(grammar):
        for action in verb._get_positional_actions():
            if action.metavar == "ID":
                action.complete = of_requests if name in _REQUESTS else of_sessions  # type: ignore[attr-defined]
    say(shtab.complete(grammar, shell=args.shell))
    return exits.OK


def _verbs(grammar: argparse.ArgumentParser) -> Iterable[tuple[str, argparse.ArgumentParser]]:
    (verbs,) = (action for action in grammar._actions if isinstance(action, argparse._SubParsersAction))
    return verbs.choices.items()


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

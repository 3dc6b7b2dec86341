"""Verbs that load something large only when asked: demo, completion, keys."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from app.cli.base import exits
from app.cli.base.context import Context
from app.cli.base.output import say, table

_REQUESTS = ("approvals", "approve", "reject", "deny", "answer", "defer")
"""Verbs whose ids are those of requests; all others' are those of sessions."""


def completion(ctx: Context, args: argparse.Namespace) -> int:
    import shtab

    from app.cli.grammar import parser

    grammar = parser.build()
    of_sessions = _asked("sessions", "watchfloor ls --names")
    of_archived = _asked("archived", "watchfloor ls --archived --names")
    of_requests = _asked("requests", "watchfloor approvals --names")
    for name, verb in _verbs(grammar):
        ids = of_requests if name in _REQUESTS else of_sessions
        offered = {
            "ID": of_archived if name == "purge" else ids,
            "APPROVAL": of_requests,
            "DIR": shtab.DIRECTORY,
            "FILE": shtab.FILE,
            "F": shtab.FILE,
        }
        for action in verb._actions:
            if isinstance(action.metavar, str) and action.metavar in offered:
                action.complete = offered[action.metavar]  # type: ignore[attr-defined]
    say(shtab.complete(grammar, shell=args.shell))
    return exits.OK


def _asked(what: str, command: str) -> dict[str, object]:
    """Words that a command prints, one a line. In zsh by a function: a command in a specification would be run for
    every verb when the script is loaded, and never again.
    """
    import shtab

    made: dict[str, Any] = dict(shtab.cmd(f"{command} 2>/dev/null"))
    function = f"_watchfloor_{what}"
    body = f"""{function}() {{\n  compadd -- ${{(f)"$({command} 2>/dev/null)"}}\n}}"""
    return made | {"zsh": function, "preamble": made["preamble"] | {"zsh": body}}


def _verbs(grammar: argparse.ArgumentParser) -> Iterable[tuple[str, argparse.ArgumentParser]]:
    (verbs,) = (action for action in grammar._actions if isinstance(action, argparse._SubParsersAction))
    return verbs.choices.items()


def keys(ctx: Context, args: argparse.Namespace) -> int:
    from app.action_table import registry
    from app.input import keymap
    from harness.protocol.config import config as configuration

    ui = configuration.load(ctx.folders).ui
    keys = keymap.build(ui.preset, ui.keys, ctx.folders.config_file).keys
    if args.markdown:
        say(registry.markdown(dict(keys)))
        return exits.OK
    body = [(" ".join(registry.show_key(k) for k in keys.get(a.id, ())), a.id, a.title) for a in registry.ACTIONS]
    for line in table(("KEYS", "ACTION", "WHAT"), body, width=ctx.width):
        say(line)
    return exits.OK

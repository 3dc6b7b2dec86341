"""Verbs that set up the shell."""

from __future__ import annotations

import argparse

from app.cli.grammar.verb import Group

GROUP = Group("set up the shell")
verb = GROUP.verb


@verb("completion", "cli.verbs.extras:completion", "print a completion script for your shell", json=False)
def completion(p: argparse.ArgumentParser) -> None:
    p.add_argument("shell", metavar="bash|zsh|fish|tcsh", choices=("bash", "zsh", "fish", "tcsh"))


@verb("keys", "cli.verbs.extras:keys", "print the key table", json=False)
def keys(p: argparse.ArgumentParser) -> None:
    p.add_argument("--markdown", action="store_true", help="as a Markdown table")

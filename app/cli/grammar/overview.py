"""What ``watchfloor --help`` says: the verbs, grouped by task."""

from __future__ import annotations

import textwrap

from app.cli.grammar.registry import GROUPS

_NAME = 13
_WIDTH = 96


def text() -> str:
    """Each group with its verbs, and what each does."""
    return "\n".join(
        "\n".join([f"{group.title}:", *(_line(verb.name, verb.words) for verb in group.verbs), ""]) for group in GROUPS
    )


def _line(name: str, what: str) -> str:
    indent = " " * (_NAME + 2)
    return textwrap.fill(what, _WIDTH, initial_indent=f"  {name:<{_NAME}}", subsequent_indent=indent)

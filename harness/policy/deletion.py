"""Which names a command or a script deletes, as far as its text says so. Pure.

Understood are ``rm``, ``rmdir`` and ``unlink`` with plain words: as a command of its own, and as any command of a
script, whether or not the script reaches it. What a name is relative to is known as long as nothing in the script
changes the folder, but for one ``cd`` with a plain word without which nothing of it runs.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping, Sequence

from harness.policy import shell

MOST = 20
"""Names that a card tells of one by one."""
BOUND = 200
"""Names that are to be the same things when the command runs as when it was asked about."""
_DELETES = ("rm", "rmdir", "unlink")
_LEADS_ELSEWHERE = ("cd", "pushd", "popd", "eval", "source", ".")


def may_hold(script: str) -> bool:
    """False for a script that surely deletes nothing by these commands, so that its syntax need not be known."""
    return any(word in script for word in _DELETES)


def names(argv: Sequence[str] | None) -> list[str]:
    """The names that a command deletes; empty when it is no plain deletion."""
    return [] if argv is None else _named([shell.Word(text) for text in argv])


def names_in(tree: Mapping[str, object] | None) -> list[str]:
    """The same for a script, each once, relative to the folder that it begins in, or absolute."""
    found = list(shell.commands(tree))
    base = _base(found, shell.first_of_all(tree))
    named = [name for words in found for name in _named(words)]
    known = [os.path.join(base or "", name) for name in named if base is not None or name.startswith("/")]
    return list(dict.fromkeys(known))


def _named(words: Sequence[shell.Word]) -> list[str]:
    if not words or os.path.basename(words[0].text or "") not in _DELETES:
        return []
    named: list[str] = []
    options = True
    for one in words[1:]:
        if one.text is None or one.glob:
            continue  # only known when it runs
        if options and one.text.startswith("-") and one.text != "-":
            options = one.text != "--"
        else:
            named.append(one.text)
    return named


def _base(found: Sequence[Sequence[shell.Word]], first: Sequence[shell.Word]) -> str | None:
    """The folder that the names of a script are relative to; None when that is only known when it runs."""
    moves = sum(words[0].text is None or words[0].text in _LEADS_ELSEWHERE for words in found)
    if not moves:
        return ""
    led = moves == 1 and len(first) == 2 and first[0].text == "cd" and not first[1].glob
    return first[1].text if led and not (first[1].text or "-").startswith("-") else None

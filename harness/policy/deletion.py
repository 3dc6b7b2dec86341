"""Which names a command or a script deletes, as far as its text says so. Pure.

Understood are ``rm``, ``rmdir`` and ``unlink`` with plain words, ``~`` and ``$HOME`` in them: as a command of its own,
and as any command of a script, whether or not the script reaches it. What a name is relative to is known as long as
nothing in the script changes the folder, but for one ``cd`` with a plain word without which nothing of it runs.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.policy import shell

MOST = 20
"""Names that a card tells of one by one."""
BOUND = 200
"""Names that are to be the same things when the command runs as when it was asked about."""
_DELETES = ("rm", "rmdir", "unlink")
_RUNS_TEXT = ("eval", "source", ".")
_LEADS_ELSEWHERE = ("cd", "pushd", "popd", *_RUNS_TEXT)
_HOME = re.compile(r"\$HOME\b|\$\{HOME\}")


@dataclass(frozen=True, slots=True)
class Deleted:
    """``names``: each once, relative to the folder that the script begins in, or absolute. ``unknown``: the words, as
    they are written, of which only its run says which names they are.
    """

    names: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def may_hold(script: str) -> bool:
    """False for a script that surely deletes nothing by these commands, so that its syntax need not be known."""
    return any(word in script for word in _DELETES)


def names(argv: Sequence[str] | None) -> list[str]:
    """The names that a command deletes; empty when it is no plain deletion."""
    return [] if argv is None else [one.text or "" for one in _named([shell.Word(text) for text in argv])]


def deleted_in(script: str, tree: Mapping[str, object] | None, home: str) -> Deleted:
    """The same for a script and its syntax tree; ``home`` is where it runs the value of HOME."""
    env = {"HOME": home} if home and _keeps_home(script, tree) else {}
    found = list(shell.commands(tree, env))
    base = _base(found, shell.first_of_all(tree, env))
    known: list[str] = []
    unknown: list[str] = []
    text = script.encode("utf-8", "surrogateescape")
    for one in (word for words in found for word in _named(words)):
        if one.text is None or one.glob or (base is None and not one.text.startswith("/")):
            unknown.append(text[slice(*one.at)].decode("utf-8", "surrogateescape"))
        else:
            known.append(os.path.join(base or "", one.text))
    return Deleted(tuple(dict.fromkeys(known)), tuple(dict.fromkeys(unknown)))


def _keeps_home(script: str, tree: Mapping[str, object] | None) -> bool:
    """True when nothing in the script gives HOME another value."""
    if "HOME" in _HOME.sub("", script):
        return False
    return not any(words[0].text is None or words[0].text in _RUNS_TEXT for words in shell.commands(tree))


def _named(words: Sequence[shell.Word]) -> Iterator[shell.Word]:
    if not words or os.path.basename(words[0].text or "") not in _DELETES:
        return
    options = True
    for one in words[1:]:
        if options and one.text is not None and one.text.startswith("-") and one.text != "-":
            options = one.text != "--"
        else:
            yield one


def _base(found: Sequence[Sequence[shell.Word]], first: Sequence[shell.Word]) -> str | None:
    """The folder that the names of a script are relative to; None when that is only known when it runs."""
    moves = sum(words[0].text is None or words[0].text in _LEADS_ELSEWHERE for words in found)
    if not moves:
        return ""
    led = moves == 1 and len(first) == 2 and first[0].text == "cd" and not first[1].glob
    return first[1].text if led and not (first[1].text or "-").startswith("-") else None

"""Which files of a session's own worktree a call outside the fence would run: an agent writes them, so that their names
say nothing. Blocking.

Looked at are a command's program and what follows the name of an interpreter, in a script for each of its commands;
then what these come to run in their turn: the target of a Makefile, the script of a ``package.json``, a shell script's
own commands.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence

from harness.events.access import Access
from harness.events.action import Action, ExecAction, ShellAction, command_of
from harness.events.card_facts import RunFile
from harness.hands import reading
from harness.plan import scripts
from harness.policy.effects import inside

MOST = 6
"""Files that are shown."""
_MOST_NAMED = 12
MOST_LINES = 200
_MOST_BYTES = 1 << 20
_MOST_FOLLOWED = 256 << 10
"""Bytes of a file in which further ones are looked for."""
_MOST_FOLLOWED_IN_ALL = 512 << 10
_MOST_SHOWN = 12_000
_MOST_WORDS = 400
_TEXT = 300
_INTERPRETER = re.compile(
    r"(?:.*/)?(?:\.|source|(?:ba|da|z|k|fi)?sh|python[0-9.]*|node|deno|bun|ruby|perl|php|Rscript|lua)"
)
_BEFORE = re.compile(r"(?:.*/)?(?:sudo|env|exec|time|nohup|nice|command|if|then|else|elif|while|until|do|!)|\w+=.*")
"""Words that a command may stand behind."""
_ENDS = "\n;|&()`{}"
_WORD = re.compile(rf"[{re.escape(_ENDS)}]|[^\s<>'\"{re.escape(_ENDS)}]+")


def runs(action: Action) -> list[RunFile]:
    """What a call without a fence runs of its own worktree, as it is now; empty for any other call."""
    if action.access != Access.UNFENCED:
        return []
    root = os.path.realpath(action.fence.worktree)
    names = dict.fromkeys(filter(None, (_shown(root, os.path.join(action.cwd, name)) for name in _names(action))))
    further, targets = _followed(action, root, list(names))
    followed = dict.fromkeys([*names, *further])
    found = [_read(root, name, targets.get(name, ())) for name in list(followed)[:MOST]]
    return found + [
        RunFile(name[:_TEXT], problem=f"only the first {MOST} files are") for name in list(followed)[MOST:_MOST_NAMED]
    ]


def _shown(root: str, name: str) -> str:
    """The file of the worktree that is behind a name, from its root; empty when there is none."""
    path = _real(name)
    return os.path.relpath(path, root) if inside(path, root) and os.path.isfile(path) else ""


def _followed(action: Action, root: str, direct: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """What the command comes to read as commands: Makefiles, packages, scripts, in the order in which they are met;
    which targets of a Makefile are made.
    """
    here = os.path.relpath(_real(action.cwd), root)
    if here.startswith(".."):
        return [], {}
    met: dict[str, str] = {}
    room = _MOST_FOLLOWED_IN_ALL

    def read(name: str) -> str:
        nonlocal room
        shown = _shown(root, os.path.join(root, name))
        if shown and shown not in met:
            text = _text_of(root, shown) if room > 0 else ""
            room -= len(text)
            met[shown] = text
        return met.get(shown, "")

    command = command_of(action)
    begin = f"cd {shlex.quote(here)}\n{command[:_MOST_FOLLOWED]}"
    found = scripts.named([begin, *(f"./{shlex.quote(name)}" for name in direct)], read, every=True)
    targets = {_shown(root, os.path.join(root, name)): wanted for name, wanted in found.targets.items()}
    return [name for name in met if name not in direct], targets


def _text_of(root: str, name: str) -> str:
    try:
        return reading.read_beneath(root, name, _MOST_FOLLOWED).decode("utf-8", "replace")
    except OSError:
        return ""  # it stands on the card, and why it is not shown


def _real(path: str) -> str:
    """The path with its links resolved; empty for a name that cannot be."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return ""


def _names(action: Action) -> Iterator[str]:
    if isinstance(action, ExecAction):
        yield from _of(action.argv)
        for word in action.argv:
            if len(word.split()) > 1:  # a script, as ``sh -c`` takes it
                yield from _of(_WORD.findall(word)[:_MOST_WORDS])
    elif isinstance(action, ShellAction):
        yield from _of(_WORD.findall(action.script)[:_MOST_WORDS])


def _of(words: Sequence[str]) -> Iterator[str]:
    """Names of files that run by themselves, or by the interpreter before them."""
    begins = True
    interpreted = False
    for word in words:
        if word and word in _ENDS:
            begins = True
            interpreted = False
        elif (interpreted and word.startswith("-")) or (begins and _BEFORE.fullmatch(word)):
            continue
        elif begins and _INTERPRETER.fullmatch(word):
            begins = False
            interpreted = True
        else:
            if interpreted or (begins and "/" in word):
                yield word
            begins = False
            interpreted = False


def _read(root: str, name: str, targets: Sequence[str]) -> RunFile:
    try:
        text = reading.read_beneath(root, name, _MOST_BYTES).decode()
    except UnicodeDecodeError:
        return RunFile(name[:_TEXT], problem="it is no text")
    except OSError as exc:
        return RunFile(name[:_TEXT], problem=f"it {exc.strerror or type(exc).__name__}"[:_TEXT])
    if "\0" in text:
        return RunFile(name[:_TEXT], problem="it is no text")
    lines = text.removesuffix("\n").split("\n")
    begin = _begin(lines, targets)
    kept = _fitting(lines[begin:])
    return RunFile(name[:_TEXT], kept, len(lines) - len(kept), first=begin + 1)


def _begin(lines: Sequence[str], targets: Sequence[str]) -> int:
    """The first line that is shown, counted from 0: of a Makefile that is too long to be shown whole, where the rule
    that runs begins, or sooner where there is room.
    """
    if not targets or len(_fitting(lines)) == len(lines):
        return 0
    rule = scripts.rule_line(lines, targets)
    sooner = max(0, min(rule, len(lines) - MOST_LINES))
    return sooner if sooner + len(_fitting(lines[sooner:])) == len(lines) else rule


def _fitting(lines: Sequence[str]) -> list[str]:
    """As many of the lines as a card shows of one file."""
    kept: list[str] = []
    room = _MOST_SHOWN
    for line in lines[:MOST_LINES]:
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    return kept

"""Which files of a session's own worktree a call outside the fence would run: an agent writes them, so that their names
say nothing. Blocking.

Looked at are a command's program and what follows the name of an interpreter, in a script for each of its commands.
What such a file runs in its turn stands in the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from harness.events.action import Action, ExecAction, ShellAction
from harness.events.card_facts import RunFile
from harness.hands import reading
from harness.policy.effects import inside

MOST = 3
"""Files that are shown."""
MOST_LINES = 200
_MOST_BYTES = 1 << 20
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
    if action.access != "unfenced":
        return []
    root = os.path.realpath(action.fence.worktree)
    found: dict[str, RunFile] = {}
    for name in _names(action):
        path = _real(os.path.join(action.cwd, name))
        shown = os.path.relpath(path, root) if inside(path, root) and os.path.isfile(path) else ""
        if shown and shown not in found:
            found[shown] = _read(root, shown)
        if len(found) == MOST:
            break
    return list(found.values())


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


def _read(root: str, name: str) -> RunFile:
    try:
        text = reading.read_beneath(root, name, _MOST_BYTES).decode()
    except UnicodeDecodeError:
        return RunFile(name[:_TEXT], problem="it is no text")
    except OSError as exc:
        return RunFile(name[:_TEXT], problem=f"it {exc.strerror or type(exc).__name__}"[:_TEXT])
    if "\0" in text:
        return RunFile(name[:_TEXT], problem="it is no text")
    lines = text.removesuffix("\n").split("\n")
    kept: list[str] = []
    room = _MOST_SHOWN
    for line in lines[:MOST_LINES]:
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    return RunFile(name[:_TEXT], kept, len(lines) - len(kept))

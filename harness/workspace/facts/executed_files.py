"""Which files of a session's own worktree a call outside the sandbox would run: an agent writes them, so that their
names say nothing. Blocking.

Looked at is what a command names (`harness.workspace.facts.run_names`), then what these files come to run in their
turn: the target of a Makefile, the script of a ``package.json``, a shell script's own commands. A program may run what
nobody names, so that a list is never taken for all of it unless every command is known to run nothing else.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.checks import check_scripts
from harness.domain.actions.access import Access
from harness.domain.actions.action import Action, ExecAction, ShellAction, command_of
from harness.domain.calls.card_facts import RunFile
from harness.linux import safe_files
from harness.policy.effects import inside
from harness.workspace.facts import run_names
from harness.workspace.facts.run_names import Name

MOST = 6
"""Files that are shown."""
_MOST_NAMED = 12
MOST_LINES = 200
_MOST_BYTES = 1 << 20
_MOST_FOLLOWED = 256 << 10
"""Bytes of a file in which further ones are looked for."""
_MOST_FOLLOWED_IN_ALL = 512 << 10
_MOST_SHOWN = 12_000
_TEXT = 300
_START = re.compile(r'"(?:main|module)"\s*:\s*"([^"\n]{1,200})"')
_SHEBANG = re.compile(r"#!\s*(?:/usr)?/bin/(?:env\s+)?(?:ba|da)?sh\b[^\n]*\n")


class Runs(NamedTuple):
    """The files that are known to run; ``only``: it is known that no other file of the worktree does."""

    files: list[RunFile]
    only: bool = False


def runs(action: Action) -> Runs:
    """What a call without a sandbox runs of its own worktree, as it is now; nothing for any other call."""
    if action.access != Access.UNSANDBOXED:
        return Runs([], only=True)
    root = os.path.realpath(action.sandbox.worktree)
    names = dict.fromkeys(filter(None, (_there(root, name) for name in _names(action))))
    starts = dict.fromkeys(filter(None, (_start(root, name) for name in names)))
    direct = [*names, *(name for name in starts if name not in names)]
    further, targets = _followed(action, root, direct)
    followed = dict.fromkeys([*direct, *further])
    found = [_read(root, name, targets.get(name, ())) for name in list(followed)[:MOST]]
    only = len(followed) <= MOST and _only(action, root, found)
    left_out = [RunFile(name[:_TEXT], problem=f"only the first {MOST} files are") for name in list(followed)[MOST:]]
    return Runs(found + left_out[: _MOST_NAMED - MOST], only)


def _there(root: str, name: Name) -> str:
    """The file of the worktree that a name means, from its root; empty when there is none."""
    found = next(filter(None, (_shown(root, os.path.join(folder, name.path)) for folder in name.folders)), "")
    return found if found and (not name.program or os.access(os.path.join(root, found), os.X_OK)) else ""


def _start(root: str, name: str) -> str:
    """The file with which the package begins that a ``package.json`` describes."""
    if os.path.basename(name) != "package.json":
        return ""
    match = _START.search(_text_of(root, name))
    folder = os.path.join(root, os.path.dirname(name))
    paths = [os.path.join(folder, match[1] + end) for end in ("", ".js", "/index.js")] if match else []
    return next(filter(None, (_shown(root, path) for path in paths)), "")


def _only(action: Action, root: str, found: Sequence[RunFile]) -> bool:
    """True when the command, and each file that it runs, is known to run nothing that is not among these."""
    path = action.env.get("PATH", "")
    folders = path.split(":") if path else []
    if any(not folder.startswith("/") or inside(_real(folder), root) for folder in folders):
        return False
    known: set[str] = set()

    def is_known(word: str) -> bool:
        return _shown(root, os.path.join(action.cwd, word)) in known

    for one in reversed(found):  # what a file runs stands behind it
        text = "\n".join(one.lines) + "\n"
        shell = not text.startswith("#!") or _SHEBANG.match(text)
        if one.whole and shell and run_names.runs_only(text, is_known):
            known.add(one.path)
    return run_names.runs_only(command_of(action), is_known)


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
    found = check_scripts.named([begin, *(f"./{shlex.quote(name)}" for name in direct)], read, every=True)
    targets = {_shown(root, os.path.join(root, name)): wanted for name, wanted in found.targets.items()}
    return [name for name in met if name not in direct], targets


def _text_of(root: str, name: str) -> str:
    try:
        return safe_files.read_beneath(root, name, _MOST_FOLLOWED).decode("utf-8", "replace")
    except OSError:
        return ""  # it stands on the card, and why it is not shown


def _real(path: str) -> str:
    """The path with its links resolved; empty for a name that cannot be."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return ""


def _names(action: Action) -> Iterator[Name]:
    if isinstance(action, ExecAction):
        yield from run_names.of_argv(action.argv, action.cwd)
    elif isinstance(action, ShellAction):
        yield from run_names.of_script(action.script, action.cwd)


def _read(root: str, name: str, targets: Sequence[str]) -> RunFile:
    try:
        text = safe_files.read_beneath(root, name, _MOST_BYTES).decode()
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
    rule = check_scripts.rule_line(lines, targets)
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

"""What a plain deletion outside the fence would take away, looked at name by name. Blocking.

Only a single ``rm``, ``rmdir`` or ``unlink`` with plain words is understood; of everything else the card shows the
command alone. Nothing is opened and no link followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from harness.events.action import Action, ExecAction, ShellAction
from harness.events.card_facts import Going
from harness.events.words import counted
from harness.policy import shell
from harness.policy.effects import inside
from harness.workspace.gather_facts import parse_shell

MOST = 20
"""Names that are looked at."""
_MOST_ENTRIES = 5_000
_MOST_NAMED = 8
_DELETES = ("rm", "rmdir", "unlink")
_TEXT = 300


def going(action: Action) -> tuple[list[Going], int]:
    """(what goes, how many further names the command has); empty for what is no plain deletion without a fence."""
    argv = _argv(action) if action.access == "unfenced" else None
    if not argv or os.path.basename(argv[0]) not in _DELETES:
        return [], 0
    named = _names(argv[1:])
    kept = bool(action.world.get("snapshot"))
    root = action.fence.worktree
    found = [_one(os.path.normpath(os.path.join(action.cwd, name)), root, kept) for name in named[:MOST]]
    return found, max(0, len(named) - MOST)


def _argv(action: Action) -> Sequence[str] | None:
    if isinstance(action, ExecAction):
        return action.argv
    return shell.only_command(parse_shell(action.script)) if isinstance(action, ShellAction) else None


def _names(arguments: Sequence[str]) -> list[str]:
    """The arguments that are no options."""
    plain: list[str] = []
    for at, text in enumerate(arguments):
        if text == "--":
            return plain + list(arguments[at + 1 :])
        if not text.startswith("-") or text == "-":
            plain.append(text)
    return plain


def _one(path: str, root: str, kept: bool) -> Going:
    try:
        seen = os.lstat(path)
    except (OSError, ValueError) as exc:
        return Going(path[:_TEXT], f"not there ({getattr(exc, 'strerror', None) or 'a name that cannot be'})", "")
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    has = (
        "undo brings it back, unless it is too large to be kept" if kept and inside(real, root) and real != root else ""
    )
    mode = seen.st_mode
    if not has and stat.S_ISREG(mode) and seen.st_nlink > 1:
        has = f"its content has {counted(seen.st_nlink - 1, 'other name')} on this disk (a hard link)"
    if stat.S_ISDIR(mode):
        what, files = _folder(path)
        return Going(path[:_TEXT], what, has, files)
    if stat.S_ISLNK(mode):
        return Going(path[:_TEXT], "a link", has)
    return Going(path[:_TEXT], "a file" if stat.S_ISREG(mode) else "no plain file", has)


def _folder(path: str) -> tuple[str, list[str]]:
    """(how much is in a folder, the names of its first files)."""
    files: list[str] = []
    seen = 0
    pending = [path]
    more = ""
    part = ""
    while pending and not more:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MOST_ENTRIES:
                        more = "more than "
                        break
                    (pending if entry.is_dir(follow_symlinks=False) else files).append(entry.path)
        except OSError:
            more = "at least "
            part = ", part of which cannot be read"
    names = sorted(os.path.relpath(one, path) for one in files)
    return f"a folder with {more}{counted(len(files), 'file')}{part}", [name[:_TEXT] for name in names[:_MOST_NAMED]]

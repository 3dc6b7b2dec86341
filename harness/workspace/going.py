"""What a plain deletion outside the fence would take away, looked at name by name. Blocking.

Of everything that is no plain deletion (`harness.policy.deletion`) the card shows the command alone. No link is
followed; what is opened is compared with what a repository has (`elsewhere`). The same names are looked at again just
before it runs (`harness.hands.deleted`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.events.action import Action, ExecAction, ShellAction
from harness.events.card_facts import Going
from harness.events.words import counted
from harness.hands import deleted
from harness.policy import deletion, shell
from harness.policy.effects import inside
from harness.workspace.elsewhere import elsewhere, is_repository
from harness.workspace.gather_facts import parse_shell

_MOST_ENTRIES = 5_000
_MOST_NAMED = 8
_TEXT = 300


def going(action: Action) -> tuple[list[Going], int]:
    """(what goes, how many further names the command has); empty for what is no plain deletion without a fence."""
    named = deletion.names(_argv(action)) if action.access == "unfenced" else []
    kept = bool(action.world.get("snapshot"))
    root = action.fence.worktree
    gone = [_real(os.path.join(action.cwd, name)) for name in named[: deletion.MOST]]
    return [_one(path, root, kept, gone) for path in gone], max(0, len(named) - deletion.MOST)


def _argv(action: Action) -> Sequence[str] | None:
    if isinstance(action, ExecAction):
        return action.argv
    return shell.only_command(parse_shell(action.script)) if isinstance(action, ShellAction) else None


def _real(path: str) -> str:
    """Where the name lies: a deletion follows the links of its folder, and not the name itself."""
    try:
        return deleted.real(path)
    except (OSError, ValueError):
        return path


def _one(path: str, root: str, kept: bool, gone: Sequence[str]) -> Going:
    try:
        mode = os.lstat(path).st_mode
        names = os.lstat(path).st_nlink
    except (OSError, ValueError) as exc:
        return Going(path[:_TEXT], f"not there ({getattr(exc, 'strerror', None) or 'a name that cannot be'})", "")
    held = _folder(path) if stat.S_ISDIR(mode) else _Held(_kind(mode), [path])
    shown = sorted(os.path.relpath(one, path) for one in held.files)[:_MOST_NAMED] if stat.S_ISDIR(mode) else []
    files = [name[:_TEXT] for name in shown]
    if kept and inside(path, root) and path != root:
        return Going(path[:_TEXT], held.what, "undo brings it back, unless it is too large to be kept", files)
    if stat.S_ISREG(mode) and names > 1:
        has = f"its content has {counted(names - 1, 'other name')} on this disk (a hard link)"
        return Going(path[:_TEXT], held.what, has, files)
    known = elsewhere(path, held.files if held.whole else (), held.repositories, gone)
    return Going(path[:_TEXT], held.what, known.has[:_TEXT], files, known.lacks[:_TEXT])


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a file" if stat.S_ISREG(mode) else "no plain file"


@dataclass(frozen=True, slots=True)
class _Held:
    """What a name stands for in words, all that is no folder in it, and the git folders; ``whole`` when that is all."""

    what: str
    files: list[str]
    whole: bool = True
    repositories: list[str] = field(default_factory=list)


def _folder(path: str) -> _Held:
    files: list[str] = []
    repositories: list[str] = []
    seen = 0
    pending = [path]
    more = ""
    part = ""
    while pending and not more:
        here = pending.pop()
        if is_repository(here):
            repositories.append(here)
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MOST_ENTRIES:
                        more = "more than "
                        break
                    (pending if entry.is_dir(follow_symlinks=False) else files).append(entry.path)
        except OSError:
            more = "at least "
            part = ", part of which cannot be read"
    return _Held(f"a folder with {more}{counted(len(files), 'file')}{part}", files, not more, repositories)

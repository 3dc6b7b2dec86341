"""What a deletion outside the sandbox would take away, looked at name by name. Blocking.

Of everything that is none, as far as its text says (`harness.policy.deletion`), the card shows the command alone. No
link is followed; what is opened is compared with what a repository has (`elsewhere`). The same names are looked at
again just before it runs (`harness.executor.deleted`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.actions.access import Access
from harness.domain.actions.action import Action, ExecAction, ShellAction
from harness.domain.calls.card_facts import Going
from harness.domain.text.formatting import counted
from harness.executor import deleted
from harness.policy import deletion
from harness.policy.effects import inside
from harness.workspace.facts.gather import parse_shell
from harness.workspace.facts.other_copies import elsewhere, is_repository

_MOST_NAMED = 8
_TEXT = 300


@dataclass(frozen=True, slots=True)
class Gone:
    """What a deletion takes away. ``more``: names that are not told of one by one; ``unknown``: words as written that
    only its run turns into names, ``unknown_more`` further ones.
    """

    going: list[Going]
    more: int
    unknown: list[str]
    unknown_more: int


def going(action: Action) -> Gone:
    """What of this action is known to go; nothing for what is no deletion without a sandbox."""
    named = _named(action) if action.access == Access.UNSANDBOXED else deletion.Deleted()
    kept = bool(action.world.get("snapshot"))
    root = action.sandbox.worktree
    gone = [_real(os.path.join(action.cwd, name)) for name in named.names[: deletion.MOST]]
    return Gone(
        [_one(path, root, kept, gone) for path in gone],
        max(0, len(named.names) - deletion.MOST),
        [word[:_TEXT] for word in named.unknown[: deletion.MOST]],
        max(0, len(named.unknown) - deletion.MOST),
    )


def _named(action: Action) -> deletion.Deleted:
    if isinstance(action, ExecAction):
        return deletion.Deleted(tuple(deletion.names(action.argv)))
    if not isinstance(action, ShellAction) or not deletion.may_hold(action.script):
        return deletion.Deleted()
    return deletion.deleted_in(action.script, parse_shell(action.script), action.env.get("HOME", ""))


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
    except FileNotFoundError:
        return Going(path[:_TEXT], "not there now", "so nothing goes")
    except (OSError, ValueError) as exc:
        why = getattr(exc, "strerror", None) or "a name that cannot be"
        return Going(path[:_TEXT], f"cannot be looked at ({why})", "")
    folder = deleted.contents(path) if stat.S_ISDIR(mode) else None
    what = _kind(mode) if folder is None else _much(folder)
    files = [] if folder is None else [name[:_TEXT] for name in sorted(folder.files)[:_MOST_NAMED]]
    if kept and inside(path, root) and path != root:
        return Going(path[:_TEXT], what, "undo brings it back, unless it is too large to be kept", files)
    if stat.S_ISREG(mode) and names > 1:
        has = f"its content has {counted(names - 1, 'other name')} on this disk (a hard link)"
        return Going(path[:_TEXT], what, has, files)
    known = elsewhere(path, *_held(path, folder), gone)
    return Going(path[:_TEXT], what, known.has[:_TEXT], files, known.lacks[:_TEXT])


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a file" if stat.S_ISREG(mode) else "no plain file"


def _much(folder: deleted.Contents) -> str:
    some = "at least " if folder.hidden else ""
    more = "more than " if folder.more else some
    part = ", part of which cannot be read" if folder.hidden else ""
    return f"a folder with {more}{counted(len(folder.files), 'file')}{part}"


def _held(path: str, folder: deleted.Contents | None) -> tuple[list[str], list[str]]:
    """(all that is no folder at that name, the git folders in it), the former empty where not all of it is known."""
    if folder is None:
        return [path], []
    whole = not folder.more and not folder.hidden
    below = [path, *(os.path.join(path, name) for name in folder.folders)]
    files = [os.path.join(path, name) for name in folder.files] if whole else []
    return files, [one for one in below if is_repository(one)]

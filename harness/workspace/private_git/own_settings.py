"""The configuration of a session's own git directory: a file that the agent may add to, and one over it that it cannot
write.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.domain.denied import Denied
from harness.workspace.clone import filters
from harness.workspace.git.run import Git
from harness.workspace.git.shown_config import quoted
from harness.workspace.private_git import shown_repository
from harness.workspace.private_git.planting import put

FILE = "gitconfig"
"""Beside the private git directory: what every git inside obeys."""
_WITHHELD = "denied-by-the-role"
_WHY = "objects that the role of this session denies (deny_paths, deny_branches)"
"""What git says of an object that is not there: that this "does not appear to be a git repository"."""
_FIXED = (
    "[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[core]\n\thooksPath = /dev/null\n\tpager"
    ' = cat\n[protocol "ext"]\n\tallow = never\n[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n[core]\n'
    "\tfsmonitor = false\n\tuntrackedCache = false\n[advice]\n\tdetachedHead = false\n"
)


def write(private: Path, admin: Path, base: str, identity: tuple[str, str], denied: Denied) -> None:
    """Write both for a git directory that is seen as ``admin`` and begins at the commit ``base``. Raises GitFailed,
    OSError.
    """
    put(private / "config", _own(Git(admin), base, denied))
    if denied.paths:
        (private / "info").mkdir(mode=0o700, exist_ok=True)
        put(private / "info" / "sparse-checkout", denied.sparse())
    name, email = (re.sub(r'["\\\n\x00-\x1f]', " ", word) for word in identity)
    user = f'[user]\n\tname = "{name}"\n\temail = "{email}"\n'
    filtering = f"[include]\n\tpath = {filters.FOLDER}/config\n"
    put(private.parent / FILE, f"{_included(admin)}{filtering}{user}{_FIXED}")


def _own(git: Git, base: str, denied: Denied) -> str:
    """What git must know of a git directory before it reads anything else. One without what is denied is to git a
    partial clone with a sparse checkout.
    """
    known = dict(git.configured())
    kept = {name: value for name in ("partialclone", "noop") if (value := known.get(f"extensions.{name}"))}
    if denied:
        kept["partialclone"] = _WITHHELD
    if len(base) == 64:
        kept["objectformat"] = "sha256"
    lines = [f"[core]\n\trepositoryformatversion = {int(bool(kept))}\n\tbare = false\n\tlogAllRefUpdates = true\n"]
    if denied:
        lines.append(f'[remote "{_WITHHELD}"]\n\tpromisor = true\n\turl = {quoted(_WHY)}\n')
    if denied.paths:
        lines.append("[core]\n\tsparseCheckout = true\n")
    lines += [f"[extensions]\n\t{name} = {quoted(value)}\n" for name, value in kept.items()]
    return "".join(lines)


def _included(admin: Path) -> str:
    """The person's configuration as it is shown: for the session's own git directory, and no other one."""
    pattern = re.sub(r"([*?\[\\])", r"\\\1", str(admin))
    shown = quoted(f"{admin}/{shown_repository.CONFIG}")
    places = (f"gitdir:{pattern}", f"gitdir:{pattern}/**")
    return "".join(f"[includeIf {quoted(place)}]\n\tpath = {shown}\n" for place in places)

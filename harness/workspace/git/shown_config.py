"""The repository's git configuration as an agent may see it: what git needs to work, without the secrets that people
keep there.

A configuration file can hold tokens (``http.*.extraHeader``, an address with a password, helpers and their options).
The agent needs none of them: it has no network, and a push is made outside with the real file. Only listed settings are
copied.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

from harness.domain.addresses import strip_credential
from harness.linux import safe_files
from harness.workspace.git.errors import GitFailed
from harness.workspace.git.run import Git, entries, parted

VERSION = 2
"""Raised when the shown form of a configuration changes, so that forms made before are made again."""
_SECTIONS = (
    "branch",
    "core",
    "diff",
    "extensions",
    "i18n",
    "init",
    "log",
    "merge",
    "pull",
    "push",
    "rebase",
    "remote",
    "status",
    "submodule",
    "tag",
    "user",
)
_NOT_SHOWN = ("core.bare", "core.worktree", "extensions.refstorage", "extensions.worktreeconfig")
"""What is otherwise in a session: it has a work tree of its own, and refs in files."""
_HELD_BACK = re.compile(
    r"(header|token|secret|password|passwd|credential|cookie|proxy|key"
    r"|command|helper|askpass|program|textconv|driver)\Z",
    re.IGNORECASE,
)


def shown(git: Git, file: Path) -> bytes:
    """The safe form of one configuration file; the text is git's own format.

    Raises GitFailed when git cannot read it.
    """
    lines: list[str] = []
    for name, value in _entries(git, file):
        section, _, rest = name.partition(".")
        sub, dot, variable = rest.rpartition(".")
        if section not in _SECTIONS or not variable or name in _NOT_SHOWN or _HELD_BACK.search(variable):
            continue
        text = f" = {quoted(strip_credential(value)[0])}" if value is not None else ""
        lines += [f"[{section} {quoted(strip_credential(sub)[0])}]" if dot else f"[{section}]", f"\t{variable}{text}"]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _entries(git: Git, file: Path) -> Sequence[tuple[str, str | None]]:
    with contextlib.suppress(OSError, GitFailed):  # git says what is wrong with it
        return entries(safe_files.read(file))
    return parted(git.run("config", "--file", str(file), "--no-includes", "--list", "-z"))


def quoted(text: str) -> str:
    """A text as a value or a name in git's own format."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'

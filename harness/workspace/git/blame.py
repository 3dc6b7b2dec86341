"""Which commit a line comes from, for a command that has no supervisor to ask: a program of its own.

``python -m harness.workspace.git.blame`` reads `BlameOrder` as JSON on standard input and prints `Blamed`.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec

from harness.views.why_views import Blamed, BlameOrder
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.git.run import Git, open_repository

_LINE = re.compile(r"([0-9a-f]{40,64}) \d+ \d+")
_NOT_YET = re.compile("0+")
_TIMEOUT_S = 60.0


def blame(order: BlameOrder) -> Blamed:
    """Raises WorkspaceError."""
    repository = open_repository(Path(order.repo))
    git = Git.of(repository.git_dir, None if order.branch or repository.bare else repository.root)
    ref = f"refs/heads/{order.branch}" if order.branch else "HEAD"
    commit = git.commit(ref)
    if commit is None:
        return Blamed(problem=f"{order.repo} has no {order.branch or 'commit'}")
    shown = repository.root / order.path
    here = not order.branch and not repository.bare and shown.is_file() and not shown.is_symlink()
    content = ("--contents", str(shown)) if here else (commit,)
    where = ("blame", "--porcelain", "-L", f"{order.line},{order.line}", *content, "--", order.path)
    status, out = git.call(*where, ok=(0, 128), timeout=_TIMEOUT_S)
    lines = out.decode("utf-8", "replace").split("\n")
    found = _LINE.match(lines[0]) if status == 0 else None
    if found is None:
        return Blamed(problem=f"{order.path} has no line {order.line} in {order.branch or 'your checkout'}")
    text = next((line[1:] for line in lines if line.startswith("\t")), "")
    if _NOT_YET.fullmatch(found[1]):
        return Blamed(text=text)
    taken = next((merge.commit for merge in order.merges if _within(git, found[1], merge.onto, merge.commit)), "")
    return Blamed(commit=found[1], text=text, merged=taken)


def _within(git: Git, commit: str, onto: str, upto: str) -> bool:
    """True when a merge brought the commit in."""
    if git.commit(upto) is None or git.commit(onto) is None:
        return False
    above = git.call("merge-base", "--is-ancestor", commit, upto, ok=(0, 1))[0] == 0
    return above and git.call("merge-base", "--is-ancestor", commit, onto, ok=(0, 1))[0] == 1


def main() -> int:
    """Exit code 1 with the reason on standard error when the repository cannot be looked at."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=BlameOrder)
    try:
        sys.stdout.buffer.write(msgspec.json.encode(blame(order)))
    except (WorkspaceError, OSError) as exc:
        os.write(2, str(exc).encode("utf-8", "replace"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Checks that hide their exit codes, by the scripts of a commit. Blocking."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Mapping
from pathlib import Path

from harness.checks.masked import masked
from harness.events.plan.masked_check_events import MaskedCheck
from harness.workspace.facts.gather import ShellAnalysisMissing, parse_shell
from harness.workspace.git.errors import GitFailed
from harness.workspace.git.run import Git

_MOST_BYTES = 64 << 10
_KEPT = 256


def look(git_dir: Path, commit: str, commands: Collection[str]) -> list[MaskedCheck]:
    """What is wrong with these checks. Nothing is said where shfmt is missing: no call can be judged without it."""

    def read(path: str) -> str:
        return _text_of(git_dir, commit, path)

    with contextlib.suppress(ShellAnalysisMissing):
        return masked.masked(commands, read, _tree, lambda path: _there(git_dir, commit, path))
    return []


@functools.lru_cache(maxsize=_KEPT)
def _tree(script: str) -> Mapping[str, object] | None:
    return parse_shell(script)


@functools.lru_cache(maxsize=_KEPT)
def _text_of(git_dir: Path, commit: str, path: str) -> str:
    try:
        _, text = Git.of(git_dir).call("cat-file", "blob", f"{commit}:{path}", ok=(0, 128), limit=_MOST_BYTES)
    except GitFailed:
        return ""
    return text.decode("utf-8", "replace")


def _there(git_dir: Path, commit: str, path: str) -> bool:
    try:
        code, _ = Git.of(git_dir).call("cat-file", "-e", f"{commit}:{path}", ok=(0, 1, 128))
    except GitFailed:
        return True
    return code == 0

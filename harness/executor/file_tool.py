"""What every file tool is given, where its paths lead, and how it answers. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from harness.executor.confined_paths import Root

Given = Mapping[str, object]
"""The input of a call, as the model gave it."""


class ToolError(Exception):
    """The tool did not do what it was asked; the message is for the model."""


class Result(NamedTuple):  # named tuples here: dataclasses would double the start-up time of every file tool
    """What the model reads, and which files changed (relative to the worktree, or absolute outside of it)."""

    text: str
    files_changed: tuple[str, ...] = ()


class Places(NamedTuple):
    """Where paths lead: the worktree, and for this call alone ``outside`` {absolute path: (mounted folder, name in
    it)}.
    """

    root: Root
    outside: dict[str, tuple[str, str]]
    path: tuple[str, ...] = ("/usr/local/bin", "/usr/bin", "/bin")
    output: bytes = b""
    """What an earlier call gave, for the tool that reads it again."""
    no_output: str = ""
    """Why there is no such output."""
    folder: str = ""
    """The folder of the worktree that relative paths count from."""

    def find(self, path: str) -> tuple[Root, str]:
        """(root, path relative to it); raises PathError for a path that is neither in the worktree nor granted."""
        place = self.outside.get(os.path.normpath(path)) or self.outside.get(path)
        if place is not None:
            return Root(place[0]), place[1]
        return self.root, self.root.relative(path if os.path.isabs(path) else os.path.join(self.folder, path))

    def shown(self, root: Root, relative: str) -> str:
        """A path of the worktree as the next call would name it."""
        return os.path.relpath(relative, self.folder) if self.folder and root is self.root else relative

    def name(self, root: Root, relative: str, path: str) -> str:
        """How a changed file is reported."""
        return relative if root is self.root else path

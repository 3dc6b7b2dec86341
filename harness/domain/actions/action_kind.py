"""The kinds of action there are, as actions and the plans of their processes spell them. Standard library only, and
little of it: the process of every call reads it.
"""

from __future__ import annotations

from enum import StrEnum


class ActionKind(StrEnum):
    """What is done."""

    FILE = "file"
    EXEC = "exec"
    SHELL = "shell"
    CHECK = "check"
    PUSH = "push"
    RECORD = "record"

"""What ``watchfloor --help`` says: the verbs by what a person wants to do, the most wanted first."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

GROUPS: Mapping[str, tuple[str, ...]] = {
    "start": ("demo", "launch", "continue", "fork"),
    "look": ("attach", "brief", "ls", "show", "logs", "plan", "diff", "why", "cost", "score", "jobs", "checkpoints"),
    "take the work": ("merge", "pr", "open", "export"),
    "decide": ("approvals", "approve", "deny", "reject", "answer", "defer", "receipts", "grant", "grants", "revoke"),
    "steer": ("say", "pause", "resume", "stop", "snooze", "compact", "checkpoint", "restore", "undo", "rm", "purge"),
    "prepare": ("spec", "roles", "judge", "contract", "memory", "policy"),
    "care for the fleet": ("doctor", "verify", "supervisor", "service", "adopt"),
    "set up the shell": ("completion", "keys"),
}
_NAME = 13
_WIDTH = 96


def text(verbs: Mapping[str, str]) -> str:
    """``verbs`` by name with what each does; one that is in no group stands at the end, so none is hidden."""
    grouped = {name for names in GROUPS.values() for name in names}
    rest = tuple(name for name in verbs if name not in grouped)
    lines: list[str] = []
    for title, names in (*GROUPS.items(), ("more", rest)):
        listed = [name for name in names if name in verbs]
        if listed:
            lines += [f"{title}:", *(_line(name, verbs[name]) for name in listed), ""]
    return "\n".join(lines)


def _line(name: str, what: str) -> str:
    indent = " " * (_NAME + 2)
    return textwrap.fill(what, _WIDTH, initial_indent=f"  {name:<{_NAME}}", subsequent_indent=indent)

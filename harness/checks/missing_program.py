"""Whether a check could not be made at all, because a program that it names is not on this machine. Pure.

That is no word on the work: no agent can put a program where a check looks for it.
"""

from __future__ import annotations

import re

from harness.reports.verdicts import plain

NOT_FOUND = 127
"""What a shell ends with whose last command names no program."""

_SAID = re.compile(r"(?:^|[\s:])(?P<name>[^\s:]+): (?:command )?not found$|: command not found: (?P<zsh>\S+)$")
_OWN_PLACES = re.compile(r"\bPATH=|\balias\b|(?:^|[\s;&|])(?:source|\.)\s")
"""A command that says by itself where programs are: there the work may have to provide them."""


def missing(command: str, exit_code: int | None, output: str) -> str:
    """The program that a check names and this machine lacks; empty when that is not how it ended. A program of the
    work's own, named by its place in the worktree, is not meant: that it is missing is for the agent to mend.
    """
    if exit_code != NOT_FOUND or _OWN_PLACES.search(command):
        return ""
    last = next((line for line in reversed(plain(output).splitlines()) if line.strip()), "")
    found = _SAID.search(last.strip())
    if found is None:
        return ""
    name = found["name"] or found["zsh"]
    words = re.split(r"[\s;&|()'\"]+", command)
    return name if name in words and (name.startswith("/") or "/" not in name) else ""

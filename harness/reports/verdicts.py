"""The line of a program's output that says how it went: verdicts of common test runners and of a push, else its end.

Pure, standard library only. The text is raw: it is what a program of the agent printed.
"""

from __future__ import annotations

import re

from harness.domain.text.formatting import counted

_LOOKED_AT = 200
_LONGEST = 300
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PYTEST = re.compile(r"^=*\s*((?:\d+ [a-z]+, )*\d+ [a-z]+(?:, \d+ [a-z]+)*|no tests ran) in [\d.]+s\b.*?\s*=*$")
_RAN = re.compile(r"^Ran (\d+) tests? in [\d.]+s$")
_UNITTEST = re.compile(r"^(OK|FAILED|NO TESTS RAN)( \(.*\))?$")
_CARGO = re.compile(r"^test result: ((?:ok|FAILED)\. .*)$")
_JEST = re.compile(r"^\s*Tests:?\s+(.*\b\d+ (?:passed|failed|skipped|todo|total)\b.*)$")
_MOCHA = re.compile(r"^\s*(\d+ (?:passing|failing|pending))\b")
_GO = re.compile(r"^(ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[.*\])")
_PUSHED = re.compile(r"^[ *+=!-]\t[^\t:]*:refs/(?:heads|tags)/(\S+)\t(.*)$")


def plain(output: str) -> str:
    """The output without colours."""
    return _COLOUR.sub("", output)


def lines_of(output: str) -> list[str]:
    """The lines that say something, as they stand when a progress bar has overwritten itself, without colours."""
    return [
        shown for line in output.split("\n") if (shown := plain(line.rstrip("\r").rpartition("\r")[2]).rstrip()).strip()
    ]


def verdict(output: str) -> str:
    """How a run of tests, or a push, ended, in the program's own words; empty when the output does not say."""
    lines = lines_of(output)[-_LOOKED_AT:]
    modules = {"ok": 0, "FAIL": 0}
    mocha: list[str] = []
    result = ""
    for line in reversed(lines):
        if found := _PYTEST.match(line):
            return found[0].strip("= ")[:_LONGEST]
        if found := _CARGO.match(line) or _JEST.match(line):
            return found[1].strip()[:_LONGEST]
        if found := _PUSHED.match(line):
            return f"{found[1]} {found[2]}"[:_LONGEST]
        if result and (found := _RAN.match(line)):
            return f"{counted(int(found[1]), 'test')}: {result}"[:_LONGEST]
        if not result and (found := _UNITTEST.match(line)):
            result = line
        elif found := _MOCHA.match(line):
            mocha.insert(0, found[1])
        elif found := _GO.match(line):
            modules[found[1]] += 1
    if mocha:
        return ", ".join(mocha)
    if any(modules.values()):
        said = [f"{counted(modules['ok'], 'package')} ok"] if modules["ok"] else []
        return ", ".join(said + ([f"{modules['FAIL']} failed"] if modules["FAIL"] else []))
    return ""


def tail(output: str, count: int = 3) -> tuple[str, ...]:
    """The last lines that say something."""
    return tuple(line[:_LONGEST] for line in lines_of(output)[-count:])

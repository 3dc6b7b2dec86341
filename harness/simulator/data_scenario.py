"""Scenarios as data: a list of turns that is played in order.

As a TOML file::

    name = "greet"
    pattern = "say hello"
    [[turn]]
    text = "Looking."
    calls = [{ tool = "list_files", input = {} }]
    faults = [{ kind = "overloaded" }]
    [[turn]]
    unless = "README"                # a regular expression: when the last results do not match, say `otherwise` and end
    otherwise = "There is no README."
    text = "Hello."
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from harness.simulator.faults import FaultError, parse_fault
from harness.simulator.script import Call, Heard, Scenario, Script, Turn


@dataclass(frozen=True, slots=True)
class Step:
    """A turn of a data scenario, with its condition on what came before."""

    turn: Turn
    unless: re.Pattern[str] | None
    otherwise: str


def parse(data: dict[str, object]) -> Scenario:
    """A scenario from TOML data. Raises ValueError or re.error."""
    name = data.get("name")
    pattern = data.get("pattern")
    if not isinstance(name, str) or not isinstance(pattern, str):
        raise ValueError("name and pattern must be strings")
    return Scenario(name, re.compile(pattern, re.IGNORECASE), player(data.get("turn")))


def player(turns: object) -> Callable[[str], Script]:
    """The script that plays a list of turns given as data. Raises ValueError on a malformed one."""
    if not isinstance(turns, list) or not turns:
        raise ValueError("there must be at least one turn")
    steps = [_step(i, raw) for i, raw in enumerate(turns)]

    def play(goal: str) -> Script:
        back = Heard()
        for step in steps:
            if step.unless is not None and not back.lost and not step.unless.search(back.text):
                yield Turn(step.otherwise or "That is not what I expected. I stop here.")
                return
            back = yield step.turn

    return play


def _step(i: int, raw: object) -> Step:
    if not isinstance(raw, dict):
        raise ValueError(f"turn {i}: must be a table")
    if unknown := sorted(set(raw) - {"text", "thinking", "calls", "faults", "unless", "otherwise", "stop_reason"}):
        raise ValueError(f"turn {i}: {unknown[0]}: unknown member")
    calls = []
    for c in raw.get("calls", []):
        tool = None
        given = None
        if isinstance(c, dict):
            tool = c.get("tool")
            given = c.get("input", {})
        elif isinstance(c, list) and len(c) == 2:
            tool, given = c
        if not isinstance(tool, str) or not isinstance(given, dict):
            raise ValueError(f'turn {i}: a call is {{tool = "…", input = {{…}}}} or ["tool", {{…}}]')
        calls.append(Call(tool, given))
    try:
        faults = tuple(parse_fault(f) for f in raw.get("faults", []))
    except FaultError as exc:
        raise ValueError(f"turn {i}: {exc}") from exc
    unless = re.compile(raw["unless"]) if "unless" in raw else None
    turn = Turn(
        str(raw.get("text", "")), tuple(calls), str(raw.get("thinking", "")), faults, str(raw.get("stop_reason", ""))
    )
    return Step(turn, unless, str(raw.get("otherwise", "")))

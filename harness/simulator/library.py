"""The scenarios at hand: those that ship here, and the user's own from a folder (``*.toml`` as data, ``*.py`` as code).

A TOML scenario is a list of turns played in order::

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

A Python scenario module holds ``SCENARIOS``, a list of `Scenario`.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.simulator import scenarios as shipped
from harness.simulator.faults import FaultError, parse_fault
from harness.simulator.script import Call, Heard, Scenario, Script, Turn

_BESIDE = ("judge", "planner", "contract")
"""Scenarios of those who speak beside the agent."""


class LibraryError(Exception):
    """A scenario file cannot be used; the message names the file and what is wrong."""


@dataclass(frozen=True, slots=True)
class Library:
    """Scenarios in the order they are tried; the last one matches everything."""

    scenarios: tuple[Scenario, ...]

    def choose(self, goal: str) -> Scenario:
        """The first scenario whose pattern is found in the goal."""
        return next(s for s in self.scenarios if s.pattern.search(goal))


def load(folder: Path | None = None) -> Library:
    """The user's scenarios before the shipped ones. Raises LibraryError."""
    own: list[Scenario] = []
    if folder is not None:
        if not folder.is_dir():
            raise LibraryError(f"{folder} is not a folder with scenarios")
        for path in sorted(folder.iterdir()):
            if path.suffix == ".toml":
                own.append(_toml(path))
            elif path.suffix == ".py" and not path.name.startswith("_"):
                own.extend(_python(path))
    found = [
        s
        for info in pkgutil.iter_modules(shipped.__path__)
        for s in _of_module(importlib.import_module(f"{shipped.__name__}.{info.name}"), info.name)
    ]
    fallback = [s for s in found if s.name == "fallback"]
    beside = [s for s in found if s.name in _BESIDE]  # before all others: what they are shown holds the goal
    return Library((*beside, *own, *(s for s in found if s.name not in (*_BESIDE, "fallback")), *fallback))


def _of_module(module: object, where: str) -> Iterable[Scenario]:
    listed = getattr(module, "SCENARIOS", None)
    if not isinstance(listed, list) or not all(isinstance(s, Scenario) for s in listed):
        raise LibraryError(f"{where}: must define SCENARIOS, a list of Scenario")
    return listed


def _python(path: Path) -> Iterable[Scenario]:
    spec = importlib.util.spec_from_file_location(f"watchfloor_scenarios_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise LibraryError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as exc:
        raise LibraryError(f"{path}: {type(exc).__name__}: {exc}") from exc
    return _of_module(module, str(path))


def _toml(path: Path) -> Scenario:
    try:
        data = tomllib.loads(path.read_text("utf-8"))
        return parse(data)
    except (OSError, ValueError, re.error) as exc:
        raise LibraryError(f"{path}: {exc}") from exc


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

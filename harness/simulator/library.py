"""The scenarios at hand: those that ship here, and the user's own from a folder (``*.toml`` as data, ``*.py`` as code).

A TOML scenario is as `data_scenario` reads it; a Python scenario module holds ``SCENARIOS``, a list of `Scenario`.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.simulator import data_scenario
from harness.simulator import scenarios as shipped
from harness.simulator.script import Scenario

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
        return data_scenario.parse(data)
    except (OSError, ValueError, re.error) as exc:
        raise LibraryError(f"{path}: {exc}") from exc

"""The model of the soak: asks for effects that may happen once only, and notes what it asked for and what it was told
of it.

The notes are the endpoint's own knowledge of the calls: one JSON object a line in ``<folder>/<name>.jsonl``,
``{"asked": line}`` when a call is part of a reply and ``{"told": line, "how": "ok" | "not_run" | "unknown"}`` when its
result came back. Nothing of the harness writes there.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

from harness.simulator.script import Call, Heard, Result, Scenario, Script, say

WIDTH = 64
"""Every line has this many bytes: an append then never crosses a page, so a full disk leaves a whole line or none."""
GOAL = re.compile(r"^soak (?P<name>\S+) for (?P<turns>\d+) turns, notes in (?P<folder>\S+)$", re.MULTILINE)
FINISH = "finish"
"""A file of this name in the folder of notes: every conversation ends at its next turn."""
_NOTHING = re.compile(r"nothing (was |has )?(ran|run|started|done)|was not run|did not (run|start)", re.IGNORECASE)
_noted: dict[Path, set[str]] = {}


def goal(name: str, turns: int, folder: Path) -> str:
    """The goal that starts this model."""
    return f"soak {name} for {turns} turns, notes in {folder}"


def lines_of(name: str, turn: int) -> list[str]:
    """The effects of one turn: mostly one, sometimes two at once."""
    dice = random.Random(f"{name}/{turn}")
    return [f"{name} {turn:05d}.{i} ".ljust(WIDTH - 1, ".") for i in range(2 if dice.random() < 0.15 else 1)]


def call(line: str) -> Call:
    """Append the line, once; it takes a moment before and after, so that trouble meets the call at every point of
    it.
    """
    before, after = (random.Random(line + part).choice((0, 0.02, 0.1, 0.4)) for part in ("before", "after"))
    return Call("shell", {"script": f"sleep {before}; printf '%s\\n' '{line}' >> effects.txt && sleep {after}"})


def how(result: Result) -> str:
    """What the model was told: it happened, surely nothing ran, or nobody knows."""
    if not result.is_error:
        return "ok"
    return "not_run" if _NOTHING.search(result.text) else "unknown"


def _note(path: Path, facts: list[dict[str, str]]) -> None:
    known = _noted.setdefault(path, set())
    with path.open("a", encoding="utf-8") as f:
        for fact in facts:
            if (line := json.dumps(fact)) not in known:
                known.add(line)
                f.write(line + "\n")


def _work(text: str) -> Script:
    found = GOAL.search(text)
    assert found is not None
    name = found["name"]
    folder = Path(found["folder"])
    notes = folder / f"{name}.jsonl"
    for turn in range(int(found["turns"])):
        lines = lines_of(name, turn)
        asked = [{"asked": line} for line in lines]
        if (folder / FINISH).exists() and json.dumps(asked[0]) not in _noted.get(notes, ()):
            break  # what was asked for once is played again, so that its results are heard
        _note(notes, asked)
        more = [Call("write_file", {"path": "plan.md", "content": f"turn {turn}\n"})] if turn % 7 == 6 else []
        back: Heard = yield say(f"Turn {turn}.", *map(call, lines), *more)
        _note(notes, [{"told": line, "how": how(result)} for line, result in zip(lines, back.results, strict=False)])
    yield say("Everything that I was asked for is done.")


SCENARIOS = [Scenario("soak", GOAL, _work)]

"""A scenario that plays the turns written in the goal itself: ``play: [{"text": …, "calls": [[tool, input], …]}, …]``."""

from __future__ import annotations

import json
import re

from harness.simulator.script import Call, Scenario, Script, Turn


def _play(goal: str) -> Script:
    text = goal[goal.index("play:") + 5 :]
    turns, _ = json.JSONDecoder().raw_decode(text.strip())
    for turn in turns:
        yield Turn(turn.get("text", ""), tuple(Call(tool, arguments) for tool, arguments in turn.get("calls", [])))


SCENARIOS = [Scenario("scripted", re.compile(r"play:\s*\["), _play)]

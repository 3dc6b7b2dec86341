"""For any goal that no other scenario knows: looks around, says what it is, and ends."""

from __future__ import annotations

import re

from harness.simulator.script import Scenario, Script, call, say


def play(goal: str) -> Script:
    back = yield say(
        "I look at what is here.", call("list_files"), call("exec", argv=["git", "log", "--oneline", "-5"])
    )
    lines = len(back.text.splitlines())
    back = yield say(
        f"I saw {lines} lines of listing and history. I am a simulated model that knows a few scenarios by heart, and"
        " this goal is none of them: I changed nothing. With a real endpoint in the configuration, the same session"
        " would do the work."
    )
    while True:
        back = yield say(f"I heard you: {' '.join(back.text.split())[:200] or 'nothing'}. I have nothing to add.")


SCENARIOS = [Scenario("fallback", re.compile(""), play)]

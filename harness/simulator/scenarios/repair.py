"""Meets the demo repository's failing test, finds the cause and repairs it."""

from __future__ import annotations

import re

from harness.simulator.scenarios.features import SPLIT_NEW, SPLIT_OLD, failing, green, run_tests
from harness.simulator.script import Scenario, Script, call, say

HASTY = "    share = -(-cents // len(people))\n    return {name: share for name in people}\n"


def play(goal: str) -> Script:
    back = yield run_tests("First I want to see the failure myself.")
    if green(back):
        yield say("Everything passes here; there is nothing to repair.")
        return
    yield say(
        f"{failing(back)}: the sum of the shares is not the amount. I look at the function and at what its tests ask"
        " for.",
        call("read_file", path="tally/split.py"),
        call("read_file", path="tests/test_split.py"),
        call("search", pattern="split\\(", path="tally"),
    )
    yield say(
        "Integer division drops the remainder. Rounding up instead would keep it.",
        call("edit_file", path="tally/split.py", old=SPLIT_OLD, new=HASTY, why="do not lose the remainder"),
    )
    back = yield run_tests("", "tests.test_split")
    if not green(back):
        yield say(
            f"No: now there is too much, {failing(back)} fails. The remainder has to be dealt out, one cent each to the"
            " first people.",
            call(
                "edit_file", path="tally/split.py", old=HASTY, new=SPLIT_NEW, why="deal the remainder out one cent each"
            ),
        )
        back = yield run_tests("The whole suite this time.")
    if not green(back):
        yield say(
            f"{failing(back)} still fails and I have run out of ideas. I leave the change for a human to look at."
        )
        return
    yield say("It passes. I check that nothing but `split.py` changed.", call("exec", argv=["git", "diff", "--stat"]))
    yield say(
        "",
        call(
            "exec",
            argv=["git", "commit", "-q", "-a", "-m", "Deal out the cents that do not divide evenly"],
            why="record the repair",
        ),
    )
    yield say(
        "Repaired: `split` lost up to n - 1 cents because it dropped the remainder; it now goes to the first people, as"
        " its docstring says. Committed."
    )


SCENARIOS = [Scenario("repair", re.compile(r"\b(failing test|test (that )?fails|repair)\b", re.IGNORECASE), play)]

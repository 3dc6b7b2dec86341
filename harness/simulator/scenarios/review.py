"""Plays planner and evaluator before the work: whatever the goal's marks say, draft by draft, else a plain contract
that is agreed to.

``[[planner garbage, good | good]]`` and ``[[agrees no: name the file | yes]]``: drafts are parted by ``|``, the replies
of one by commas; the last draft holds for all that follow. ``garbage`` is a reply in no form that was asked for; one
that begins with ``stall`` does not come when it is first asked for: there are pings, and nothing else.
"""

from __future__ import annotations

import json
import re

from harness.simulator.faults import Fault
from harness.simulator.script import Scenario, Script, Turn

PLANNER = re.compile(r"\ABrief for the planner\.")
EVALUATOR = re.compile(r"\AContract for the evaluator, draft (\d+)\.")
_STALL = "stall "
_AGAIN = ("The evaluator objects", "The person says")
_PLANNER_MARK = re.compile(r"\[\[planner ([^\]]*)\]\]")
_EVALUATOR_MARK = re.compile(r"\[\[agrees ([^\]]*)\]\]")


def _faults(word: str) -> tuple[Fault, ...]:
    return (Fault("pings", seconds=3600.0),) if word.startswith(_STALL) else ()


def _wanted(mark: re.Pattern[str], brief: str, default: str) -> list[list[str]]:
    found = mark.search(brief)
    drafts = (found[1] if found else default).split("|")
    return [[reply.strip() for reply in draft.split(",")] for draft in drafts]


def plan(brief: str) -> Script:
    drafts = _wanted(_PLANNER_MARK, brief, "good")
    n = 0
    tried = 0
    answered = "nothing"
    while True:
        replies = drafts[min(n, len(drafts) - 1)]
        word = replies[min(tried, len(replies) - 1)]
        good = word.removeprefix(_STALL) != "garbage"
        heard = yield Turn(
            _contract(n + 1, answered) if good else "I would begin with the tests.", faults=_faults(word)
        )
        if any(title in heard.text for title in _AGAIN):
            n += 1
            tried = 0
            answered = " ".join(line[2:] for line in heard.text.split("\n") if line.startswith("- "))
        else:
            tried += 1


def _contract(n: int, answered: str) -> str:
    return (
        f"## What will be done\n\n- What the goal names is there (draft {n}; it answers: {answered}).\n\n"
        "## How it will be checked\n\n- The commands among the criteria exit with 0.\n\n"
        "## Out of scope\n\n- Everything that the goal does not name."
    )


def agree(brief: str) -> Script:
    found = EVALUATOR.match(brief)
    n = int(found[1]) if found else 1
    drafts = _wanted(_EVALUATOR_MARK, brief, "yes")
    for word in drafts[min(n, len(drafts)) - 1]:
        answer = word.removeprefix(_STALL)
        objections = [answer.removeprefix("no:").strip()] if answer.startswith("no:") else []
        verdict = json.dumps({"objections": objections, "agrees": not objections})
        yield Turn("Fine with me." if answer == "garbage" else verdict, faults=_faults(word))


SCENARIOS = [Scenario("planner", PLANNER, plan), Scenario("contract", EVALUATOR, agree)]

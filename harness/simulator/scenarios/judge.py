"""Plays the judge: whatever the goal's mark says, cycle by cycle, else what a few plain signs in the change suggest.

``[[judge needs_revision | run: cat a.txt, satisfied]]``: cycles are parted by ``|``, the replies of one by commas; the
last cycle holds for all that follow. ``garbage`` is a reply that is no JSON.
"""

from __future__ import annotations

import json
import re

from harness.simulator.script import Scenario, Script, Turn

CASE = re.compile(r"\ACase for the judge, cycle (\d+) of \d+")
_MARK = re.compile(r"\[\[judge ([^\]]*)\]\]")
_CRITERIA = re.compile(r"a finding for each of (.*?); then drift")
_SIGNS = (
    (re.compile(r"^-\s*(async )?def test_|^-\s*(it|test)\(|^deleted file mode", re.MULTILINE), "tests are gone"),
    (re.compile(r"^\+.*(NotImplementedError|TODO|FIXME|stub|placeholder)", re.MULTILINE), "a part is only a stub"),
    (re.compile(r"^\+.*(\.skip\b|xfail|@skip|skipif)", re.MULTILINE), "tests are skipped"),
    (re.compile(r"^\[did not pass", re.MULTILINE), "a check did not pass"),
    (re.compile(r"\b0 (tests|items|passed)|no tests ran|\|\| true", re.IGNORECASE), "nothing was run"),
    (re.compile(r"Nothing was changed\."), "nothing was done"),
    (
        re.compile(r"^\+\s*(if|case) .*(==|===) ?[\"'\d].*:?\s*return", re.MULTILINE),
        "results are written into the code",
    ),
)


def play(case: str) -> Script:
    found = CASE.match(case)
    cycle = int(found[1]) if found else 1
    mark = _MARK.search(case)
    named = _CRITERIA.search(case)
    criteria = named[1].split(", ") if named else ["goal"]
    cycles = mark[1].split("|") if mark else [_by_signs(case)]
    for reply in cycles[min(cycle, len(cycles)) - 1].split(","):
        yield Turn(_reply(reply.strip(), criteria, cycle))


def _by_signs(case: str) -> str:
    return "needs_revision" if any(sign.search(case) for sign, _ in _SIGNS) else "satisfied"


def _reply(word: str, criteria: list[str], cycle: int) -> str:
    if word == "garbage":
        return "I find it rather good."
    command = word.removeprefix("run:").strip() if word.startswith("run:") else ""
    verdict = "needs_revision" if command else word
    good = verdict == "satisfied"
    reason = "seen in the change" if good else f"cycle {cycle}: not shown by the change"
    return json.dumps(
        {
            "findings": [{"criterion": name, "holds": good, "reason": reason} for name in criteria],
            "drift": "",
            "summary": "It is all there." if good else f"Judged in cycle {cycle}: finish what is missing.",
            "run": [command] if command else [],
            "verdict": verdict,
        }
    )


SCENARIOS = [Scenario("judge", CASE, play)]

"""Makes a small documentation change, commits it and wants to push it; takes no for an answer."""

from __future__ import annotations

import re

from harness.simulator.script import Scenario, Script, call, say

ENTRY = "- The README says how to run the tests and where the open work stands.\n"
BRANCH = re.compile(r"refs/heads/([\w./-]*\w)|branch `?([\w./-]*\w)`?")


def branch_of(goal: str) -> str:
    """The branch that the goal names, or a default."""
    match = BRANCH.search(goal)
    return (match[1] or match[2]) if match else "docs/unreleased"


def play(goal: str) -> Script:
    branch = branch_of(goal)
    yield say(
        "I read the changelog and the rules for it.",
        call("read_file", path="CHANGELOG.md"),
        call("read_file", path="CONTRIBUTING.md"),
    )
    yield say(
        "One line under *Unreleased*, ending with a full stop.",
        call("edit_file", path="CHANGELOG.md", old="## Unreleased\n", new=f"## Unreleased\n\n{ENTRY}", why="the entry"),
    )
    back = yield say(
        "The repository has a check for the form.", call("exec", argv=["python3", "tools/check_changelog.py"])
    )
    if any(r.is_error for r in back.results) or "in order" not in back.text:
        yield say("The check does not accept my entry, so I stop before anything leaves this machine.")
        return
    yield say(
        "In order. I commit.",
        call(
            "exec", argv=["git", "commit", "-q", "-a", "-m", "Mention the tests and the specification in the changelog"]
        ),
    )
    for attempt in range(2):
        back = yield say(
            (
                f"Now others should see it: I push to `{branch}`. That leaves this machine, so it needs your word."
                if attempt == 0
                else "I try the push once more."
            ),
            call(
                "exec",
                argv=["git", "push", "origin", f"HEAD:refs/heads/{branch}"],
                access="network",
                why="publish the changelog entry for review",
            ),
        )
        if back.denied:
            yield say(
                "Understood, I do not push. The commit stays on this branch. You said:"
                f" {' '.join(back.text.split())[:300]}"
            )
            return
        if not any(r.is_error for r in back.results):
            yield say(f"Pushed to `{branch}`. The changelog entry is ready for review.")
            return
    yield say(
        "The push does not go through; the commit is safe on this branch. The last message was:\n" + back.text[:500]
    )


SCENARIOS = [Scenario("publish", re.compile(r"\bpush\b", re.IGNORECASE), play)]

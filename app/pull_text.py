"""Title and body of a request for review, from what Watchfloor itself has on record. Pure.

Every text of others is shown safely, and where it could be markup as code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.events.pulling import PullView
from harness.events.receipts import Receipt
from harness.events.untrusted import to_display

_TITLE = 72
_GOAL = 4000
_TEXT = 300
_LISTED = 50


def code(raw: str, limit: int | None = None) -> str:
    """Text of others as a Markdown code span that it cannot end."""
    shown = to_display(raw, limit=limit)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {shown} {fence}"


def title(view: PullView) -> str:
    """Its one commit's subject, else the first line of the goal."""
    lines = [line.strip() for line in view.goal.split("\n") if line.strip()]
    if view.count == 1 and view.commits:
        lines = view.commits
    shown = to_display(lines[0] if lines else view.name)
    return shown if len(shown) <= _TITLE else shown[: _TITLE - 1] + "…"


def body(view: PullView, receipts: Sequence[Receipt]) -> str:
    """Goal, commits, plan, checks, and what a person decided on the way."""
    goal = [f"    {to_display(line)}" for line in view.goal[:_GOAL].strip().split("\n")]
    checks = ["Every criterion passed, run by Watchfloor." if view.verified else "Not verified by Watchfloor.", ""]
    checks += [f"- {'passes' if one.passed else 'not passed'}: {_code(one.command)}" for one in view.checks]
    parts = (
        ("Goal", goal),
        ("Commits", [f"- {_code(one)}" for one in view.commits] + _more(view.count, len(view.commits))),
        ("Plan", [f"- [{'x' if one.passes else ' '}] {_code(f'{one.id} {one.title}')}" for one in view.plan]),
        ("Checks", checks),
        ("Decided by a person", [f"- {_decided(one)}" for one in receipts if one.decision][-_LISTED:]),
    )
    said = [f"## {head}\n\n" + "\n".join(lines).rstrip() for head, lines in parts if lines]
    return "\n\n".join([*said, f"Session {view.sid}, at {view.head[:12]}."]) + "\n"


def _code(raw: str) -> str:
    return code(raw, _TEXT)


def _decided(one: Receipt) -> str:
    return _code(f"{one.decision} by {one.by or 'someone'}: {one.title}")


def _more(count: int, shown: int) -> list[str]:
    return [f"- and {count - shown} more"] if count > shown else []

"""A call that one policy allowed does not start under another without a new look; a human's word falls only to a
denial.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.domain.actions.action import from_wire
from harness.events.types import ToolJudged
from harness.policy.policy_file import Policy, parse_policy
from harness.supervisor.calls.earlier_yes import stands

ACTION: dict[str, Any] = {"tool": "exec", "argv": ["curl", "x"], "effects": ["network"], "kind": "exec"}
OLD = parse_policy('[[rule]]\nverdict = "allow"\neffect = "network"\n', "policy.toml")
ASKS = parse_policy('[[rule]]\nverdict = "ask"\neffect = "network"\n', "policy.toml")
DENIES = parse_policy('[[rule]]\nverdict = "deny"\neffect = "network"\n', "policy.toml")


def still(now: Policy, rule: str, action: dict[str, Any] | None = ACTION) -> bool:
    judged = ToolJudged(
        call_id="c1.0", action_hash="h", verdict="allow", rule=rule, reason="", policy=OLD.hash, action=action
    )
    return stands(judged, from_wire(action) if action is not None else None, now)


@pytest.mark.parametrize(
    ("now", "rule", "expected"),
    [
        (OLD, "rule 1", True),
        (ASKS, "rule 1", False),
        (DENIES, "rule 1", False),
        (ASKS, "edited by you", True),
        (DENIES, "edited by you", False),
        (ASKS, "inside-the-sandbox", False),
    ],
)
def test_an_earlier_yes_under_another_policy(now: Policy, rule: str, expected: bool) -> None:
    assert still(now, rule) is expected


def test_an_edit_whose_action_cannot_be_read_stands() -> None:
    assert still(DENIES, "edited by you", None)

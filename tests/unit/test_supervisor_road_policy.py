"""A call that one policy allowed does not start under another without a new look; a human's word falls only to a
denial.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from harness.policy.rules import Policy, parse_policy
from harness.supervisor.calls.call_flow import CallFlow

ACTION: dict[str, Any] = {"tool": "exec", "argv": ["curl", "x"], "effects": ["network"], "kind": "exec"}
OLD = parse_policy('[[rule]]\nverdict = "allow"\neffect = "network"\n', "policy.toml")
ASKS = parse_policy('[[rule]]\nverdict = "ask"\neffect = "network"\n', "policy.toml")
DENIES = parse_policy('[[rule]]\nverdict = "deny"\neffect = "network"\n', "policy.toml")


def still(now: Policy, rule: str) -> bool:
    road = CallFlow(SimpleNamespace(policy=now), lambda *_: None, None)  # type: ignore[arg-type]
    judged = SimpleNamespace(policy=OLD.hash, rule=rule, action=ACTION, action_blob=None)
    return asyncio.run(road._still_allowed(None, SimpleNamespace(judged=judged)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "rule", "expected"),
    [
        (OLD, "rule 1", True),
        (ASKS, "rule 1", False),
        (DENIES, "rule 1", False),
        (ASKS, "edited by you", True),
        (DENIES, "edited by you", False),
        (ASKS, "inside-the-fence", False),
    ],
)
def test_an_earlier_yes_under_another_policy(now: Policy, rule: str, expected: bool) -> None:
    assert still(now, rule) is expected

"""Whether what allowed a call still stands when the policy has become another one. Pure."""

from __future__ import annotations

from harness.domain.actions.action import Action
from harness.domain.decision import Ruling
from harness.events.types import ToolJudged
from harness.policy.decide import decide
from harness.policy.policy_file import Policy

EDITED = "edited by you"
"""The rule of a call that a human allowed with an input of their own."""


def stands(judged: ToolJudged, action: Action | None, policy: Policy) -> bool:
    """True while the policy is the one that the call was allowed by; under another one only a human's edit stands, and
    falls to a denial. ``action`` is None when it cannot be read.
    """
    if judged.policy == policy.hash:
        return True
    return judged.rule == EDITED and not denial(judged, action, policy)


def denial(judged: ToolJudged, action: Action | None, policy: Policy) -> str:
    """Why ``policy`` denies what was allowed by a human under an earlier one; empty when it does not."""
    if judged.policy == policy.hash or action is None:
        return ""
    verdict = decide(action, policy)
    if verdict.verdict != Ruling.DENY:
        return ""
    return f"the policy changed: {verdict.rule} denies this now: {verdict.reason}"

"""What a launch is asked for with: the one list of its fields, which command line and screen fill in and the supervisor
reads.
"""

from __future__ import annotations

import msgspec

from harness.events.body import Caps


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of ``launch``, as the protocol has them; ``repo`` is absolute."""

    repo: str
    goal: str
    checks: list[str] = []
    name: str = ""
    model: str = ""
    """Empty = its role's, else the configured one."""
    caps: Caps | None = None
    base_url: str = ""
    credential: dict[str, str] | None = None
    protect: list[str] = []
    """Patterns of files that decide whether it is done, beyond those configured."""
    may_change: list[str] = []
    plan: str = ""
    plan_from_goal: str = ""
    accept_plan: bool = False
    gates: list[str] = []
    phrases: dict[str, str] = {}
    """Criteria of its plan in these words are decided by these commands, for this repository from now on; an empty
    command takes such a binding back.
    """
    accept_phrases: str = ""
    """The beginning of the SHA-256 of the repository's own phrases, which count from now on."""
    role: str = ""
    fresh: str = ""
    """When its context begins anew as it goes through its plan; empty = as configured."""
    review: bool = False
    """Planner, contract, coder, evaluator: nobody works before a contract is agreed, and a judge judges by it."""
    judge: bool = False
    judge_model: str = ""
    judge_cycles: int = 0
    judge_at: str = ""
    """When the judge looks: at the end, or at each task of the plan as well; empty = as configured."""
    evidence_rounds: int | None = None
    """How often its agent is asked for evidence where nothing else decides; None = as configured."""
    start: str = ""
    """Branch, tag or commit that it begins from; empty = what the checkout shows."""

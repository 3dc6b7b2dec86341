"""Operations that change nothing. Standard library only."""

from __future__ import annotations

from typing import Final

LOOKING: Final = frozenset(
    {
        "approval",
        "approvals",
        "archived",
        "blob",
        "brief",
        "changes",
        "checkpoints",
        "costs",
        "diff",
        "grant_preview",
        "grants",
        "hello",
        "invariants",
        "job_log",
        "jobs",
        "memories",
        "memory_history",
        "memory_search",
        "merge_look",
        "outcome",
        "phrases",
        "plan",
        "policy_check",
        "policy_explain",
        "policy_try",
        "pull_look",
        "pull_secrets",
        "read",
        "receipts",
        "score",
        "session",
        "sessions",
        "starts",
        "status",
        "subscribe",
        "timeline",
        "undo_points",
        "verify",
        "watching",
    }
)
"""Asked again they answer again. What is not named here may have been done when its reply is lost."""

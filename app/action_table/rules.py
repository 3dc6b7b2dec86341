"""Actions of the rules that let requests through."""

from __future__ import annotations

from app.action_table.action import EVERYWHERE, Action, act

ACTIONS: tuple[Action, ...] = (
    act(
        "go.rules",
        "Go to the rules",
        "What runs without asking because you said so: what each rule covers, each use of it, and taking it back.",
        "6",
        EVERYWHERE,
    ),
    act(
        "rules.revoke",
        "Revoke the rule",
        "What it covers asks again, at once, also what it allowed and has not started (asks first).",
        "r x",
        "rules",
        "revoke",
        1,
    ),
    act(
        "rules.ended",
        "Rules that have ended",
        "Show those that were revoked, have expired or are used up too, or hide them again.",
        "a",
        "rules",
        "show ended",
        2,
    ),
)

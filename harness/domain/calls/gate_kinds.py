"""The kinds of effect that a phase of a plan may ask about, each call by itself. Pure, standard library only."""

from __future__ import annotations

from enum import StrEnum

_RULE = "the gate of "


class GateKind(StrEnum):
    """What a call would do, in the words of a plan."""

    PRODUCTION_WRITE = "production write"
    """Changes something outside the worktree: a push, a file elsewhere, anything on the network, a program without
    the sandbox.
    """
    EXTERNAL_MESSAGE = "external message"
    """Can reach somebody: anything on the network, a program without the sandbox."""
    DELETE = "delete"
    """What no undo brings back: a forced push, a file elsewhere, a program without the sandbox, or a change of what is
    not kept before it.
    """


def rule(phase: str) -> str:
    """The rule that a verdict names when such a gate asks."""
    return f"{_RULE}{phase or 'the plan'}"


def is_gate(rule_name: str) -> bool:
    """True for the rule of a gate: a person decides each call of it, and no rule of theirs does so instead."""
    return rule_name.startswith(_RULE)

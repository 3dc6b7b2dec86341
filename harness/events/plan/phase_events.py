"""Events of the phases of a plan: that one began, and a person's word on its gate."""

from __future__ import annotations

from harness.events.body import Body, By


class PhaseBegun(Body, frozen=True, kw_only=True):
    """A phase begins: every entry of the phases before passes."""

    TYPE = "phase.begun"
    phase: str


class GateOpened(Body, frozen=True, kw_only=True):
    """A person lets a phase with a gate begin."""

    TYPE = "gate.opened"
    phase: str
    message: str = ""
    by: By = By()

"""Events that say what a request shows of the log from now on; the log itself stays as it is."""

from __future__ import annotations

from harness.events.body import Body


class ContextCleared(Body, frozen=True, kw_only=True):
    """Results and large inputs of the turns before record ``before`` stand in their short forms from now on.

    ``tokens`` were measured when it was decided, ``after`` is foreseen; ``trigger`` says why in words.
    """

    TYPE = "context.cleared"
    before: int
    tokens: int
    after: int
    trigger: str


class ContextReset(Body, frozen=True, kw_only=True):
    """The context begins anew: the goal, this hand-off, then what was said from record ``keep`` on."""

    TYPE = "context.reset"
    keep: int
    handoff: str
    tokens: int
    after: int
    trigger: str

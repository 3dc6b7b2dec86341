"""Events of judging finished work: asked for, laid out, answered."""

from __future__ import annotations

import msgspec

from harness.events.body import BlobRef, Body, Usage

JUDGES = "judge"
"""What `ModelRequest.purpose` says of the requests that a judge makes."""
RAN_FOR = "judge "
"""What `ToolProposed.ref` of a command begins with that a judge wants to be run: no model can call itself so, for the
blank.
"""
SATISFIED = "satisfied"
NEEDS_REVISION = "needs_revision"
FAILED = "failed"
NONE = "none"
"""The judge gave no answer that is a verdict."""


PLAN_CRITERION = "plan "
"""What a judge's criterion begins with that is an entry of the plan."""
AT_END = "end"
AT_TASK = "task"
"""When a judge looks: at the whole when it is said to be done, or before that at each task of the plan as well."""


class JudgeWanted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session is done only when a judge is satisfied, too; it may send the work back ``cycles`` - 1 times for each
    instruction, and with ``at`` `AT_TASK` for each attempt at a task.
    """

    model: str
    cycles: int
    at: str = AT_END


class Finding(msgspec.Struct, frozen=True):
    """The judge's word on one criterion."""

    criterion: str
    holds: bool
    reason: str


class EvaluationRequested(Body, frozen=True, kw_only=True):
    """The agent says that the work is done, every check passed, and the judge is to look. ``entry``: at this task of
    the plan alone.
    """

    TYPE = "evaluation.requested"
    cycle: int
    entry: str = ""


class EvaluationStarted(Body, frozen=True, kw_only=True):
    """The judge begins; ``case`` is what it will see, ``criteria`` are the names in it.

    ``rubric`` is the SHA-256 of the judge's role; it may have ``runs`` commands run.
    """

    TYPE = "evaluation.started"
    cycle: int
    cycles: int
    model: str
    role: str
    rubric: str
    case: BlobRef
    criteria: list[str]
    runs: int = 0


class EvaluationEnded(Body, frozen=True, kw_only=True):
    """``verdict``: satisfied, needs_revision, failed, or none (``summary`` says why there is none).

    ``drift``: how the work departs from the goal as it was given; empty when it does not. ``usage`` and ``cost_nano``
    are those of all ``requests`` that were answered.
    """

    TYPE = "evaluation.ended"
    cycle: int
    cycles: int
    model: str
    rubric: str
    verdict: str
    summary: str
    findings: list[Finding] = []
    drift: str = ""
    requests: int = 0
    usage: Usage = Usage()
    cost_nano: int = 0

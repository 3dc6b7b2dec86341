"""Events of the contract that planner and evaluator agree on before anybody works."""

from __future__ import annotations

import msgspec

from harness.events.body import BlobRef, Body, Usage

PLANS = "planner"
AGREES = "evaluator"
PURPOSES = (PLANS, AGREES)
"""What `ModelRequest.purpose` says of the requests of those two."""


class ContractWanted(msgspec.Struct, frozen=True):
    """A session begins its work with a contract: the planner's model, and how often objections go back to it."""

    model: str
    revisions: int


class ContractOpened(Body, frozen=True, kw_only=True):
    """Work on a contract begins; ``brief`` is what planner and evaluator are shown.

    ``role``, ``version`` and ``model`` are the planner's; ``evaluator`` is the model that is asked whether it agrees;
    objections go back to the planner ``revisions`` times.
    """

    TYPE = "contract.opened"
    brief: BlobRef
    role: str
    version: str
    model: str
    evaluator: str
    revisions: int


class ContractDrafted(Body, frozen=True, kw_only=True):
    """The planner's ``n``-th draft, and the objections that it answers."""

    TYPE = "contract.drafted"
    n: int
    text: BlobRef
    answers: list[str] = []


class ContractAgreed(Body, frozen=True, kw_only=True):
    """The newest draft, ``text``, is the contract, with the ``objections`` that were not met; work may begin.

    ``usage`` and ``cost_nano`` are those of all ``requests`` that were answered.
    """

    TYPE = "contract.agreed"
    text: BlobRef
    drafts: int
    objections: list[str] = []
    requests: int = 0
    usage: Usage = Usage()
    cost_nano: int = 0

"""Where the contract of a session stands, by its log. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.events.body import Body
from harness.events.conversation.conversation_events import ModelMessage
from harness.events.plan.contract_events import (
    AGREES,
    PLANS,
    ContractAgreed,
    ContractDrafted,
    ContractOpened,
    ContractWanted,
)
from harness.events.session.session_events import SessionIntent


@dataclass(frozen=True, slots=True)
class Contract:
    """``wanted`` None: the session works without one."""

    wanted: ContractWanted | None = None
    opened: ContractOpened | None = None
    drafted: ContractDrafted | None = None
    agreed: ContractAgreed | None = None
    planned: bool = False
    """The planner spoke since the newest draft."""
    heard: bool = False
    """The evaluator spoke on the newest draft."""

    @property
    def due(self) -> bool:
        """True while nobody may work, because no contract stands."""
        return self.wanted is not None and self.agreed is None


def after(now: Contract, body: Body) -> Contract:
    """The same with one more record. A draft counts that the planner spoke before, an agreement that is on the newest
    draft after the evaluator's word on it; the first agreement holds for good.
    """
    match body:
        case SessionIntent():
            return Contract(body.contract)
        case ContractOpened() if now.wanted is not None and now.opened is None:
            return replace(now, opened=body)
        case _ if now.opened is None or now.agreed is not None:
            return now
        case ModelMessage() if body.purpose == PLANS:
            return replace(now, planned=True)
        case ModelMessage() if body.purpose == AGREES:
            return replace(now, heard=True)
        case ContractDrafted() if now.planned:
            return replace(now, drafted=body, planned=False, heard=False)
        case ContractAgreed() if now.heard and now.drafted is not None and body.text.sha == now.drafted.text.sha:
            return replace(now, agreed=body)
        case _:
            return now

"""What a brain knows of the contract that is agreed before work, folded from the log, and what it does next. Pure.

The requests of planner and evaluator are purposes of their own, as a judge's are: nothing of them enters the
conversation of whoever works, who reads the contract alone.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.agents.steps import Park
from harness.brain.api.stream import AttemptRequest
from harness.domain.calls.attempt import AT_THE_GATE, NO_REPLY, OVERFLOWS
from harness.domain.states import ParkedFor
from harness.events import message_parts
from harness.events import types as t
from harness.events.messages_api import Block
from harness.events.plan.contract_events import AGREES, PLANS, PURPOSES
from harness.plan import contract
from harness.plan.contract import Talk
from harness.projections.state.contract import Contract

_SHORTER = "launch it with a shorter goal that names files, or give that role a model that reads more"
_MOST_FAILURES = 3
Load = Callable[[t.ModelMessage, int], list[message_parts.Part]]
"""The parts of the reply at a record, from its blob where they are there."""


@dataclass(frozen=True, slots=True)
class AskAuthor:
    """Send the planner or the evaluator (``purpose``) what it is shown and what was said since."""

    purpose: str
    attempt: int = 1
    request_id: str = ""

    def model(self, opened: t.ContractOpened) -> str:
        """Whose model answers."""
        return opened.model if self.purpose == PLANS else opened.evaluator


@dataclass(frozen=True, slots=True)
class KeepDraft:
    """The planner's reply is a contract: put on record as the ``n``-th."""

    n: int
    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Agree:
    """The contract holds from here on."""

    agreed: t.ContractAgreed


Step: TypeAlias = AskAuthor | KeepDraft | Agree | Park


@dataclass(slots=True)
class Agreement:
    """Built only by `take`. ``failures`` are those of the request that is due, since a person was last asked."""

    talk: Talk = field(default_factory=Talk)
    failures: list[t.ModelFailed] = field(default_factory=list)
    open: bool = False
    """A contract is to be agreed on: what a person says now is for its authors too."""
    said: list[int] = field(default_factory=list)
    """The records of the person's words."""
    requests: int = 0
    usage: t.Usage = field(default_factory=t.Usage)
    cost_nano: int = 0

    def take(self, r: t.Record, load: Load) -> bool:
        """Apply one record; True when it is of no concern to anybody's conversation."""
        match body := r.body:
            case t.SessionIntent():
                self.open = body.contract is not None
            case t.ContractAgreed():
                self.open = False
            case t.UserMessage() if body.origin == "human" and self.open:
                self.said.append(r.seq)
                self.talk.words.append(body.text)
            case t.ModelRequest() if body.purpose == PLANS:
                self.talk.shown = bisect_right(self.said, body.upto_seq)
            case t.ModelMessage() if body.purpose in PURPOSES:
                if body.purpose == PLANS:
                    self.talk.known = self.talk.shown
                whole = body.stop == message_parts.DONE
                text = (
                    "".join(part.text for part in load(body, r.seq) if isinstance(part, message_parts.Text))
                    if whole
                    else ""
                )
                (self.talk.written if body.purpose == PLANS else self.talk.heard).append(text)
                self.failures = []
                self.requests = self.requests + 1
                self.usage += body.usage
                self.cost_nano += body.cost_nano
                return True
            case t.ModelSettled() if body.purpose in PURPOSES:
                self.cost_nano += body.more_nano
                return True
            case t.ModelFailed() if body.purpose in PURPOSES:
                self.failures.append(body)
                self.usage += body.known
                self.cost_nano += body.cost_nano
                return True
            case t.ContractDrafted() if self.talk.written:
                self.talk = self.talk.kept(self.talk.written[-1].strip())
            case t.SessionParked() | t.SessionContinued():
                self.failures = []
                self.talk.written = [text for text in self.talk.written if not contract.problem(text)]
            case _:
                pass
        return False


def next_step(agreement: Agreement, stands: Contract) -> Step | None:
    """What the contract needs that is to be agreed on; None when none is, or it waits for its brief."""
    opened = stands.opened
    if not stands.due or opened is None:
        return None
    failed = agreement.failures[-1] if agreement.failures else None
    if failed is not None and failed.kind not in AT_THE_GATE:
        tried_out = failed.kind not in NO_REPLY or len(agreement.failures) >= _MOST_FAILURES
        if tried_out or failed.kind in OVERFLOWS:
            return Park(ParkedFor.ERROR, f"the contract's {failed.purpose}: {failed.kind}: {failed.message}")
    match contract.following(agreement.talk, opened.revisions):
        case contract.AskPlanner():
            return _ask(agreement, PLANS)
        case contract.AskEvaluator():
            return _ask(agreement, AGREES)
        case contract.Keep(text, answers):
            return KeepDraft(len(agreement.talk.drafts) + 1, text, answers)
        case contract.Stands(objections) if stands.drafted is not None:
            return Agree(
                t.ContractAgreed(
                    text=stands.drafted.text,
                    drafts=len(agreement.talk.drafts),
                    objections=list(objections),
                    requests=agreement.requests,
                    usage=agreement.usage,
                    cost_nano=agreement.cost_nano,
                )
            )
        case contract.Stuck(why):
            return Park(ParkedFor.ERROR, f"the planner wrote no contract, also when asked again: {why}")
    return None


def unfit(step: AskAuthor, why: str) -> Park:
    """What follows when an author cannot be sent what it is to read."""
    return Park(ParkedFor.ERROR, f"the contract's {step.purpose} cannot be asked: {why}; {_SHORTER}")


def _ask(agreement: Agreement, purpose: str) -> AskAuthor:
    failures = [one for one in agreement.failures if one.purpose == purpose]
    return AskAuthor(purpose, len(failures) + 1, failures[0].request_id if failures else "")


def request(
    step: AskAuthor, prompt: str, opened: t.ContractOpened, brief: str, talk: Talk, room: int
) -> AttemptRequest:
    """What that author is sent; the evaluator's answer is held to a schema."""
    system: list[Block] = [{"type": "text", "text": prompt, "cache_control": {"type": "ephemeral"}}]
    if step.purpose == PLANS:
        messages = contract.for_planner(brief, talk)
        return AttemptRequest(step.model(opened), room, system, [], json.dumps(messages).encode())
    messages = contract.for_evaluator(brief, talk)
    return AttemptRequest(step.model(opened), room, system, [], json.dumps(messages).encode(), schema=contract.schema())

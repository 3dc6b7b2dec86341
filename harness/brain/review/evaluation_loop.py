"""What a brain knows of an evaluation under way, folded from the log, and what it does next for it. Pure.

The judge's requests are a purpose of their own: nothing of them enters the conversation of the agent, and nothing that
the agent said enters theirs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.agents.steps import Park, Propose
from harness.brain.api.stream import AttemptRequest
from harness.domain.calls.attempt import AT_THE_GATE, NO_REPLY, OVERFLOWS
from harness.domain.calls.call_id import name_call
from harness.domain.states import ParkedFor
from harness.events import message_parts
from harness.events import types as t
from harness.events.messages_api import Block
from harness.events.plan import evaluation_events as ev
from harness.judge import dialogue, verdict
from harness.judge.dialogue import Ran, Reply
from harness.judge.verdict import Answer
from harness.projections.state.evaluation import JudgeStage, JudgeState
from harness.tools import registry

SCHEMA_TOKENS = 1000
"""More than the schema of an answer can take."""
_FINDING_TOKENS = 12
_SHORTER = "a judge of another model reads more, and with --judge-at task it looks at one entry of a plan at a time"
_MOST_FAILURES = 3
Load = Callable[[t.ModelMessage, int], list[message_parts.Part]]
"""The parts of the reply at a record, from its blob where they are there."""


@dataclass(frozen=True, slots=True)
class AskJudge:
    """Send the judge its case and what was said since."""

    attempt: int = 1
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Conclude:
    """The evaluation is over."""

    ended: t.EvaluationEnded


Step: TypeAlias = AskJudge | Conclude | Propose | Park


@dataclass(slots=True)
class EvaluationLoop:
    """Built only by `take`."""

    replies: list[Reply] = field(default_factory=list)
    failures: list[t.ModelFailed] = field(default_factory=list)
    usage: t.Usage = field(default_factory=t.Usage)
    cost_nano: int = 0

    def take(self, r: t.Record, load: Load) -> bool:
        """Apply one record; True when it is the judge's alone."""
        match body := r.body:
            case t.EvaluationStarted():
                self.replies = []
                self.failures = []
                self.usage = t.Usage()
                self.cost_nano = 0
            case t.ModelMessage() if body.purpose == ev.JUDGES:
                text = "".join(part.text for part in load(body, r.seq) if isinstance(part, message_parts.Text))
                self.replies.append(Reply(r.seq, text))
                self.failures = []
                self.usage += body.usage
                self.cost_nano += body.cost_nano
                return True
            case t.ModelSettled() if body.purpose == ev.JUDGES:
                self.cost_nano += body.more_nano if self.replies or self.failures else 0
                return True
            case t.ModelFailed() if body.purpose == ev.JUDGES:
                self.failures.append(body)
                self.usage += body.known
                self.cost_nano += body.cost_nano
                return True
            case t.ToolProposed() if body.by_judge:
                command = str((body.input or {}).get("command", ""))
                for reply in self.replies[-1:]:
                    reply.ran.append(Ran(body.call_id, command))
                return True
            case t.ToolEnded() if (ran := self._ran(body.call_id)) is not None:
                ran.outcome = body.status if body.exit_code is None else f"exit {body.exit_code}"
                ran.output = body.preview
                return True
            case t.ToolResolved() if (ran := self._ran(body.call_id)) is not None:
                if body.resolution != "confirmed_not_done":
                    ran.outcome = "interrupted, outcome unknown"
                    ran.output = ""
                return True
            case t.SessionParked() | t.SessionContinued():
                self.failures = []
            case _:
                pass
        return False

    def _ran(self, call_id: str) -> Ran | None:
        return next((ran for reply in self.replies for ran in reply.ran if ran.call_id == call_id), None)


def next_step(evaluation_loop: EvaluationLoop, judging: JudgeState) -> Step | None:
    """What the evaluation under way needs, no call being open; None when none is under way."""
    started = judging.started
    if judging.stage is not JudgeStage.STARTED or started is None:
        return None
    failed = evaluation_loop.failures[-1] if evaluation_loop.failures else None
    if failed is not None and failed.kind not in AT_THE_GATE:
        if failed.kind in OVERFLOWS:
            return unfit(evaluation_loop, started, failed.message)
        if failed.kind not in NO_REPLY:
            return Park(ParkedFor.ERROR, f"the judge: {failed.kind}: {failed.message}")
        if len(evaluation_loop.failures) >= _MOST_FAILURES:
            return Conclude(_ended(evaluation_loop, started, None, f"its reply cannot be used: {failed.message}"))
    match dialogue.following(evaluation_loop.replies, started.criteria, started.runs):
        case dialogue.ReplyWanted():
            return AskJudge(
                len(evaluation_loop.failures) + 1,
                evaluation_loop.failures[0].request_id if evaluation_loop.failures else "",
            )
        case dialogue.Run() as run:
            seq = evaluation_loop.replies[-1].seq
            ref = f"{ev.RAN_FOR}{started.cycle}"
            return Propose(
                tuple(
                    (name_call(seq, i), message_parts.Call(ref, registry.CHECK, {"command": c}))
                    for i, c in enumerate(run.commands)
                )
            )
        case dialogue.JudgeOver() as found:
            return Conclude(_ended(evaluation_loop, started, found.answer, f"its reply cannot be used: {found.why}"))


def unfit(evaluation_loop: EvaluationLoop, started: t.EvaluationStarted, why: str) -> Conclude:
    """It is over without a verdict, because the judge cannot be sent its case."""
    return Conclude(_ended(evaluation_loop, started, None, f"the case is too long for its model: {why}; {_SHORTER}"))


def least_answer(criteria: Sequence[str]) -> int:
    """Tokens that an answer has at least: it finds something of each criterion."""
    return _FINDING_TOKENS * len(criteria)


def request(
    prompt: str, model: str, criteria: Sequence[str], case: str, replies: Sequence[Reply], room: int
) -> AttemptRequest:
    """What the judge is sent; its answer is held to the schema."""
    messages = dialogue.messages(case, replies, criteria)
    system: list[Block] = [{"type": "text", "text": prompt, "cache_control": {"type": "ephemeral"}}]
    return AttemptRequest(model, room, system, [], json.dumps(messages).encode(), schema=verdict.schema())


def most_tokens(request: AttemptRequest) -> int:
    """Tokens that a request cannot exceed: one per byte."""
    return len(request.messages) + len(json.dumps(request.system)) + SCHEMA_TOKENS


def _ended(
    evaluation_loop: EvaluationLoop, started: t.EvaluationStarted, answer: Answer | None, why: str
) -> t.EvaluationEnded:
    """The end with this answer, or without one, and ``why``."""
    return t.EvaluationEnded(
        cycle=started.cycle,
        cycles=started.cycles,
        model=started.model,
        rubric=started.rubric,
        verdict=ev.NONE if answer is None else answer.verdict,
        summary=why if answer is None else answer.summary,
        findings=[] if answer is None else list(answer.findings),
        drift="" if answer is None else answer.drift,
        requests=len(evaluation_loop.replies),
        usage=evaluation_loop.usage,
        cost_nano=evaluation_loop.cost_nano,
    )

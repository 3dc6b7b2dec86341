"""Holds a model's judgement against the calibration set: ``python -m harness.brain.review.calibrate``, with what it
needs as one JSON object on standard input, one JSON line for each verdict on standard output.

It belongs to no session, so no ledger counts it: it spends at most what it is told, reckoned before each request.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence

import anthropic
import msgspec

from harness.brain.api import stream
from harness.brain.api.retry import Failure
from harness.brain.review import evaluation_loop
from harness.budget import prices
from harness.domain.calls.attempt import AT_THE_GATE
from harness.events.plan.evaluation_events import NONE
from harness.events.types import Usage
from harness.judge import case, dialogue, known
from harness.judge.calibrating import CalibrationLine, CalibrationOrder
from harness.judge.dialogue import Reply
from harness.judge.known import Judged, Known

_ATTEMPTS = 3
_PAUSE_S = 2.0
_LONGEST_PAUSE_S = 30.0


class Calibration:
    """One run over the set."""

    def __init__(self, order: CalibrationOrder, client: anthropic.Anthropic) -> None:
        self._order = order
        self._client = client
        self.spent = 0
        self._tokens = 0

    def lines(self, wanted: Sequence[Known]) -> Iterator[CalibrationLine]:
        """A verdict for each result."""
        for one in wanted:
            spent = self.spent
            tokens = self._tokens
            judged = self._judge(one)
            yield CalibrationLine(
                name=one.name,
                good=one.good,
                flaw=one.flaw,
                verdict=judged.verdict,
                why=judged.why,
                right=judged.right,
                nano=self.spent - spent,
                tokens=self._tokens - tokens,
            )

    def _judge(self, one: Known) -> Judged:
        criteria = [criterion.id for criterion in one.case.criteria]
        replies: list[Reply] = []
        while True:
            match dialogue.following(replies, criteria, 0):
                case dialogue.JudgeOver(answer=None, why=why):
                    return Judged(one.name, one.good, NONE, why)
                case dialogue.JudgeOver(answer=answer) if answer is not None:
                    reasons = [f"{f.criterion}: {f.reason}" for f in answer.findings if not f.holds]
                    return Judged(one.name, one.good, answer.verdict, "; ".join(reasons) or answer.summary)
                case _:
                    reply = self._ask(case.text(one.case), replies, criteria)
            if isinstance(reply, str):
                return Judged(one.name, one.good, NONE, reply)
            replies.append(reply)

    def _ask(self, shown: str, replies: Sequence[Reply], criteria: Sequence[str]) -> Reply | str:
        """The next reply, or why there is none."""
        order = self._order
        request = evaluation_loop.request(order.prompt, order.model, criteria, shown, replies, order.max_tokens)
        worst = prices.cost(
            order.model, Usage(input=evaluation_loop.most_tokens(request), output=order.max_tokens)
        ).nano
        why = ""
        for attempt in range(_ATTEMPTS):
            if self.spent + worst > order.most_nano:
                return "the next request could pass what may be spent"
            outcome = stream.attempt(self._client, request, _nothing)
            if isinstance(outcome, stream.ModelReply):
                self._count(outcome.usage)
                text = "".join(str(block["text"]) for block in outcome.content if block.get("type") == "text")
                return Reply(len(replies), text)
            self._count_failed(outcome, worst)
            why = f"{outcome.kind}: {outcome.message}"
            if outcome.kind not in AT_THE_GATE or attempt + 1 == _ATTEMPTS:
                break
            time.sleep(min(_LONGEST_PAUSE_S, max(outcome.retry_after_s or 0.0, _PAUSE_S * 2.0**attempt)))
        return why

    def _count(self, usage: Usage) -> None:
        self.spent += prices.cost(self._order.model, usage).nano
        self._tokens += usage.total

    def _count_failed(self, failure: Failure, worst: int) -> None:
        if failure.usage is None:
            self.spent += worst  # nobody knows what it cost
        else:
            self._count(failure.usage)


def _nothing() -> None:
    return None


def main() -> int:
    """Exit code 0; what is wrong with the order is an exception."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=CalibrationOrder)
    client = stream.make_client(order.base_url, order.key)
    wanted = [one for one in known.known() if not order.only or one.name in order.only]
    for line in Calibration(order, client).lines(wanted):
        print(json.dumps(msgspec.to_builtins(line)).replace(order.key, "[the key]"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

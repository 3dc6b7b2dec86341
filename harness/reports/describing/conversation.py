"""One line for each record of: what was said: to the model, by it, by its judge."""

from __future__ import annotations

from harness.domain.text.formatting import counted, usd
from harness.domain.text.line import QUOTE, first, size
from harness.events import message_parts
from harness.events import types as t
from harness.reports.describing.line import Describers, Line, Tone, paid

DESCRIBERS = Describers()
_on = DESCRIBERS.on
_SENDERS = {"human": "you", "harness": "Watchfloor"}


def sender(origin: str) -> str:
    """Who says something to an agent, as a person is told; ``goal`` for what it began with."""
    return _SENDERS.get(origin, origin)


@_on(t.UserMessage)
def _user(b: t.UserMessage) -> Line:
    return Line(sender(b.origin), first(b.text), "info")


@_on(t.ModelRequest)
def _request(b: t.ModelRequest) -> Line:
    attempt = f", try {b.attempt}" if b.attempt > 1 else ""
    who = f"the {b.purpose}: " if b.purpose else ""
    holds = f", memories of #{b.memory}" if b.memory >= 0 else ""
    return Line(
        "ask",
        f"{who}{b.model}{attempt}{holds}, about {b.est_input:,} tokens in, at most {usd(b.reserved_nano)} reserved",
        "dim",
    )


@_on(t.ModelMessage)
def _message(b: t.ModelMessage) -> Line:
    prose = first(message_parts.text_of(b.parts or ()))
    calls = len(message_parts.calls_of(b.parts or ()))
    what = prose or (counted(calls, "tool call") if calls else f"({b.stop})")
    stop = "" if b.stop in (message_parts.DONE, message_parts.CALLS) else f" [{b.stop}]"
    return Line(
        b.purpose or "says",
        f"{what}{stop} · {b.usage.output:,} out · {paid(b.cost_nano, b.price_source)}",
        "warn" if stop else "info",
    )


@_on(t.ModelFailed)
def _failed(b: t.ModelFailed) -> Line:
    retry = f", again in {b.retry_in_s:.0f} s" if b.retry_in_s is not None else ""
    status = f" {b.status}" if b.status else ""
    cost = f" · {paid(b.cost_nano, b.price_source)}" if b.cost_nano else ""
    said_of = f"{b.kind}{status}: {first(b.message)}{retry}{cost}"
    return Line("no reply", said_of, "warn" if b.retry_in_s is not None else "bad")


@_on(t.EvaluationRequested)
def _to_judge(b: t.EvaluationRequested) -> Line:
    what = f"the task {b.entry}" if b.entry else "the work"
    return Line("judge", f"{what} is said to be done; the judge is to look at it (cycle {b.cycle})", "dim")


@_on(t.EvaluationStarted)
def _before_the_judge(b: t.EvaluationStarted) -> Line:
    what = f"{len(b.criteria)} criteria in {size(b.case.bytes)}"
    return Line("judge", f"{b.model} judges as {b.role}, cycle {b.cycle} of {b.cycles}: {what}", "dim")


@_on(t.EvaluationEnded)
def _from_the_judge(b: t.EvaluationEnded) -> Line:
    failing = [f"{one.criterion}: {first(one.reason)}" for one in b.findings if not one.holds]
    words = [*failing, *([f"drift: {first(b.drift)}"] if b.drift else []), first(b.summary)]
    said_of = "; ".join(filter(None, words))[:QUOTE]
    tones: dict[str, Tone] = {"satisfied": "good", "needs_revision": "warn"}
    return Line(
        "judge",
        f"{b.verdict.replace('_', ' ')} (cycle {b.cycle} of {b.cycles}): {said_of} · {usd(b.cost_nano)}",
        tones.get(b.verdict, "bad"),
    )

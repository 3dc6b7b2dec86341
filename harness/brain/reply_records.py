"""What comes of a request as records, paid for: a reply, a summary, or why there is none."""

from __future__ import annotations

import msgspec

from harness.agents.agent_context import BLOB_FROM, AgentContext
from harness.agents.supervisor_requests import AttemptOutcome, Reservation
from harness.brain.api import retry, stream
from harness.brain.context import compaction
from harness.brain.decide import Sum
from harness.domain.calls.attempt import AttemptKind
from harness.events import message_parts, messages_api
from harness.events import types as t

_MOST_SAID = 2000
_COUNTS = "the reply is used, and counts as having cost what was reserved for it"


def summary(
    agent_context: AgentContext, sent: t.ModelRequest, reply: stream.ModelReply, reservation: Reservation, step: Sum
) -> list[t.Body]:
    """The reply to a request for a summary, and the context that begins anew with it when it can be used."""
    text = message_parts.text_of(messages_api.parts_of(reply.content))
    change = step.change
    after = change.after + compaction.size(text)
    why = compaction.problem(messages_api.STOPS[reply.stop_reason], text) or compaction.too_large(change.tokens, after)
    blob = agent_context.put_blob(text.encode("utf-8", "replace"), "text/plain")
    cost = agent_context.accounts.settle(
        reservation, reply.usage, AttemptOutcome(AttemptKind.OK, wait_s=reply.used_up_s)
    )
    answered = t.ModelSummary(
        request_id=sent.request_id,
        message_id=reply.message_id,
        model=reply.model,
        usage=reply.usage,
        cost_nano=cost.nano,
        price_source=cost.source,
        ms=reply.ms,
        why=why,
    )
    if why:
        return [answered]
    compacted = t.ContextCompacted(
        through_seq=change.keep - 1,
        handoff=step.handoff,
        summary=blob,
        tokens_before=change.tokens,
        tokens_after=after,
        trigger=change.trigger,
    )
    return [answered, compacted]


def no_summary(
    agent_context: AgentContext, sent: t.ModelRequest, why: str, usage: t.Usage, reservation: Reservation
) -> t.ModelSummary:
    """A reply that was to be a summary and is none, paid for by its usage."""
    cost = agent_context.accounts.settle(reservation, usage, AttemptOutcome(AttemptKind.OK))
    return t.ModelSummary(
        request_id=sent.request_id,
        message_id="",
        model=sent.model,
        usage=usage,
        cost_nano=cost.nano,
        price_source=cost.source,
        why=why,
    )


def replied(
    agent_context: AgentContext,
    sent: t.ModelRequest,
    reply: stream.ModelReply,
    parts: list[message_parts.Part],
    reservation: Reservation,
    doubted: str = "",
) -> list[t.Body]:
    """A whole reply, ``parts`` of which are what it says, and what the endpoint said beside it; ``doubted``: the
    endpoint, when nobody was told yet that it reports what cannot be.
    """
    data = msgspec.json.encode(parts)
    inline = len(data) <= BLOB_FROM
    blob = None if inline else agent_context.put_blob(data, "application/json")
    cost = agent_context.accounts.settle(
        reservation, reply.usage, AttemptOutcome(AttemptKind.OK, wait_s=reply.used_up_s)
    )
    message = t.ModelMessage(
        request_id=sent.request_id,
        message_id=reply.message_id,
        model=reply.model,
        stop=messages_api.STOPS[reply.stop_reason],
        usage=reply.usage,
        cost_nano=cost.nano,
        parts=parts if inline else None,
        parts_blob=blob,
        price_source=cost.source,
        ms=reply.ms,
        purpose=sent.purpose,
        compaction=reply.compaction if reply.compaction.total else None,
        doubt=reply.doubt,
    )
    notes: list[t.Body] = []
    if reply.compaction.total:
        told = f"the endpoint summarised by itself what came before: {reply.compaction.given:,} tokens read for it"
        notes.append(t.HarnessNote(level="info", text=told, component="brain"))
    if reply.doubt and doubted:
        told = f"{doubted} reports a usage that cannot be: {reply.doubt[:500]}; {_COUNTS}"
        notes.append(t.HarnessNote(level="warning", text=told, component="brain"))
    if reply.detail:
        details = f"the endpoint gave details on this stop: {reply.detail[:1000]}"
        notes.append(t.HarnessNote(level="warning", text=details, component="brain"))
    return [message, *notes]


def stopped(agent_context: AgentContext, sent: t.ModelRequest, reservation: Reservation) -> t.ModelFailed:
    """A person stopped it during the reply."""
    agent_context.accounts.settle(reservation, None)
    return t.ModelFailed(
        request_id=sent.request_id,
        attempt=sent.attempt,
        kind=AttemptKind.CUT,
        message="stopped by the user during the reply",
        purpose=sent.purpose,
    )


def failure(
    agent_context: AgentContext, sent: t.ModelRequest, outcome: retry.Failure, reservation: Reservation, key: str
) -> t.ModelFailed:
    """No reply that can be used; the ``key`` stands in no record, whatever the endpoint says."""
    message = outcome.message.replace(key, "[the key]") if key else outcome.message
    told = AttemptOutcome(outcome.kind, message[:_MOST_SAID], outcome.retry_after_s, outcome.usage is not None)
    settled = agent_context.accounts.settle(reservation, outcome.usage, told)
    cost_nano = settled.nano
    source = settled.source
    if outcome.usage is None:
        cost_nano = 0
        source = ""
    return t.ModelFailed(
        request_id=sent.request_id,
        attempt=sent.attempt,
        kind=outcome.kind,
        message=message,
        status=outcome.status,
        retry_in_s=settled.retry_in_s,
        usage=outcome.usage,
        cost_nano=cost_nano,
        price_source=source,
        purpose=sent.purpose,
        bytes=outcome.bytes,
    )

"""What is known of one session in words: why its row says what it says, what can be done, what it costs. Pure."""

from __future__ import annotations

import time

from harness.domain.outcomes import MEANS, PROOFS
from harness.domain.text import formatting
from harness.views.cost_views import SessionPaid
from harness.views.session_views import SessionRow
from widgets.session.context_bar import layer_facts

_USAGE = {
    "input": "input",
    "cache_read": "cache read",
    "cache_write_5m": "cache write 5m",
    "cache_write_1h": "cache write 1h",
    "output": "output",
}


def advice(row: SessionRow, key: str) -> list[str]:
    """What happens next by itself, and what a person can do (``key`` does it here, the command anywhere).

    Empty when nothing holds it up.
    """
    by = " or ".join(way for way in (key, row.command) if way)
    said = [f"next: {row.next}"] if row.next else []
    if row.do:
        said.append(f"you can: {row.do} ({by})" if by else f"you can: {row.do}")
    return said


def evidence(row: SessionRow) -> list[tuple[str, str]]:
    """Why a row says what it says: state, source, age, evidence, and what the session is."""
    now = time.time()
    seen = formatting.age(row.last_ts, now)
    return [
        ("state", f"{row.state}: {row.detail}"),
        *([("next", row.next)] if row.next else []),
        *([("you can", ": ".join(filter(None, (row.do, row.command))))] if row.do else []),
        ("for", formatting.age(row.since, now) or "unknown"),
        ("source", row.source),
        ("evidence", row.evidence),
        ("last event", f"{row.last_event}, record {row.seq} of its log, {seen} ago" if seen else "none"),
        *([] if row.ended else [("you want it", row.desired)]),
        *([("proof", f"{PROOFS[row.proof]}: {MEANS[row.proof]}")] if row.proof else []),
        ("", ""),
        ("goal", row.goal),
        ("repository", row.repo),
        ("branch", row.branch),
        ("worktree", row.worktree),
        *([("runs in", row.folder)] if row.folder else []),
        ("model", row.model + (f" ({row.price})" if row.price else "")),
        *([("context", row.context)] if row.context else []),
        *layer_facts(row),
        ("session id", row.sid),
        ("created", row.created),
    ]


def cost_facts(row: SessionRow, own: SessionPaid | None) -> list[tuple[str, str]]:
    """Tokens, calls and prices of one session; ``own`` None: the ledger does not have it."""
    price = own.price_source if own is not None else ""
    facts = [
        ("model", row.model),
        ("prices", price or row.price or "unknown"),
        ("requests", f"{row.requests:,}"),
        ("tool calls", f"{row.tool_calls:,}"),
        ("tokens", f"{row.tokens:,}"),
    ]
    if own is not None:
        used = [(label, getattr(own.usage, name)) for name, label in _USAGE.items()]
        facts += [(label, f"{tokens:,}") for label, tokens in used if tokens]
    if own is not None and own.cache_hit is not None:
        facts.append(("cache hit", f"{own.cache_hit:.0%}"))
    if row.context:
        facts.append(("context", row.context))
    return [*facts, *layer_facts(row)]

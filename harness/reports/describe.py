"""One line, and the whole, of any record in words for a person: panes, `logs` and the briefing say the same.

The text is raw: it quotes what agents said, so whoever shows it passes `untrusted.to_display`.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from harness.domain.text.line import compact
from harness.events import types as t
from harness.reports.describing import approvals, calls, context, contract, conversation, merges, money, plan, session
from harness.reports.describing.line import Line

GROUPS = ("talk", "tools", "approvals", "session", "money", "trouble")
_IN_ONE = """asks you|goes on|in doubt|no reply|alarm|allow|ask|breaker|cap|caps|check|checkpoint|commit|context|\
contract|decided|deferred|deny|before|done|ended|evaluator|failed|finish|fork|gate|goal|hooks|job|judge|launch|\
memory|merge|note|pause|phase|plan|planner|policy|process|progress|protected|pull|recovered|replan|resolved|\
restores|resume|rule|rules|runs|says|settled|stale|stop|stopped|summary|task|time|undo|violation|waits|wants|\
Watchfloor|withdrawn|worktree|you"""
WORDS = frozenset(_IN_ONE.split("|"))
"""Every ``Line.kind`` of a record that this version knows, but for those that quote what another has written."""


_DESCRIBERS = {
    **session.DESCRIBERS.table,
    **conversation.DESCRIBERS.table,
    **contract.DESCRIBERS.table,
    **calls.DESCRIBERS.table,
    **approvals.DESCRIBERS.table,
    **plan.DESCRIBERS.table,
    **context.DESCRIBERS.table,
    **money.DESCRIBERS.table,
    **merges.DESCRIBERS.table,
}


def group_of(kind: str) -> str:
    """The filter group (one of `GROUPS`) of an event type's log name."""
    if kind in (
        "ratchet.violation",
        "plan.restored",
        "model.failed",
        "tool.in_doubt",
        "log.recovered",
        "session.quarantined",
        "breaker.opened",
        "harness.note",
        "alarm.raised",
        "alarm.cleared",
        "alarm.snoozed",
    ):
        return "trouble"
    if kind in ("model.message", "model.request", "user.message") or kind.startswith(("evaluation.", "contract.")):
        return "talk"
    head = kind.partition(".")[0]
    return {
        "model": "money",
        "tool": "tools",
        "check": "tools",
        "job": "tools",
        "approval": "approvals",
        "budget": "money",
        "caps": "money",
        "ledger": "money",
    }.get(head, "session")


def describe(record: t.Record) -> Line:
    """One line for any record, unknown types included. Never fails."""
    describer = _DESCRIBERS.get(type(record.body))
    if describer is None:
        body = record.body
        data = body.data if isinstance(body, t.Unknown) else msgspec.to_builtins(body)
        return Line(record.type, compact(data), "dim")
    return describer(record.body)


def detail(record: t.Record) -> str:
    """The whole record as text of several lines: who and when, the one-line summary, then every field; raw."""
    line = describe(record)
    body = record.body
    data = body.data if isinstance(body, t.Unknown) else msgspec.to_builtins(body)
    head = [
        f"record {record.seq}  {record.ts}  {record.type}",
        f"by {record.actor}" + (f", lease {record.gen}" if record.gen else ""),
        "",
        line.summary,
        "",
    ]
    return "\n".join(head + _fields(data, ""))


def _fields(value: Any, indent: str) -> list[str]:
    out: list[str] = []
    items = value.items() if isinstance(value, dict) else ((f"[{i}]", item) for i, item in enumerate(value))
    for name, item in items:
        if isinstance(item, (dict, list)) and item:
            out += [f"{indent}{name}:", *_fields(item, indent + "  ")]
        elif isinstance(item, str) and "\n" in item:
            out += [f"{indent}{name}:", *(f"{indent}  | {line}" for line in item.split("\n"))]
        else:
            out.append(f"{indent}{name}: {item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)}")
    return out

"""All that the records behind one row of a transcript say, as labelled texts of any length. Pure; the text is raw."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from harness.events import message_parts
from harness.events import types as t
from harness.reports import verdicts
from harness.reports.describe import describe

Fact = tuple[str, str]
"""(label, text); an empty pair is a gap."""
_GAP: Fact = ("", "")


def payloads(records: Iterable[t.Record]) -> list[t.BlobRef]:
    """What of these records lies beside the log."""
    found: list[t.BlobRef | None] = []
    for record in records:
        match record.body:
            case t.ModelMessage():
                found.append(record.body.parts_blob)
            case t.ContractDrafted() | t.ContractAgreed():
                found.append(record.body.text)
            case t.ContextCompacted():
                found.append(record.body.summary)
            case t.ToolProposed():
                found.append(record.body.input_blob)
            case t.ToolEnded():
                found.append(record.body.output)
    return [ref for ref in found if ref is not None]


def facts(records: Iterable[t.Record], stored: Mapping[str, str] | None = None) -> list[Fact]:
    """The row whole; ``stored`` are the payloads that could be read, by SHA-256."""
    stored = stored or {}
    out: list[Fact] = []
    for record in records:
        told = _of(record, stored)
        if told:
            out += [_GAP] * bool(out) + told
    return out


def _of(record: t.Record, stored: Mapping[str, str]) -> list[Fact]:
    body = record.body
    when = f"{record.ts}  record {record.seq}"
    match body:
        case t.ModelMessage():
            text = message_parts.text_of(body.parts or ()) or (
                stored.get(body.parts_blob.sha, "") if body.parts_blob else ""
            )
            return [("said", when), ("", text)]
        case t.ContextReset():
            return [("context", describe(record).summary), ("", when), ("hand-off", body.handoff)]
        case t.ContextCompacted():
            summary = stored.get(body.summary.sha, "") or "not readable here"
            facts = [("context", describe(record).summary), ("", when), ("summary", summary)]
            return [*facts, ("hand-off", body.handoff)]
        case t.ContractDrafted() | t.ContractAgreed():
            text = stored.get(body.text.sha, "") or "not readable here"
            unmet = body.objections if isinstance(body, t.ContractAgreed) else []
            facts = [("contract", describe(record).summary), ("", when), ("", text)]
            return [*facts, *(("not met", one) for one in unmet)]
        case t.UserMessage():
            return [(body.origin, when), ("", body.text)]
        case t.ToolProposed():
            return [("call", f"{body.tool}  {body.call_id}"), ("", when), *_claim(body), *_input(body, stored)]
        case t.ToolEnded():
            output = verdicts.plain(
                (stored.get(body.output.sha, "") if body.output is not None else "") or body.preview
            )
            return [("ended", describe(record).summary), ("", when), ("output", output or "none")]
        case t.ToolStarted() | t.ToolJudged():
            return [(describe(record).kind, describe(record).summary)]
    return [(describe(record).kind, describe(record).summary), ("", when)]


def _claim(body: t.ToolProposed) -> list[Fact]:
    return [("its reason", f"{body.claim} (the agent's claim)")] if body.claim else []


def _input(body: t.ToolProposed, stored: Mapping[str, str]) -> list[Fact]:
    data = body.input
    if data is None:
        whole = stored.get(body.input_blob.sha, "") if body.input_blob is not None else ""
        return [("input", whole or "too large to be shown, or not readable here")]
    return [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in data.items()
        if key != "why"
    ]

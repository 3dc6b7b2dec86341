"""What a judge answers: the schema that it is held to, and its reply read strictly. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from harness.events.plan.evaluation_events import FAILED, NEEDS_REVISION, SATISFIED, Finding

VERDICTS = (SATISFIED, NEEDS_REVISION, FAILED)
MOST_WORDS = 2000
"""Characters of one text of an answer that are kept."""
MOST_COMMAND = 2000


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that is a verdict; with commands in ``run`` it wants to see their output first."""

    verdict: str
    summary: str
    drift: str
    findings: tuple[Finding, ...]
    run: tuple[str, ...]


class NoAnswer(ValueError):
    """A reply is no verdict; the message says what is wrong with it, in words for the judge."""


def schema() -> dict[str, object]:
    """The JSON schema of an answer, in the part of the language that model APIs take."""
    text = {"type": "string"}
    finding = _object({"criterion": text, "holds": {"type": "boolean"}, "reason": text})
    return _object(
        {
            "findings": {"type": "array", "items": finding},
            "drift": {"type": "string", "description": "how the work departs from the goal; empty when it does not"},
            "summary": {"type": "string", "description": "for the author: what is missing and how to show it is there"},
            "run": {"type": "array", "items": text},
            "verdict": {"type": "string", "enum": list(VERDICTS)},
        }
    )


def _object(properties: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read(text: str, criteria: Collection[str]) -> Answer:
    """The answer that a reply is, about exactly these criteria. Raises NoAnswer.

    ``satisfied`` beside a criterion that does not hold, or beside drift, counts as ``needs_revision``.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise NoAnswer(f"it is no JSON: {exc}") from exc
    if not isinstance(data, dict):
        raise NoAnswer("it is no JSON object")
    verdict = data.get("verdict")
    if verdict not in VERDICTS:
        raise NoAnswer(f"verdict must be one of {', '.join(VERDICTS)}")
    run = data.get("run", [])
    if not isinstance(run, list) or not all(isinstance(command, str) for command in run):
        raise NoAnswer("run must be a list of commands")
    commands = tuple(command for command in run if command.strip() and len(command) <= MOST_COMMAND)
    findings = tuple(_finding(one) for one in _list(data, "findings"))
    missing = sorted(set(criteria) - {one.criterion for one in findings})
    if missing and not commands:
        raise NoAnswer(f"findings say nothing of {', '.join(missing)}")
    known = tuple(one for one in findings if one.criterion in criteria)
    drift = _text(data, "drift")
    if verdict == SATISFIED and (drift or not all(one.holds for one in known)):
        verdict = NEEDS_REVISION
    return Answer(verdict, _text(data, "summary"), drift, known, commands)


def _list(data: Mapping[str, object], name: str) -> list[object]:
    value = data.get(name, [])
    if not isinstance(value, list):
        raise NoAnswer(f"{name} must be a list")
    return value


def _text(data: Mapping[str, object], name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise NoAnswer(f"{name} must be a text")
    return value.strip()[:MOST_WORDS]


def _finding(data: object) -> Finding:
    if not isinstance(data, dict) or not isinstance(data.get("criterion"), str):
        raise NoAnswer("each finding names its criterion")
    if not isinstance(data.get("holds"), bool):
        raise NoAnswer(f"finding {data['criterion'][:80]}: holds must be true or false")
    return Finding(data["criterion"], data["holds"], _text(data, "reason"))

"""The criteria of a specification, whatever form it has: a plan, or a text with a list of them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.plan.criteria import ANY_FORM, Criterion, Problem, parse
from harness.plan.formats import MAX_BYTES, BadPlan, read
from harness.plan.phases import phased
from harness.plan.spans import MARK

_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.+)$")
_HEADING = re.compile(r"^#{1,6}\s+(?P<text>.+)$")
_ABOUT = re.compile(r"criteri|accept|done|definition|check|verif", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """One criterion, where it stands (an entry's id, or a line's number), and what decides it."""

    where: str
    found: Criterion | Problem


def check(data: bytes) -> list[Line]:
    """Every criterion of the specification. Raises BadPlan for what is neither a plan nor a text."""
    if data.removeprefix(MARK.encode()).lstrip()[:1] in (b"{", b"["):
        plan = read(data)
        phased(plan)
        none = "it has no criterion at all"
        return [
            Line(entry.id, parse(text) if text else Problem(entry.title, none, ANY_FORM))
            for entry in plan.entries
            for text in entry.criteria or ("",)
        ]
    if len(data) > MAX_BYTES:
        raise BadPlan(f"a specification has at most {MAX_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise BadPlan(f"it is no UTF-8 at byte {exc.start}") from exc
    return _of_text(text)


def _of_text(text: str) -> list[Line]:
    """The items below headings that speak of criteria; every item when no heading does."""
    found: list[tuple[int, str, bool]] = []
    about = False
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            continue
        elif (heading := _HEADING.match(line)) is not None:
            about = _ABOUT.search(heading["text"]) is not None
        elif (item := _ITEM.match(line)) is not None:
            found.append((number, item["text"].strip(), about))
    some = any(about for _, _, about in found)
    return [Line(f"line {number}", parse(words)) for number, words, about in found if about or not some]

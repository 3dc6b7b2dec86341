"""The criteria of a specification, whatever form it has: a plan, or a text in Markdown. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.domain.text.formatting import counted
from harness.plan.files import markdown_spec, phrases
from harness.plan.files.criteria import Problem, parse
from harness.plan.files.criteria_lines import Line, of_plan
from harness.plan.files.formats import MAX_BYTES, BadPlan, read
from harness.plan.files.spans import MARK
from harness.plan.phases import phased


@dataclass(frozen=True, slots=True)
class Look:
    """What was read of a specification: its criteria; ``unread``: what looks like a criterion and is not read;
    ``notes``: what else was left out.
    """

    lines: list[Line]
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check(data: bytes) -> list[Line]:
    """Every criterion of the specification. Raises BadPlan for what is neither a plan nor a text."""
    return look(data).lines


def look(data: bytes, bound: Mapping[str, str] | None = None) -> Look:
    """Every criterion of the specification, and what was left out; ``bound`` are phrases with their commands. Raises
    BadPlan as `check`.
    """
    bindings = bound or {}
    if data.removeprefix(MARK.encode()).lstrip()[:1] in (b"{", b"["):
        plan = phrases.bound(read(data), bindings)
        phased(plan)
        return Look(of_plan(plan), plan.unread, plan.notes)
    if len(data) > MAX_BYTES:
        raise BadPlan(f"a specification has at most {MAX_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise BadPlan(f"it is no UTF-8 at byte {exc.start}") from exc
    found = markdown_spec.read(text.removeprefix(MARK))
    lines = [_bound(line, bindings) for line in found.lines]
    if not found.left:
        return Look(lines)
    under = ", ".join(found.headings[:10]) + (", …" if len(found.headings) > 10 else "")
    read_of = f"read {found.items - len(found.left)} of {counted(found.items, 'list item')}"
    told = f"{read_of}; {len(found.left)} stand under headings that are not about criteria: {under}"
    unread = tuple(
        f"line {number} looks like a criterion and stands under none: {text}" for number, text in found.alike
    )
    return Look(lines, unread, (told,))


def _bound(line: Line, bindings: Mapping[str, str]) -> Line:
    """The same, decided by what its phrase is bound to."""
    if not isinstance(line.found, Problem):
        return line
    return replace(line, found=parse(phrases.decided(line.found.text, bindings)))

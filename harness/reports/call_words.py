"""One call in the words of a transcript: what it does, what it changes, how it ended. Pure.

The text is raw: whoever shows it passes `untrusted.to_display`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from harness.domain.calls.call_states import CallEnd
from harness.domain.text.formatting import counted as numbered
from harness.events import types as t
from harness.reports import verdicts
from harness.tools import registry
from harness.tools.call_subject import LONGEST, line
from harness.tools.summary import words
from harness.tools.tool import Writes

_SHOWN = 3
_BOX = re.compile(r"^\s*[-*+] \[([ xX])\] ", re.MULTILINE)
_REWRITTEN = re.compile(r"bytes; \+(\d{1,9}) -(\d{1,9})(?: at ([1-9]\d{0,8}(?:, [1-9]\d{0,8})*))?\)$")
_PASSES = re.compile(r'"passes"\s*:\s*(true|false)')


@dataclass(frozen=True, slots=True)
class Bit:
    """A line below a row: ``role`` is add, remove or quiet."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a write or an edit does to its file: lines ``added`` and ``removed``, the first of them, and the steps of a
    plan that it marks as done.
    """

    added: int = 0
    removed: int = 0
    lines: tuple[Bit, ...] = ()
    plan: str = ""


@dataclass(frozen=True, slots=True)
class EndWords:
    """How a call ended: a few words, and the lines that explain them."""

    result: str
    lines: tuple[Bit, ...] = ()


def read(tool: str, name: str) -> str:
    """One call that only reads: ``read a.py``."""
    return f"{words(tool).verb or tool} {name}"


def counted(calls: Counter[str]) -> str:
    """Several calls that only read: ``read 6 files``, ``read 2 files, searched once``."""
    said = []
    for tool, number in calls.items():
        verb, thing = words(tool).several
        said.append(f"{verb} {numbered(number, thing)}".replace(" 1 time", " once"))
    return ", ".join(said)


def change(tool: str, data: dict[str, object] | None) -> Change:
    """What a call that writes one file changes in it, as far as its input says it."""
    known = registry.ALL.get(tool)
    if data is None or known is None or known.writes is Writes.NOTHING:
        return Change()
    old = str(data.get("old", "")) if known.writes is Writes.PIECE else ""
    new = str(data.get("new", "")) if known.writes is Writes.PIECE else str(data.get("content", ""))
    before = old.splitlines()
    after = new.splitlines()
    gone = _without(before, after)
    come = _without(after, before)
    shown = [*_bits("remove", gone), *_bits("add", come)]
    return Change(len(come), len(gone), tuple(shown), _plan(old, new))


def rewritten(tool: str, data: dict[str, object] | None, body: t.ToolEnded) -> Change | None:
    """What a call changed in the file that it wrote whole, as its end counts it; None when that counts nothing."""
    known = registry.ALL.get(tool)
    found = _REWRITTEN.search(body.preview) if known is not None and known.writes is Writes.WHOLE else None
    if found is None or body.status != CallEnd.OK:
        return None
    lines = str((data or {}).get("content", "")).splitlines()
    places = [int(number) for number in (found[3] or "").split(", ") if number]
    return Change(
        int(found[1]), int(found[2]), tuple(_bits("add", [lines[at - 1] for at in places if at <= len(lines)]))
    )


def _without(lines: list[str], others: list[str]) -> list[str]:
    """The lines that the other side lacks, each as often as it is missing there; in linear time, whatever they are."""
    spare = Counter(others)
    kept = []
    for text in lines:
        if spare[text] > 0:
            spare[text] -= 1
        else:
            kept.append(text)
    return kept


def _bits(role: str, lines: list[str]) -> list[Bit]:
    said = [text for text in lines if text.strip()]
    return [Bit(role, text[:LONGEST]) for text in said[:_SHOWN]]


def _plan(old: str, new: str) -> str:
    """How a plan moved, where the text is one: ``2 done``, or ``4/6 done`` when the whole plan was written."""
    done, total = _steps(new)
    if not total:
        return ""
    before, known = _steps(old)
    if not known:
        return f"{done}/{total} done"
    moved = done - before
    return "" if moved == 0 else f"{moved:+d} done"


def _steps(text: str) -> tuple[int, int]:
    boxes = [mark != " " for mark in _BOX.findall(text)] + [mark == "true" for mark in _PASSES.findall(text)]
    return sum(boxes), len(boxes)


def outcome(tool: str, data: dict[str, object] | None, body: t.ToolEnded) -> EndWords:
    """How it ended: the verdict of tests, the last words of a program, why it was refused, how much was read."""
    if body.status not in (CallEnd.OK, CallEnd.ERROR):
        how = {"timeout": "timed out", "refused": "could not start"}.get(body.status, body.status)
        how += f" at the limit of {body.limit}" if body.limit else ""
        why = line(body.preview)
        return EndWords(f"{how}: {why}" if why else how)
    known = registry.ALL.get(tool)
    if known is not None and not known.runs:
        if body.status == CallEnd.ERROR:
            return EndWords(line(body.preview))
        return EndWords(_read(tool, body) if known.writes is Writes.NOTHING else "")
    return _ran(body)


def _ran(body: t.ToolEnded) -> EndWords:
    told = verdicts.verdict(body.preview)
    if told:
        return EndWords(told)
    lines = verdicts.lines_of(body.preview)
    bad = f"exit {body.exit_code}" if body.exit_code else ""
    if not bad and body.status == CallEnd.ERROR:
        bad = f"came to the limit of {body.limit}" if body.limit else "failed"
    if bad:
        return EndWords(bad, tuple(Bit("quiet", text) for text in verdicts.tail(body.preview)))
    if not lines:
        return EndWords("")
    more = "" if body.truncated or len(lines) == 1 else f" (+{numbered(len(lines) - 1, 'line')})"
    return EndWords(line(lines[-1]) + more)


def _read(tool: str, body: t.ToolEnded) -> str:
    if ends := words(tool).ends:
        return line(f"{ends}: {body.preview}")
    if body.truncated or body.output is not None:
        return ""
    return numbered(len(body.preview.splitlines()), words(tool).finds)

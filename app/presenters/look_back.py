"""What a person who looks back sees, line by line: what happened since they looked, and what became of each request.
Pure; texts are raw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.presenters import since_last_seen
from app.presenters.since_last_seen import Told, Troubles
from harness.domain import problems
from harness.domain.outcomes import PROOFS
from harness.domain.text.formatting import local
from harness.reports import receipts as r
from harness.reports.receipts import Receipt

_WIDTH = 54
_EXACT = "%Y-%m-%d %H:%M:%S %Z"
HEAD = "head"
SESSION = "session"
LINE = "line"
REST = "rest"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. ``role`` says how it is drawn; ``seq`` is the record that it opens, -1 when it has none, ``receipt``
    the request it is about; with neither it opens the session.
    """

    role: str
    text: str
    sid: str = ""
    mark: str = ""
    ts: str = ""
    seq: int = -1
    tone: str = "info"
    receipt: Receipt | None = None

    @property
    def opens(self) -> bool:
        """True for a line that stands for something."""
        return bool(self.sid)


def briefing(every: Sequence[Told], start: str, now: datetime, troubles: Troubles = ()) -> list[Entry]:
    """Since ``start``: the fleet, then each session in which something happened or that needs somebody, then the rest
    by name.
    """
    made = [
        Entry(HEAD, since_last_seen.since(start, now)),
        *(Entry(HEAD, line) for line in _lines(since_last_seen.moved(every))),
    ]
    made += [Entry(REST, f"fleet: {one.headline}{': ' + one.cause if one.cause else ''}; {one.do}") for one in troubles]
    for one in since_last_seen.ranked(every):
        made += _session(one)
    if quiet := [one.row.name for one in every if one.quiet]:
        made.append(Entry(REST, f"nothing new: {', '.join(quiet)}"))
    return made


def _lines(parts: Sequence[str]) -> Iterator[str]:
    """Parts side by side, in lines that fit every terminal."""
    line = ""
    for part in parts:
        if line and len(line) + len(part) > _WIDTH:
            yield line
            line = ""
        line += f" · {part}" if line else part
    yield line


def _session(one: Told) -> Iterator[Entry]:
    row = one.row
    mark = f", {PROOFS[row.proof]}" if row.proof else ""
    yield Entry(
        SESSION, " · ".join([f"{row.name} {row.state}{mark}", *since_last_seen.figures(one.brief.figures)]), row.sid
    )
    for line in since_last_seen.in_order(one):
        yield Entry(LINE, line.text, row.sid, line.kind, line.ts, line.seq, line.tone)
    said = (
        ("cannot be read: ", one.problem),
        ("next of its plan: ", one.upcoming),
        ("next: ", row.next),
        ("you: ", one.do),
    )
    yield from (Entry(REST, lead + text, row.sid) for lead, text in said if text)
    if one.brief.forgotten:
        yield Entry(REST, "older lines are in its log only", row.sid)


def history(found: Iterable[tuple[str, str, Receipt]], unread: Sequence[str] = ()) -> list[Entry]:
    """Every request that is not open, the newest first; each of ``found`` is its session's id and name, and itself."""
    over = sorted((one for one in found if one[2].outcome != r.OPEN), key=lambda one: one[2].rank, reverse=True)
    made = [
        Entry(LINE, _receipt(name, it), sid, _mark(it), it.steps[-1].ts, it.steps[-1].seq, receipt=it)
        for sid, name, it in over
    ]
    return [*made, *(Entry(REST, f"not read: {why}") for why in unread)]


def _receipt(name: str, it: Receipt) -> str:
    title = it.title if len(it.title) <= _WIDTH else it.title[: _WIDTH - 1] + "…"
    return f"{name} {problems.request(it.kind)}: {title} · {r.words(it)}"


def _mark(it: Receipt) -> str:
    """The decision in a word, as long as nothing else became of it."""
    return it.decision.partition("_")[0] if it.outcome in (r.DECIDED, r.TAKEN, r.EFFECT) else it.outcome


def facts(it: Receipt) -> list[tuple[str, str]]:
    """A receipt whole: each step with its time and its record."""
    asked = f"{problems.request(it.kind)}: {it.title}"
    head = [("request", f"{it.approval_id}, {it.risk} risk"), ("asked", asked), ("outcome", r.words(it))]
    return [*head, ("", ""), *((step.stage, f"#{step.seq} {local(step.ts, _EXACT)}  {step.text}") for step in it.steps)]


def tone_of(entry: Entry) -> str:
    """The colour role of a line's mark."""
    if entry.mark in ("needs", r.STALE, r.WITHDRAWN):
        return "attention"
    if entry.mark in ("anomaly", r.LOST):
        return "alarm"
    effect = entry.receipt is not None and entry.receipt.outcome == r.EFFECT
    return "good" if entry.mark == "passed" or effect else "quiet"

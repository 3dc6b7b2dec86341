"""``python -m tests.bench.questions STATE…``: how often the sessions of these state folders asked a person, from their
logs alone.
"""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from harness.eventlog.reader import read
from harness.events import types as t
from harness.events.types import decode

ASKING = ("tool", "question")


@dataclass(slots=True)
class Asked:
    """One session: its calls, its requests by kind, and the seconds in which it was not waiting for a person."""

    name: str
    calls: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    worked_s: float = 0.0

    @property
    def questions(self) -> int:
        """Requests that its agent caused."""
        return sum(self.requests[kind] for kind in ASKING)

    @property
    def hourly(self) -> float:
        return self.questions * 3600 / self.worked_s if self.worked_s else 0.0


def asked(session: Path) -> Asked:
    """The figures of one session's folder."""
    out = Asked(session.name)
    waiting: set[str] = set()
    before: datetime | None = None
    for line in read(session / "log"):
        record = decode(line)
        now = datetime.fromisoformat(record.ts)
        if before is not None and not waiting:
            out.worked_s += (now - before).total_seconds()
        before = now
        body = record.body
        if isinstance(body, t.SessionIntent):
            out.name = body.name
        elif isinstance(body, t.ToolProposed):
            out.calls += 1
        elif isinstance(body, t.ApprovalRequested):
            out.requests[body.kind] += 1
            waiting.add(body.approval_id)
        elif isinstance(body, t.ApprovalDecided | t.ApprovalStale | t.ApprovalWithdrawn):
            waiting.discard(body.approval_id)
    return out


def main() -> int:
    found = [asked(path) for state in sys.argv[1:] for path in sorted((Path(state) / "sessions").iterdir())]
    for one in found:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(one.requests.items())) or "none"
        print(f"{one.name:12} {one.worked_s:7.0f} s at work  {one.calls:4} calls  requests: {kinds}")
    rates = sorted(one.hourly for one in found)
    print(
        f"{len(rates)} sessions: {statistics.median(rates):.1f} questions per session-hour in the median,"
        f" {rates[max(0, round(0.95 * len(rates)) - 1)]:.1f} in the 95th percentile;"
        f" {sum(one.questions for one in found)} in {sum(one.calls for one in found)} calls"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

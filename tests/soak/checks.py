"""What must be true after the trouble, as functions from what was gathered to what is wrong.

Pure: each of them is shown to fail on doctored evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

_SURELY_NOT = frozenset(("denied", "refused", "never"))
_WOKEN = frozenset(("lease.granted", "model.request", "tool.started"))


@dataclass(slots=True)
class SessionEvidence:
    """One session, from three sides: its effects, the endpoint's notes, its log.

    ``told`` has every line that the endpoint asked for, with what it heard of it (``ok``, ``not_run``, ``unknown``;
    empty: nothing). ``logged`` has the end of each line's call by the log (a status of `tool.ended`, ``resolved`` or
    ``open``). ``after_stop`` are the types of the records that follow the first `session.desired` with ``stopped``.
    """

    sid: str
    name: str
    effects: list[str] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)
    logged: dict[str, str] = field(default_factory=dict)
    in_doubt: int = 0
    state: str = ""
    detail: str = ""
    finished: bool = False
    stop_asked: bool = False
    """Somebody wanted it stopped, whether or not that was acknowledged."""
    stop_acknowledged: bool = False
    stop_recorded: bool = False
    stopped: bool = False
    """Its log says so now: the last wish, or the outcome."""
    after_stop: list[str] = field(default_factory=list)
    alive: list[str] = field(default_factory=list)
    open_requests: list[tuple[str, str]] = field(default_factory=list)
    questions: list[tuple[str, str]] = field(default_factory=list)
    bill_nano: int = 0
    settled_nano: int = 0
    unknown_nano: int = 0
    held_nano: int = 0


@dataclass(slots=True)
class Evidence:
    """Everything that was gathered after the end."""

    sessions: list[SessionEvidence] = field(default_factory=list)
    total_bill_nano: int = 0
    invariants: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """What the soak itself could not do: a trouble that broke off, an end that was waited for in vain."""


@dataclass(frozen=True, slots=True)
class Violation:
    """``kind`` is a row of the table."""

    kind: str
    who: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind.upper()}  {self.who}: {self.text}"


def effects(s: SessionEvidence) -> Iterator[Violation]:
    """Every effect once, or accounted for; and none that nobody asked for."""
    found = Counter(s.effects)
    for line, times in found.items():
        if line not in s.told:
            yield Violation("unasked", s.name, f"{line!r} is there, but the endpoint never asked for it")
        elif times > 1:
            yield Violation("repeated", s.name, f"{line!r} is there {times} times")
    for line, told in s.told.items():
        logged = s.logged.get(line, "never")
        if line in found:
            if told == "not_run":
                yield Violation("denied", s.name, f"{line!r} is there, but the model was told that nothing ran")
            elif not told and logged in _SURELY_NOT:
                yield Violation("denied", s.name, f"{line!r} is there, but by the log its call was {logged}")
        elif told == "ok" or (not told and logged == "ok"):
            yield Violation(
                "lost",
                s.name,
                f"{line!r} is not there, but {'the model was told' if told else 'the log says'} that it was done",
            )


def life(s: SessionEvidence) -> Iterator[Violation]:
    """Nothing is stuck without a request, nothing gave up (the work cannot fail), nothing stops unasked, and what was
    stopped stays so.
    """
    ended = s.finished or s.stopped
    if not ended and not s.open_requests:
        yield Violation("stuck", s.name, f"{s.state}: {s.detail}; nothing in the queue")
    if s.finished and s.state == "failed":
        yield Violation("failed", s.name, f"it ended for good: {s.detail}")
    if (s.stopped or s.state == "stopped") and not s.stop_asked:
        yield Violation("unasked stop", s.name, f"nobody wanted it stopped: {s.detail}")
    if s.stop_acknowledged and not ended:
        yield Violation("undone stop", s.name, f"its stop was acknowledged, and it is {s.state}: {s.detail}")
    if s.stop_acknowledged and not s.stop_recorded:
        yield Violation("undone stop", s.name, "its stop was acknowledged, and its log does not know of it")
    woken = [kind for kind in s.after_stop if kind in _WOKEN]
    if woken:
        yield Violation("undone stop", s.name, f"after its stop: {', '.join(woken[:5])}")
    if ended and s.alive:
        yield Violation("alive", s.name, f"it is {s.state}, but there live {', '.join(s.alive)}")


def money(s: SessionEvidence) -> Iterator[Violation]:
    """What is known to be spent is on the bill; what the bill has beyond it came of requests whose outcome nobody
    knows.
    """
    if s.settled_nano > s.bill_nano:
        yield Violation("ledger", s.name, f"{s.settled_nano} n$ are settled, the endpoint billed {s.bill_nano}")
    if s.settled_nano + s.unknown_nano + s.held_nano < s.bill_nano:
        yield Violation(
            "ledger",
            s.name,
            f"{s.settled_nano} + {s.unknown_nano} unknown + {s.held_nano} held n$, the endpoint billed {s.bill_nano}",
        )
    if s.held_nano and (s.finished or s.stopped):
        yield Violation("orphaned", s.name, f"{s.held_nano} n$ are held for a session that has ended")


def questions(s: SessionEvidence) -> Iterator[Violation]:
    """What a person was asked, though nothing here needs one."""
    for kind, title in s.questions:
        yield Violation("question", s.name, f"{kind}: {title}")


def judge(e: Evidence) -> list[Violation]:
    """Everything that is wrong."""
    found = [v for s in e.sessions for check in (effects, life, money, questions) for v in check(s)]
    told = sum(s.bill_nano for s in e.sessions)
    if told != e.total_bill_nano:
        found.append(
            Violation(
                "ledger",
                "the fleet",
                f"the endpoint billed {e.total_bill_nano} n$ in all, {told} for sessions that are there",
            )
        )
    for kind, texts in (
        ("invariant", e.invariants),
        ("damage", e.damage),
        ("leftover", e.leftovers),
        ("soak", e.broken),
    ):
        found += [Violation(kind, "the fleet", text) for text in texts]
    return found


def tally(e: Evidence) -> dict[str, str]:
    """The rows of the table that follow from the evidence."""
    found = judge(e)
    kinds = Counter(v.kind for v in found)
    states = Counter(s.state for s in e.sessions)
    asked = Counter(kind for s in e.sessions for kind, _ in s.questions)
    settled, unknown, held = (
        sum(getattr(s, name) for s in e.sessions) for name in ("settled_nano", "unknown_nano", "held_nano")
    )
    told = Counter(how or "nothing" for s in e.sessions for how in s.told.values())
    return {
        "sessions": f"{len(e.sessions)} ({_list(states)})",
        "calls asked for": f"{sum(len(s.told) for s in e.sessions)} (told: {_list(told)})",
        "effects found": str(sum(len(s.effects) for s in e.sessions)),
        "repeated": str(kinds["repeated"]),
        "lost": str(kinds["lost"]),
        "unasked or denied": str(kinds["unasked"] + kinds["denied"]),
        "in doubt": str(sum(s.in_doubt for s in e.sessions)),
        "questions": f"{asked.total()}" + (f" ({_list(asked)})" if asked else ""),
        "stuck": str(kinds["stuck"]),
        "given up": str(kinds["failed"]),
        "stopped by nobody": str(kinds["unasked stop"]),
        "stopped but alive": str(kinds["undone stop"] + kinds["alive"]),
        "bill": _usd(e.total_bill_nano),
        "ledger": (
            f"{_usd(settled + unknown + held)} = {_usd(settled)} known + {_usd(unknown)} unknown in full + {_usd(held)}"
            " held"
        ),
        "invariants, damage": f"{kinds['invariant']}, {kinds['damage']}",
        "processes left": str(kinds["leftover"]),
        "broken off": str(kinds["soak"]),
    }


def _list(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.most_common()) or "none"


def _usd(nano: int) -> str:
    return f"${nano / 1e9:.6f}"

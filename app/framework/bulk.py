"""What one act does to many sessions: whom it reaches, whom not and why, and what is asked for each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.domain.text.formatting import counted
from harness.views.session_views import SessionRow


@dataclass(frozen=True, slots=True)
class Act:
    """``verb`` begins its question, ``does`` says what it means for each session, ``yes`` is what its key is called.

    ``why_not``: why it can do nothing with a session, empty when it can.
    """

    id: str
    verb: str
    does: str
    yes: str
    done: str
    why_not: Callable[[SessionRow], str]


@dataclass(frozen=True, slots=True)
class Reach:
    """Sessions in the order given, those that the act reaches and those that it does not, each with the reason."""

    targets: tuple[SessionRow, ...]
    spared: tuple[tuple[SessionRow, str], ...]


def reach(act: Act, rows: Iterable[SessionRow]) -> Reach:
    """Whom this act would reach now."""
    told = [(row, act.why_not(row)) for row in rows]
    return Reach(tuple(row for row, why in told if not why), tuple((row, why) for row, why in told if why))


def outcome(act: Act, done: int, refused: Mapping[str, str], notes: Sequence[str] = ()) -> str:
    """What became of it, in a sentence; ``refused`` by name, each with the reason, ``notes`` on what was done."""
    said = "; ".join([f"{counted(done, 'session')} {act.done}", *notes[:3]])
    if not refused:
        return said
    first = ", ".join(f"{name}: {why}" for name, why in list(refused.items())[:3])
    more = f", and {len(refused) - 3} more" if len(refused) > 3 else ""
    return f"{said}; {len(refused)} refused: {first}{more}"

"""What was launched before, and templates that a person keeps: in the app's own state, never in a repository.

A wish that holds what looks like a secret is not kept. What is there and cannot be read counts as nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

import msgspec

from app.launch.launch_form import Wish
from harness.domain.text.display_safe import to_display, to_display_lines
from harness.domain.text.secret_scan import found
from harness.eventlog.framing import BadLine
from harness.eventlog.regular_files import opened
from harness.linux.durable import replace_file
from harness.views.session_views import SessionRow

FILE = "launches.json"
MOST = 50
"""So many launches are kept, the latest first."""
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Launches:
    """``past``: the latest first; ``templates`` by the name that they were given."""

    past: tuple[Wish, ...] = ()
    templates: dict[str, Wish] = field(default_factory=dict)


def load(state: Path) -> Launches:
    """What is kept."""
    try:
        with opened(state / FILE) as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=Launches)
    except (OSError, BadLine, msgspec.DecodeError, UnicodeDecodeError):
        return Launches()


def launched(known: Launches, wish: Wish) -> Launches:
    """With this one as the latest; the same goal for the same repository stands there once."""
    if secret(wish):
        return known
    rest = [one for one in known.past if (one.repo, one.goal) != (wish.repo, wish.goal)]
    return replace(known, past=(wish, *rest)[:MOST])


def elsewhere(known: Launches, first: Wish, rows: Iterable[SessionRow]) -> list[Wish]:
    """What sessions were launched for that ``known`` does not hold, as from the command line, the newest first: the
    goal, repository and model of each in an otherwise ``first`` form.
    """
    there = {(one.repo, one.goal) for one in known.past}
    made: dict[tuple[str, str], Wish] = {}
    for row in sorted(rows, key=lambda r: r.created, reverse=True):
        key = (to_display(row.repo), "\n".join(to_display_lines(row.goal)))
        if row.goal and key not in there:
            made.setdefault(key, replace(first, repo=key[0], goal=key[1], model=to_display(row.model)))
    return list(made.values())[:MOST]


def kept(known: Launches, name: str, wish: Wish) -> Launches:
    """With this template, in place of one of the same name."""
    return replace(known, templates={**known.templates, name: wish})


def secret(wish: Wish) -> bool:
    """True when something in it looks like a secret."""
    return any(found(text) for text in astuple(wish))


def store(state: Path, known: Launches) -> None:
    """Keep it, whole or not at all, for its owner alone. Raises OSError."""
    replace_file(state / FILE, msgspec.json.encode(known))

"""The fleet as a table: which sessions, in which order, under which titles. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.projections.state import spend_rate
from harness.views.session_views import GROUPS, RUNNING, SessionRow
from widgets.fleet.fleet_filter import Filter, repository


@dataclass(frozen=True, slots=True)
class Sorting:
    """How a column orders sessions: the key of a row at a moment; ``most_first`` when nobody turned it round."""

    key: Callable[[SessionRow, float], Any]
    most_first: bool = False


def _share(passed: int, of: int) -> float:
    return passed / of if of else -1.0


_RANK = {group: at for at, group in enumerate(GROUPS)}
SORTINGS: Mapping[str, Sorting] = {
    "state": Sorting(lambda row, now: (_RANK.get(row.group, _RANK[RUNNING]), row.since)),
    "name": Sorting(lambda row, now: row.name.casefold()),
    "repo": Sorting(lambda row, now: (repository(row).casefold(), row.name.casefold())),
    "doing": Sorting(lambda row, now: row.detail.casefold()),
    "plan": Sorting(lambda row, now: _share(row.plan_passed, row.plan_total), most_first=True),
    "checks": Sorting(lambda row, now: _share(row.checks_passed, row.checks_total), most_first=True),
    "lines": Sorting(lambda row, now: (bool(row.files), row.lines_added + row.lines_removed), most_first=True),
    "spent": Sorting(lambda row, now: row.spent_nano, most_first=True),
    "burn": Sorting(lambda row, now: spend_rate.per_hour(row.burned_step, row.burned, now), most_first=True),
    "age": Sorting(lambda row, now: row.created, most_first=True),
}
"""By the id of the column that they belong to; sessions that are equal stand by their age, then by their id."""
GROUPINGS = ("", "state", "repo")


@dataclass(frozen=True, slots=True)
class View:
    """What of the fleet is shown, and how. ``turned``: the other way round than the column orders by itself;
    ``span``: as a timeline of so many seconds (0: as a table).
    """

    sort: str = "state"
    turned: bool = False
    group: str = ""
    span: int = 0
    filter: Filter = field(default_factory=Filter)

    def sorted_by(self, column: str) -> View:
        """Ordered by this column; once more turns it round."""
        return replace(self, sort=column, turned=not self.turned if column == self.sort else False)

    def regrouped(self) -> View:
        """Under the next kind of titles."""
        at = GROUPINGS.index(self.group)
        return replace(self, group=GROUPINGS[(at + 1) % len(GROUPINGS)])

    @property
    def descending(self) -> bool:
        """The greatest stands first."""
        return SORTINGS[self.sort].most_first != self.turned


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One line of the table: a session, or a title with how many stand under it."""

    row: SessionRow | None
    title: str = ""
    count: int = 0


def entries(rows: Iterable[SessionRow], view: View, now: float) -> list[TableEntry]:
    """The lines of the table at a moment, in seconds since the epoch."""
    meant = view.filter.test(now)
    chosen = [row for row in rows if meant(row)]
    chosen.sort(key=lambda row: (row.created, row.sid), reverse=True)
    key = SORTINGS[view.sort].key
    chosen.sort(key=lambda row: key(row, now), reverse=view.descending)
    if not view.group:
        return [TableEntry(row) for row in chosen]
    made: list[TableEntry] = []
    for title, members in _under_titles(chosen, view.group):
        made += [TableEntry(None, title, len(members)), *(TableEntry(row) for row in members)]
    return made


def _under_titles(rows: Sequence[SessionRow], group: str) -> list[tuple[str, list[SessionRow]]]:
    found: dict[str, list[SessionRow]] = {}
    for row in rows:
        found.setdefault(repository(row) if group == "repo" else row.group, []).append(row)
    if group == "repo":
        return sorted(found.items(), key=lambda item: item[0].casefold())
    return sorted(found.items(), key=lambda item: _RANK.get(item[0], _RANK[RUNNING]))


def neighbour(before: Sequence[str], gone: str, alive: Iterable[str]) -> str:
    """Who takes the place of what vanished from a list: who stood behind it, else before it; empty: nobody."""
    there = set(alive)
    if gone not in before:
        return ""
    at = before.index(gone)
    return next((sid for sid in [*before[at + 1 :], *reversed(before[:at])] if sid in there), "")

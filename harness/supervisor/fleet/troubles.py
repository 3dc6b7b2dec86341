"""What is wrong with one session now, each trouble said by who found it, and taken back by nobody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from harness.domain.problems import NONE, Trouble

Owner = Literal["reading", "log", "hands", "keeper", "vault", "place", "step", "call", "brain", "frozen", "money"]
"""Who finds trouble: who waits for its log to be read, what is in its log, the threads on its worktree, who asks its
keeper (for itself, its vault and a call that finds no place), its worker, a call that runs, who starts brains and who
looks at them, the budget_service.
"""


@dataclass(frozen=True, slots=True)
class _Said:
    trouble: Trouble
    holds: bool


class Troubles:
    """Three weights: what *holds* a session waits for a person; what *fails* it ends with a new link to its keeper, or
    by whoever said it; what *blocks* it only delays what is due.

    ``changed`` is called on the loop when a row may look different. What holds or fails may be found in a thread, where
    a log is read: who says it sees to the row.
    """

    __slots__ = ("_changed", "_hindrances", "_said")

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._said: dict[Owner, _Said] = {}
        self._hindrances: dict[Owner, Trouble] = {}

    @property
    def worst(self) -> Trouble:
        """What holds it, else what fails it; of several the one that was said last."""
        said = sorted(self._said.values(), key=lambda one: one.holds)
        return said[-1].trouble if said else NONE

    @property
    def held(self) -> bool:
        """True while something waits for a person."""
        return any(one.holds for one in self._said.values())

    @property
    def blocks(self) -> Mapping[Owner, Trouble]:
        return MappingProxyType(self._hindrances)

    def hold(self, owner: Owner, told: Trouble) -> None:
        self._say(owner, _Said(told, True))

    def fail(self, owner: Owner, told: Trouble) -> None:
        self._say(owner, _Said(told, False))

    def mended(self, owner: Owner) -> None:
        """``owner`` takes back what held or failed the session."""
        if self._said.pop(owner, None) is not None:
            self._changed()

    def block(self, owner: Owner, told: Trouble) -> None:
        if self._hindrances.get(owner) != told:
            self._hindrances[owner] = told
            self._changed()

    def unblock(self, owner: Owner) -> None:
        if self._hindrances.pop(owner, None) is not None:
            self._changed()

    def linked(self) -> None:
        """A keeper was reached: what failed the session failed with the link before."""
        self._keep(lambda one: one.holds)

    def released(self) -> None:
        """A person wants it looked at again: whoever finds the same again says it again."""
        self._keep(lambda one: False)

    def _say(self, owner: Owner, said: _Said) -> None:
        self._said.pop(owner, None)  # what was said last is the last
        self._said[owner] = said

    def _keep(self, stands: Callable[[_Said], bool]) -> None:
        stay = {owner: one for owner, one in self._said.items() if stands(one)}
        if stay != self._said:
            self._said = stay
            self._changed()

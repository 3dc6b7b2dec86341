"""The supervisor as an agent's process sees it: money reserved before an attempt and settled after it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TypeVar

from harness.agents.agent import Doing
from harness.agents.errors import NoSupervisor, Refused
from harness.agents.peer import Link
from harness.agents.supervisor_requests import (
    Admit,
    Admitted,
    AttemptOutcome,
    Greet,
    Heard,
    Reservation,
    Reserve,
    Settle,
    Settlement,
    TellDoing,
    TellLimits,
)
from harness.domain.model_limits import ModelLimits
from harness.events.body import UNSETTLED
from harness.events.types import Usage
from harness.protocol.connection.op import Op

R = TypeVar("R")
_REPLY_S = 60.0
_AWAY = frozenset(("stale_lease", "stopping"))
"""Refusals of a supervisor that does not know us (yet) or is about to leave: another one will answer."""
_LATER = frozenset(("no_space", "ledger"))
"""Refusals of a settlement that are no last word: it cannot be written now."""


class Accounts:
    """Connects when asked, stays usable after the supervisor was replaced.

    ``link`` is None or closed while nobody answers.
    """

    def __init__(self, socket: Path, sid: str, gen: int, secret: str) -> None:
        self._socket = socket
        self._sid = sid
        self._gen = gen
        self._secret = secret
        self.link: Link | None = None
        self._unsettled: list[Settle] = []
        self.problems: list[str] = []
        """Refused settlements, in words, for the log."""

    @property
    def alive(self) -> bool:
        return self.link is not None and self.link.alive

    def connect(self) -> None:
        """Settle what was left over, too. Raises NoSupervisor when nobody answers; Refused when it does not know us,
        which may be for now: a new supervisor takes a while to adopt its sessions, and it is the keeper that tells a
        brain that its time is over.
        """
        link = Link(self._socket, "supervisor", NoSupervisor)
        try:
            link.ask(Greet(self._sid, self._gen, self._secret))
        except Refused:
            link.close()
            raise
        self.link = link
        self._make_up()

    def _make_up(self) -> None:
        """Settle what could not be settled before, in its order; what only has to wait stays. Raises NoSupervisor."""
        while self._unsettled:
            owed = self._unsettled[0]
            try:
                self._ask(owed)
            except Refused as exc:
                if exc.code in _LATER:
                    return
                self._refused(owed, exc)
            self._unsettled.pop(0)

    def _live(self) -> Link:
        if self.link is None or not self.link.alive:
            raise NoSupervisor("supervisor: not connected")
        return self.link

    def _ask(self, op: Op[R]) -> R:
        """One request to a supervisor that knows us. Raises Refused, NoSupervisor."""
        link = self._live()
        try:
            return link.ask(op, _REPLY_S)
        except Refused as exc:
            if exc.code not in _AWAY:
                raise
            link.close()
            raise NoSupervisor(f"the supervisor does not answer for this session: {exc}") from exc

    def admit(self, endpoint: str, model: str, wanted: Reserve | None = None) -> Admitted:
        """Wait at the gate of the endpoint and of this model, and behind it reserve what is wanted. Raises Refused
        (``poison``, ``paused``, ``cap`` …; then nothing is reserved), NoSupervisor.
        """
        self._make_up()
        return self._ask(Admit(endpoint, model, wanted))

    def heard(self) -> None:
        """The first words of a reply have come; nothing is lost when nobody can be told."""
        with contextlib.suppress(Refused, NoSupervisor):
            self._ask(Heard())

    def tell(self, doing: Doing) -> None:
        """What the agent is at, for whoever looks; nothing is lost when nobody can be told."""
        with contextlib.suppress(NoSupervisor):
            self._live().tell(TellDoing(doing.what, doing.evidence))

    def tell_limits(self, model: str, limits: ModelLimits) -> None:
        """What the endpoint said of the model, for the brains that follow; without it they ask themselves."""
        with contextlib.suppress(NoSupervisor):
            self._live().tell(TellLimits(model, *limits))

    def reserve(self, wanted: Reserve) -> Reservation:
        """Raises Refused (``cap``, ``paused`` …), NoSupervisor."""
        self._make_up()
        return self._ask(wanted)

    def settle(
        self, reservation: Reservation, usage: Usage | None, outcome: AttemptOutcome | None = None
    ) -> Settlement:
        """Usage None = cost unknown; outcome None = the endpoint was not asked, or nobody knows what it said.

        Without a supervisor, or with one that is leaving or has no space, the worst case stands for the cost and the
        settlement is made up for later, by us or by a supervisor that finds the usage in our log.
        """
        owed = Settle(reservation.id, usage, outcome)
        try:
            return self._ask(owed)
        except NoSupervisor:
            self._unsettled.append(owed)
        except Refused as exc:
            if exc.code in _LATER:
                self._unsettled.append(owed)
            else:
                self._refused(owed, exc)
        return Settlement(reservation.nano, UNSETTLED)

    def _refused(self, owed: Settle, why: Refused) -> None:
        self.problems.append(f"the supervisor would not settle reservation {owed.reservation}: {why}")

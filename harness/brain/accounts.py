"""The supervisor as a brain sees it: money reserved before an attempt and settled after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.brain.errors import NoSupervisor, Refused
from harness.brain.links import Link
from harness.events.types import Usage
from harness.protocol import frames

_LATER = frozenset(("stopping", "stale_lease", "no_space", "ledger"))
"""Refusals of a settlement that are no last word: the supervisor leaves, does not know us yet, or cannot write now."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The worst case of one attempt, counted as spent until it is settled."""

    id: str
    nano: int


@dataclass(frozen=True, slots=True)
class Settled:
    """What an attempt cost, and where the price came from."""

    nano: int
    source: str


class Accounts:
    """Connects when asked, stays usable after the supervisor was replaced. ``link`` is None or closed while nobody answers."""

    def __init__(self, socket: Path, sid: str, gen: int, secret: str) -> None:
        self._socket, self._sid, self._gen, self._secret = socket, sid, gen, secret
        self.link: Link | None = None
        self._unsettled: list[tuple[str, Usage | None]] = []
        self.problems: list[str] = []
        """Refused settlements, in words, for the log."""

    @property
    def alive(self) -> bool:
        return self.link is not None and self.link.alive

    def connect(self) -> None:
        """Settle what was left over, too. Raises NoSupervisor when nobody answers; Refused when it does not know us, which may be for now:
        a new supervisor takes a while to adopt its sessions, and it is the keeper that tells a brain that its time is over."""
        link = Link(self._socket, "supervisor", NoSupervisor)
        try:
            link.call("hello", proto=frames.PROTOCOL, client="brain")
            link.call("brain_hello", sid=self._sid, gen=self._gen, secret=self._secret)
        except Refused:
            link.close()
            raise
        self.link = link
        self._make_up()

    def _make_up(self) -> None:
        """Settle what could not be settled before, in its order; what only has to wait stays. Raises NoSupervisor."""
        while self._unsettled:
            reservation, usage = self._unsettled[0]
            try:
                self._settle(reservation, usage)
            except Refused as exc:
                if exc.code in _LATER:
                    return
                self.problems.append(f"the supervisor would not settle reservation {reservation}: {exc}")
            self._unsettled.pop(0)

    def _live(self) -> Link:
        if self.link is None or not self.link.alive:
            raise NoSupervisor("supervisor: not connected")
        return self.link

    def reserve(self, request_id: str, attempt: int, model: str, est_input: int, max_tokens: int) -> Reservation:
        """Raises Refused (``cap``, ``paused`` …), NoSupervisor."""
        link = self._live()
        self._make_up()
        try:
            reply = link.call("reserve", request_id=request_id, attempt=attempt, model=model, est_input=est_input, max_tokens=max_tokens)
        except Refused as exc:
            if exc.code != "stale_lease":
                raise
            link.close()
            raise NoSupervisor(f"the supervisor does not know this brain: {exc}") from exc
        return Reservation(str(reply["reservation"]), int(reply["reserved_nano"]))

    def _settle(self, reservation: str, usage: Usage | None) -> Settled:
        if usage is None:
            reply = self._live().call("settle", reservation=reservation, unknown=True)
        else:
            reply = self._live().call("settle", reservation=reservation, usage=msgspec.to_builtins(usage))
        return Settled(int(reply.get("cost_nano", 0)), str(reply.get("price_source", "")))

    def settle(self, reservation: Reservation, usage: Usage | None) -> Settled:
        """Usage None = outcome unknown. Without a supervisor, or with one that is leaving or has no space, the worst case stands for the cost
        and the settlement is made up for later, by us or by a supervisor that finds the usage in our log."""
        try:
            return self._settle(reservation.id, usage)
        except NoSupervisor:
            self._unsettled.append((reservation.id, usage))
        except Refused as exc:
            if exc.code in _LATER:
                self._unsettled.append((reservation.id, usage))
            else:
                self.problems.append(f"the supervisor would not settle reservation {reservation.id}: {exc}")
        return Settled(reservation.nano, "reserved")

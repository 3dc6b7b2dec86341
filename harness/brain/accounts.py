"""The supervisor as a brain sees it: money reserved before an attempt and settled after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.brain.errors import Fenced, Lost, Refused
from harness.brain.links import Link
from harness.events.types import Usage
from harness.protocol import frames


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
        """Raises Lost (nobody there, or not ready for us: try again), Fenced when the lease is another's. Settles what was left over."""
        link = Link(self._socket, "supervisor")
        try:
            link.call("hello", proto=frames.PROTOCOL, client="brain")
            link.call("brain_hello", sid=self._sid, gen=self._gen, secret=self._secret)
        except Refused as exc:
            link.close()
            if exc.code == "stale_lease":
                raise Fenced(f"the supervisor refused this brain: {exc}") from exc
            raise Lost(f"the supervisor refused this brain: {exc}") from exc
        self.link = link
        while self._unsettled:
            reservation, usage = self._unsettled[0]
            try:
                self._settle(reservation, usage)
            except Refused as exc:
                self.problems.append(f"the supervisor would not settle reservation {reservation}: {exc}")
            self._unsettled.pop(0)

    def _live(self) -> Link:
        if self.link is None or not self.link.alive:
            raise Lost("supervisor: not connected")
        return self.link

    def reserve(self, request_id: str, attempt: int, model: str, est_input: int, max_tokens: int) -> Reservation:
        """Raises Refused (``cap``, ``paused`` …), Fenced, Lost."""
        try:
            reply = self._live().call("reserve", request_id=request_id, attempt=attempt, model=model, est_input=est_input, max_tokens=max_tokens)
        except Refused as exc:
            if exc.code == "stale_lease":
                raise Fenced(str(exc)) from exc
            raise
        return Reservation(str(reply["reservation"]), int(reply["reserved_nano"]))

    def _settle(self, reservation: str, usage: Usage | None) -> Settled:
        if usage is None:
            reply = self._live().call("settle", reservation=reservation, unknown=True)
        else:
            reply = self._live().call("settle", reservation=reservation, usage=msgspec.to_builtins(usage))
        return Settled(int(reply.get("cost_nano", 0)), str(reply.get("price_source", "")))

    def settle(self, reservation: Reservation, usage: Usage | None) -> Settled:
        """Usage None = outcome unknown. Without a supervisor the worst case stands for the cost and the settlement is made up for later."""
        try:
            return self._settle(reservation.id, usage)
        except Lost:
            self._unsettled.append((reservation.id, usage))
        except Refused as exc:
            self.problems.append(f"the supervisor would not settle reservation {reservation.id}: {exc}")
        return Settled(reservation.nano, "reserved")

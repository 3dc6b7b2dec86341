"""The supervisor as a brain sees it: money reserved before an attempt and settled after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.brain.errors import NoSupervisor, Refused
from harness.brain.links import Link
from harness.events.types import Usage
from harness.protocol import frames

_AWAY = frozenset(("stale_lease", "stopping"))
"""Refusals of a supervisor that does not know us (yet) or is about to leave: another one will answer."""


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
        while self._unsettled:
            reservation, usage = self._unsettled[0]
            try:
                self._settle(reservation, usage)
            except Refused as exc:
                self.problems.append(f"the supervisor would not settle reservation {reservation}: {exc}")
            self._unsettled.pop(0)

    def _live(self) -> Link:
        if self.link is None or not self.link.alive:
            raise NoSupervisor("supervisor: not connected")
        return self.link

    def _call(self, op: str, **arguments: Any) -> dict[str, Any]:
        """One request to a supervisor that knows us. Raises Refused, NoSupervisor."""
        link = self._live()
        try:
            return link.call(op, **arguments)
        except Refused as exc:
            if exc.code not in _AWAY:
                raise
            link.close()
            raise NoSupervisor(f"the supervisor does not answer for this session: {exc}") from exc

    def reserve(self, request_id: str, attempt: int, model: str, est_input: int, max_tokens: int) -> Reservation:
        """Raises Refused (``cap``, ``paused`` …), NoSupervisor."""
        reply = self._call("reserve", request_id=request_id, attempt=attempt, model=model, est_input=est_input, max_tokens=max_tokens)
        return Reservation(str(reply["reservation"]), int(reply["reserved_nano"]))

    def _settle(self, reservation: str, usage: Usage | None) -> Settled:
        if usage is None:
            reply = self._call("settle", reservation=reservation, unknown=True)
        else:
            reply = self._call("settle", reservation=reservation, usage=msgspec.to_builtins(usage))
        return Settled(int(reply.get("cost_nano", 0)), str(reply.get("price_source", "")))

    def settle(self, reservation: Reservation, usage: Usage | None) -> Settled:
        """Usage None = outcome unknown. Without a supervisor the worst case stands for the cost and the settlement is made up for later."""
        try:
            return self._settle(reservation.id, usage)
        except NoSupervisor:
            self._unsettled.append((reservation.id, usage))
        except Refused as exc:
            self.problems.append(f"the supervisor would not settle reservation {reservation.id}: {exc}")
        return Settled(reservation.nano, "reserved")

"""The supervisor's end of a framed connection to something it started or adopted: a fork server, a keeper."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TypeVar

import msgspec

from harness.protocol.connection.aio import Asking
from harness.protocol.connection.exchange import Closed, Ended, Exchange, Silent, refusal
from harness.protocol.connection.frames import members
from harness.protocol.connection.op import Op
from harness.protocol.connection.struct_json import STRUCT_JSON
from harness.supervisor.base.errors import LinkLost, OpError

R = TypeVar("R")


class Peer:
    """Requests with replies by id, pushes to a callback. Base of `KeeperLink`; the fork server's client has one."""

    def __init__(self, name: str, on_push: Callable[[dict[str, object]], None], on_lost: Callable[[], None]) -> None:
        self._name = name
        self._asking = Asking(on_push, on_lost, Exchange(STRUCT_JSON))

    async def attach(self, sock: socket.socket) -> None:
        """Take over a connected socket."""
        await self._asking.attach(sock)

    @property
    def alive(self) -> bool:
        return not self._asking.wire.closed

    async def ask(self, op: Op[R], wait: float | None = 30.0) -> R:
        """What it answers. Raises OpError when it refuses (``protocol``: its answer is not understood), LinkLost when
        the connection ends or ``wait`` seconds pass.
        """
        try:
            reply = await self._asking.call(op.OP, wait, members(op))
        except Silent as exc:
            raise LinkLost(f"{self._name} {exc}") from exc
        except Ended as exc:
            raise LinkLost(f"{self._name} {Closed()}") from exc
        no = refusal(reply, f"{self._name} refused {op.OP} without a reason")
        if no is not None:
            raise OpError(no.code, no.message, no.hint)
        try:
            return msgspec.convert(reply, op.answered_by())
        except msgspec.ValidationError as exc:
            raise OpError("protocol", f"{self._name} answered {op.OP} with what is not understood: {exc}") from exc

    def close(self) -> None:
        """Close after what waits has been sent."""
        self._asking.wire.close()

    def abort(self) -> None:
        """Drop the connection and what waits in it."""
        self._asking.wire.abort()

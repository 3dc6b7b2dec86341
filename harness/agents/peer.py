"""An agent's connection to its keeper or to the supervisor: blocking, one thread, no event loop."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.agents.errors import Interruption, Refused
from harness.protocol.connection.blocking import Connection
from harness.protocol.connection.exchange import Ended, refusal
from harness.protocol.connection.frames import members
from harness.protocol.connection.op import Op
from harness.protocol.connection.struct_json import STRUCT_JSON
from harness.protocol.connection.transport import UnixSocket

R = TypeVar("R")


class Link:
    """One connection. Raises ``lost`` when it cannot be made or breaks, Refused when the peer says no."""

    def __init__(self, path: Path, name: str, lost: type[Interruption], connect_s: float = 5.0) -> None:
        self._name = name
        self._lost = lost
        try:
            self._connection = Connection(UnixSocket(path).open(connect_s), STRUCT_JSON)
        except OSError as exc:
            raise self._lost(f"no {name} answers at {path}: {exc.strerror or exc}") from exc

    @property
    def alive(self) -> bool:
        return self._connection.alive

    @property
    def pushes(self) -> deque[dict[str, object]]:
        """What the peer said unasked and nobody has taken yet, in order."""
        return self._connection.pushes

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()

    def read(self, wait_s: float) -> bool:
        """Take in what has arrived, waiting up to ``wait_s`` seconds for it; False when nothing came."""
        try:
            return self._connection.read(wait_s)
        except Ended as exc:
            raise self._ended(exc) from exc

    def ask(self, op: Op[R], within_s: float = 60.0) -> R:
        """Ask for one operation and wait for its answer."""
        try:
            reply = self._connection.call(op.OP, within_s, members(op))
        except Ended as exc:
            raise self._ended(exc) from exc
        no = refusal(reply, f"{self._name} refused {op.OP} without a reason")
        if no is not None:
            raise Refused(no.code, no.message)
        try:
            return msgspec.convert(reply, op.answered_by())
        except msgspec.ValidationError as exc:
            raise self._lost(f"{self._name}: the answer to {op.OP} is not understood: {exc}") from exc

    def tell(self, op: Op[object]) -> None:
        """Ask for one operation, if there is room for it now, and wait for nothing."""
        try:
            self._connection.tell(op.OP, members(op))
        except Ended as exc:
            raise self._ended(exc) from exc

    def _ended(self, end: Ended) -> Interruption:
        return self._lost(f"{self._name}: {end}")

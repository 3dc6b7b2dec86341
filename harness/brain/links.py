"""Blocking framed connections of a brain: requests with replies by id, pushes kept in order.

One thread, no event loop.
"""

from __future__ import annotations

import itertools
import select
import socket
import time
from collections import deque
from pathlib import Path
from typing import Any

from harness.brain.errors import Interruption, Refused
from harness.protocol import frames


class Link:
    """One connection. Raises ``lost`` when it cannot be made or breaks, Refused when the peer says no."""

    def __init__(self, path: Path, name: str, lost: type[Interruption], connect_s: float = 5.0) -> None:
        self._name = name
        self._lost = lost
        self._ids = itertools.count(1)
        self._decoder = frames.Decoder()
        self._replies: dict[int, dict[str, Any]] = {}
        self.pushes: deque[dict[str, Any]] = deque()
        self.alive = True
        try:
            self._sock: socket.socket = frames.connect(path, connect_s)
        except OSError as exc:
            raise self._lost(f"no {name} answers at {path}: {exc.strerror or exc}") from exc

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self.alive = False
        self._sock.close()

    def _lose(self, why: str) -> Interruption:
        self.close()
        return self._lost(f"{self._name}: {why}")

    def read(self, wait_s: float) -> bool:
        """Take in what has arrived, waiting up to ``wait_s`` seconds for it; False when nothing came."""
        if not self.alive:
            raise self._lost(f"{self._name}: the connection is closed")
        if not select.select((self._sock,), (), (), max(0.0, wait_s))[0]:
            return False
        try:
            data = self._sock.recv(1 << 18)
            if not data:
                raise self._lose("closed the connection")
            for body in self._decoder.feed(data):
                message = frames.parse(body)
                if "push" in message:
                    self.pushes.append(message)
                elif isinstance(number := message.get("id"), int):
                    self._replies[number] = message
        except (OSError, frames.FrameError) as exc:
            raise self._lose(f"the connection broke: {exc}") from exc
        return True

    def call(self, op: str, *, within_s: float = 60.0, **arguments: object) -> dict[str, Any]:
        """Send one request and wait for its reply."""
        if not self.alive:
            raise self._lost(f"{self._name}: the connection is closed")
        number = next(self._ids)
        deadline = time.monotonic() + within_s
        try:
            self._sock.settimeout(within_s)
            self._sock.sendall(frames.encode({"id": number, "op": op, **arguments}))
        except OSError as exc:
            raise self._lose(f"the connection broke: {exc}") from exc
        while number not in self._replies:
            if (left := deadline - time.monotonic()) <= 0:
                raise self._lose(f"did not answer {op} within {within_s:.0f} s")
            self.read(left)
        reply = self._replies.pop(number)
        if reply.get("ok"):
            return reply
        error = reply.get("error")
        error = error if isinstance(error, dict) else {}
        raise Refused(
            str(error.get("code", "error")), str(error.get("message", f"{self._name} refused {op} without a reason"))
        )

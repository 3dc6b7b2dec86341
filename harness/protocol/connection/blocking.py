"""The blocking shell of an exchange: one thread, no event loop. Standard library only."""

from __future__ import annotations

import math
import select
import socket
import time
from collections import deque

from harness.protocol.connection.exchange import JSON, Broken, Closed, Codec, Ended, Exchange, Push, Silent
from harness.protocol.connection.frames import FrameError

_READ_BYTES = 1 << 16
"""Small enough that the allocator keeps the buffer, instead of mapping and unmapping it for each frame."""
_REST_S = 1.0
"""Seconds for the rest of a frame whose beginning the peer took."""


class Connection:
    """Requests with their replies over one connected socket; pushes are kept in order until they are taken.

    Not thread-safe. After an `Ended` it is closed.
    """

    def __init__(self, sock: socket.socket, codec: Codec = JSON) -> None:
        self._sock = sock
        self._exchange = Exchange(codec)
        self._replies: dict[int, dict[str, object]] = {}
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self.pushes: deque[dict[str, object]] = deque()
        self.alive = True
        sock.setblocking(False)

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self.alive = False
        self._sock.close()

    def release(self) -> tuple[socket.socket, Exchange, list[dict[str, object]]]:
        """Give the connection away: its socket, where the exchange stands, pushes that nobody has taken."""
        self.alive = False
        return self._sock, self._exchange, list(self.pushes)

    def read(self, wait_s: float) -> bool:
        """Take in what has arrived, waiting up to ``wait_s`` seconds for it; False when nothing came. Raises Ended."""
        self._must_live()
        if not self._poll.poll(_milliseconds(wait_s)):
            return False
        self._receive()
        return True

    def call(self, op: str, within_s: float, arguments: dict[str, object]) -> dict[str, object]:
        """Send one request and wait for its reply, a refusal included. Raises Ended, Oversize."""
        self._must_live()
        number, frame = self._exchange.request(op, arguments)
        deadline = time.monotonic() + within_s
        self._send(frame, deadline, Silent(op, within_s))
        while number not in self._replies:
            if (left := deadline - time.monotonic()) <= 0:
                raise self._end(Silent(op, within_s))
            self.read(left)
        return self._replies.pop(number)

    def tell(self, op: str, arguments: dict[str, object]) -> bool:
        """Send one request whose reply nobody waits for; False, and nothing sent, while the peer takes nothing in.
        Raises Ended, Oversize.
        """
        self._must_live()
        room = select.poll()
        room.register(self._sock, select.POLLOUT)
        if not room.poll(0):
            return False
        number, frame = self._exchange.request(op, arguments)
        self._exchange.forget(number)
        self._send(frame, time.monotonic() + _REST_S, Silent(op, _REST_S))
        return True

    def _must_live(self) -> None:
        if not self.alive:
            raise Closed

    def _end(self, why: Ended) -> Ended:
        self.close()
        return why

    def _send(self, frame: bytes, deadline: float, late: Ended) -> None:
        """Also reads while the peer does not: it may be waiting for us to take what it has sent."""
        rest = memoryview(frame)
        while rest:
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                self._wait_for_room(deadline, late)
            except OSError as exc:
                raise self._end(Broken(exc.strerror or str(exc))) from exc

    def _wait_for_room(self, deadline: float, late: Ended) -> None:
        if (left := deadline - time.monotonic()) <= 0:
            raise self._end(late)
        self._poll.modify(self._sock, select.POLLIN | select.POLLOUT)
        ready = self._poll.poll(_milliseconds(left))
        self._poll.modify(self._sock, select.POLLIN)
        if any(what & select.POLLIN for _, what in ready):
            self._receive()

    def _receive(self) -> None:
        try:
            data = self._sock.recv(_READ_BYTES)
            if not data:
                self._exchange.end()
                raise self._end(Closed())
            for message in self._exchange.take(data):
                if isinstance(message, Push):
                    self.pushes.append(message.message)
                else:
                    self._replies[message.number] = message.message
        except BlockingIOError:
            return
        except OSError as exc:
            raise self._end(Broken(exc.strerror or str(exc))) from exc
        except FrameError as exc:
            raise self._end(Broken(str(exc))) from exc


def _milliseconds(seconds: float) -> int:
    return max(0, math.ceil(seconds * 1000))

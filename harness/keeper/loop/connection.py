"""One connection of a keeper: frames in, a bounded queue of frames out. Standard library only."""

from __future__ import annotations

import socket
from collections import deque
from typing import NamedTuple

from harness.eventlog.tail import Tail
from harness.keeper.loop.errors import OpError
from harness.protocol.connection import frames

QUEUE_BYTES = 4 * 1024 * 1024
"""A peer that lets more than this pile up is closed; it comes back and asks again from where it was."""
PAUSE_BYTES = 1024 * 1024
"""Above this no further request of the peer is read."""
READ_BYTES = 64 * 1024
"""Small enough that the allocator keeps the buffer, instead of mapping and unmapping it for each frame."""
_BUFFERS = 64


class Conn:
    """State of one peer. ``role`` is empty before its hello; ``feed`` says whether and how it gets the log."""

    __slots__ = (
        "closed",
        "closing",
        "decoder",
        "epoch",
        "feed_head",
        "gen",
        "live",
        "mask",
        "out",
        "out_bytes",
        "role",
        "sock",
        "tail",
    )

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.decoder = frames.Decoder()
        self.out: deque[memoryview] = deque()
        self.out_bytes = 0
        self.role = ""
        self.gen = 0
        self.tail: Tail | None = None
        self.feed_head = -1
        self.closing = False
        self.closed = False
        self.mask = 0

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, message: dict[str, object]) -> None:
        """Queue one message."""
        self.send_frame(frames.encode(message))

    def send_frame(self, frame: bytes) -> None:
        """Queue one encoded frame; what comes after the last word of a closing connection is dropped."""
        if not (self.closing or self.closed):
            self.out.append(memoryview(frame))
            self.out_bytes += len(frame)

    def farewell(self, code: str, message: str) -> None:
        """Say why and close once that is sent (or the peer does not read)."""
        self.send({"push": "closed", "code": code, "message": message})
        self.closing = True

    def read(self) -> bytes:
        """What the peer sent; b"" at its end. Raises BlockingIOError, OSError."""
        return self.sock.recv(READ_BYTES)

    def flush(self) -> None:
        """Send as much as the socket takes now. Raises OSError when the peer is gone."""
        while self.out:
            try:
                sent = self.sock.sendmsg([self.out[i] for i in range(min(len(self.out), _BUFFERS))])
            except BlockingIOError:
                return
            self.out_bytes -= sent
            while sent:
                first = self.out[0]
                if sent < len(first):
                    self.out[0] = first[sent:]
                    break
                sent -= len(first)
                self.out.popleft()


class Asker(NamedTuple):
    """Who waits for a reply: its connection, and the number that it gave its request."""

    conn: Conn
    number: object

    def told(self, reply: object) -> None:
        """Its reply: a frozen record, or an OpError, which says why there is none."""
        if isinstance(reply, OpError):
            self.conn.send({"id": self.number, "ok": False, "error": reply.body()})
        else:
            self.conn.send({"id": self.number, "ok": True, **frames.members(reply)})

"""Writing one reply as server-sent events: at a human pace or at once, and with the faults that strike inside a
stream.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from aiohttp import web

from harness.simulator.compose import Message
from harness.simulator.errors import error_body
from harness.simulator.faults import REPLY_KINDS, Fault


@dataclass(frozen=True, slots=True)
class Pace:
    """``speed`` scales all waits: 1 is comfortable to watch (1 to 3 s a turn), 0 does not wait at all."""

    speed: float = 1.0

    def think(self, seed: str) -> float:
        """Seconds before the first byte, the same for the same request."""
        return self.speed * (0.5 + hashlib.sha256(seed.encode()).digest()[0] / 255 * 1.1)

    @property
    def delta(self) -> float:
        """Seconds between two deltas."""
        return self.speed * 0.025


class Cut(Exception):
    """The connection was ended on purpose."""


class Body:
    """The response's body; applies a fault once its byte has come."""

    def __init__(
        self, request: web.Request, response: web.StreamResponse, fault: Fault | None, request_id: str
    ) -> None:
        self._request = request
        self._response = response
        self._fault = fault if fault is not None and fault.in_stream else None
        self._request_id = request_id
        self._sent = 0
        self._slow = False

    async def write(self, data: bytes) -> None:
        """Raises Cut when the fault ends the connection."""
        fault = self._fault
        if fault is not None and self._sent + len(data) > fault.after_bytes:
            keep = fault.after_bytes - self._sent
            if fault.kind in ("stream_error", "pings"):
                boundary = data.rfind(b"\n\n", 0, keep)  # an event of its own stands between two events
                keep = boundary + 2 if boundary >= 0 else 0
            await self._put(data[:keep])
            data = data[keep:]
            self._fault = None
            await self._strike(fault)
        await self._put(data)

    async def _put(self, data: bytes) -> None:
        if not data:
            return
        if self._slow:
            for part in _parts(data, 8):
                await self._response.write(part)
                await asyncio.sleep(len(part) / self._rate)
        else:
            await self._response.write(data)
        self._sent += len(data)

    async def _strike(self, fault: Fault) -> None:
        if fault.kind == "stall":
            await asyncio.sleep(fault.seconds)
        elif fault.kind == "pings":
            for _ in range(max(1, int(fault.seconds / fault.every))):
                await self._put(b'event: ping\ndata: {"type": "ping"}\n\n')
                await asyncio.sleep(fault.every)
        elif fault.kind == "trickle":
            self._slow = True
            self._rate = fault.rate
        elif fault.kind in REPLY_KINDS:
            return  # the reply itself is the fault
        elif fault.kind == "stream_error":
            error = error_body(fault.error, fault.message or "Overloaded", self._request_id)
            await self._put(b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n")
            raise Cut
        else:
            if self._request.transport is not None:
                self._request.transport.close()
            raise Cut


def _parts(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


@dataclass(slots=True)
class Progress:
    """Output tokens generated so far: what is billed when the stream ends early."""

    output: int = 0


async def send(body: Body, message: Message, pace: Pace, progress: Progress) -> None:
    """Send all events of a message. Raises Cut, and ConnectionError when the client left."""
    pending = bytearray()
    for piece in message.pieces():
        pending += piece.encode()
        progress.output = piece.output
        # Without a pace the events go out in few large writes: thousands of small ones would make the simulator the
        # bottleneck.
        if pace.delta or len(pending) > 16_384:
            await body.write(bytes(pending))
            pending.clear()
        if pace.delta and piece.data["type"] == "content_block_delta":
            await asyncio.sleep(pace.delta)
    await body.write(bytes(pending))

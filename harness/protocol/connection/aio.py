"""The asyncio shells of an exchange: a wire that carries frames either way, and requests with replies over one."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from harness.protocol.connection.exchange import Broken, Closed, Ended, Exchange, Push, Reply, Silent
from harness.protocol.connection.frames import FrameError, HalfFrame

M = TypeVar("M")
_READ_BYTES = 1 << 16


class _Room(threading.local):
    """Where this thread's event loop reads to: what is read is taken out before anything else is read. A buffer of each
    read's own, as a plain protocol has it, is mapped and unmapped for every frame.
    """

    def __init__(self) -> None:
        self.bytes = memoryview(bytearray(_READ_BYTES))


_room = _Room()


class Wire(asyncio.BufferedProtocol, Generic[M]):
    """One connection. ``take`` makes messages of what comes (`Exchange.take` or `Answering.take`), ``on_message`` gets
    each of them, ``on_lost`` is called once at the end, when ``end`` says why.
    """

    def __init__(
        self,
        take: Callable[[bytes], Iterable[M]],
        on_message: Callable[[Wire[M], M], None],
        on_lost: Callable[[Wire[M]], None],
    ) -> None:
        self._take = take
        self._on_message = on_message
        self._on_lost = on_lost
        self.transport: asyncio.Transport | None = None
        self.closed = False
        self.end: Ended = Closed()
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return _room.bytes

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for message in self._take(bytes(_room.bytes[:nbytes])):
                self._on_message(self, message)
        except FrameError as exc:
            self.end = Broken(str(exc))
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        if exc is not None:
            self.end = Broken(str(exc))
        if not self.closed:
            self.closed = True
            self._on_lost(self)

    def send(self, frame: bytes) -> None:
        """Queue one frame. Raises Ended when the connection is gone."""
        if self.closed or self.transport is None:
            raise self.end
        self.transport.write(frame)

    def queued(self) -> int:
        """Bytes that wait for the peer to read."""
        return self.transport.get_write_buffer_size() if self.transport is not None else 0

    def abort(self) -> None:
        """Drop the connection and what waits in it."""
        if self.transport is not None:
            self.transport.abort()

    def close(self) -> None:
        """Close after what waits has been sent."""
        if self.transport is not None:
            self.transport.close()


class Asking:
    """Concurrent requests with replies by id; pushes go to a callback, in order."""

    def __init__(
        self,
        on_push: Callable[[dict[str, object]], None],
        on_lost: Callable[[], None],
        exchange: Exchange | None = None,
    ) -> None:
        self._on_push = on_push
        self._on_lost = on_lost
        self._exchange = exchange or Exchange()
        self._waiting: dict[int, asyncio.Future[dict[str, object]]] = {}
        self.wire: Wire[Reply | Push] = Wire(self._exchange.take, self._message, self._lost)

    def _message(self, wire: Wire[Reply | Push], message: Reply | Push) -> None:
        if isinstance(message, Push):
            self._on_push(message.message)
            return
        future = self._waiting.pop(message.number, None)
        if future is not None and not future.done():
            future.set_result(message.message)

    def _lost(self, wire: Wire[Reply | Push]) -> None:
        try:
            self._exchange.end()
        except HalfFrame as exc:
            wire.end = Broken(str(exc))
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(wire.end)
        self._waiting.clear()
        self._on_lost()

    async def attach(self, sock: socket.socket) -> None:
        """Take over a connected socket."""
        sock.setblocking(False)
        await asyncio.get_running_loop().create_unix_connection(lambda: self.wire, sock=sock)

    async def call(self, op: str, within_s: float | None, arguments: dict[str, object]) -> dict[str, object]:
        """The reply, a refusal included; without ``within_s`` it is waited for until the connection ends.

        Raises Ended (Silent when the time is up; the connection stays then) and Oversize.
        """
        loop = asyncio.get_running_loop()
        number, frame = self._exchange.request(op, arguments)
        future: asyncio.Future[dict[str, object]] = loop.create_future()
        late = None if within_s is None else loop.call_later(within_s, self._late, future, Silent(op, within_s))
        self._waiting[number] = future
        try:
            self.wire.send(frame)
            return await future
        finally:
            if late is not None:
                late.cancel()
            self._waiting.pop(number, None)
            self._exchange.forget(number)

    @staticmethod
    def _late(future: asyncio.Future[dict[str, object]], silent: Silent) -> None:
        if not future.done():
            future.set_exception(silent)

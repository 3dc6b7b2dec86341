"""Framed asyncio connections: to a keeper, to a nursery, from a client. One protocol class carries all three."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from harness.events import types as t
from harness.protocol import frames
from harness.supervisor.errors import LinkLost, OpError

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Wire(asyncio.Protocol):
    """Frames in both directions. ``on_frame`` gets each decoded object, ``on_lost`` is called once at the end."""

    def __init__(self, on_frame: Callable[[Wire, dict[str, Any]], None], on_lost: Callable[[Wire], None]) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._decoder = frames.Decoder()
        self.transport: asyncio.Transport | None = None
        self.closed = False
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for body in self._decoder.feed(data):
                self._on_frame(self, _decode(body))
        except (frames.FrameError, msgspec.DecodeError, RecursionError):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        if not self.closed:
            self.closed = True
            self._on_lost(self)

    def send(self, message: object) -> None:
        """Queue one message. Raises LinkLost when the connection is gone, FrameError when it is too large."""
        if self.closed or self.transport is None:
            raise LinkLost("the connection is closed")
        self.transport.write(frames.frame(_encode(message)))

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


class Peer:
    """Requests with replies by id, pushes to a callback. Base of `KeeperLink` and of the nursery's client."""

    def __init__(self, name: str, on_push: Callable[[dict[str, Any]], None], on_lost: Callable[[], None]) -> None:
        self._name = name
        self._on_push = on_push
        self._on_lost = on_lost
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.wire = Wire(self._frame, self._lost)

    def _frame(self, wire: Wire, message: dict[str, Any]) -> None:
        if "push" in message:
            self._on_push(message)
            return
        number = message.get("id")
        future = self._waiting.pop(number, None) if isinstance(number, int) else None
        if future is not None and not future.done():
            future.set_result(message)

    def _lost(self, wire: Wire) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(LinkLost(f"{self._name} closed the connection"))
        self._waiting.clear()
        self._on_lost()

    async def attach(self, sock: socket.socket) -> None:
        """Take over a connected socket."""
        sock.setblocking(False)
        await asyncio.get_running_loop().create_unix_connection(lambda: self.wire, sock=sock)

    @property
    def alive(self) -> bool:
        return not self.wire.closed

    async def call(self, op: str, *, wait: float | None = 30.0, **arguments: object) -> dict[str, Any]:
        """The reply's fields.

        Raises OpError when refused, LinkLost when the connection ends or ``wait`` seconds pass.
        """
        number = next(self._ids)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self.wire.send({"id": number, "op": op, **arguments})
            reply = await asyncio.wait_for(future, wait)
        except TimeoutError as exc:
            raise LinkLost(f"{self._name} did not answer {op} within {wait:.0f} s") from exc
        finally:
            self._waiting.pop(number, None)
        if reply.get("ok"):
            return reply
        error = reply.get("error")
        if not isinstance(error, dict):
            error = {"code": "error", "message": str(error or f"{self._name} refused {op} without a reason")}
        raise OpError(str(error.get("code", "error")), str(error.get("message", "")), str(error.get("hint", "")))

    def close(self) -> None:
        self.wire.close()


class KeeperHello(msgspec.Struct, frozen=True):
    """Who a keeper says it is, and where its log stands."""

    sid: str
    pid: int
    start: int
    boot: str
    head: int
    hash: str = ""
    poisoned: bool | str = False
    epoch: int = 0
    gen: int = 0
    running: list[str] = []
    folder: tuple[int, int] | None = None
    """Device and inode of its session's folder; keepers of an older version do not say."""


class KeeperLink(Peer):
    """The supervisor's connection to one keeper."""

    def __init__(self, sid: str, on_lines: Callable[[list[str]], None], on_lost: Callable[[], None]) -> None:
        super().__init__(f"keeper {sid}", self._pushed, on_lost)
        self.sid = sid
        self.hello: KeeperHello | None = None
        self._on_lines = on_lines

    def _pushed(self, message: dict[str, Any]) -> None:
        if message.get("push") == "events":
            self._on_lines(message.get("lines", []))

    async def open(self, path: Path, folder: tuple[int, int], epoch: int, budget: float) -> KeeperHello:
        """Connect and say hello to the keeper of this session folder (device, inode) within ``budget`` seconds.

        Raises OSError (nobody there), LinkLost, OpError (``stale_epoch``, ``identity``, ``foreign``).
        """
        sock = frames.connect(path, min(budget, 0.5))
        await self.attach(sock)
        reply = await self.call(
            "hello", wait=budget, role="supervisor", epoch=epoch, folder=folder, proto=frames.PROTOCOL
        )
        try:
            hello = msgspec.convert(reply, KeeperHello)
        except msgspec.ValidationError as exc:
            self.close()
            raise OpError("protocol", f"keeper {self.sid} answered a hello that is not understood: {exc}") from exc
        if hello.sid != self.sid:
            self.close()
            raise OpError("identity", f"the keeper at {path.name} says it keeps {hello.sid[:20]}")
        self.hello = hello
        return hello

    async def append(self, bodies: list[t.Body], cls: str) -> int:
        """Append records; returns the sequence number of the last one once they are durable as ``cls`` says."""
        reply = await self.call("append", records=[t.to_wire(b) for b in bodies], cls=cls)
        return int(reply["last"])

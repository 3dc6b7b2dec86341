"""The asyncio client of the supervisor: concurrent requests, one stream of pushes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from harness.protocol.client import Client, Unreachable, unreachable, yes
from harness.protocol.connection import frames
from harness.protocol.connection.aio import Asking
from harness.protocol.connection.exchange import Ended, Exchange
from harness.protocol.connection.struct_json import STRUCT_JSON
from harness.protocol.connection.transport import Transport


class AsyncClient:
    """One connection, made by `connect` or `take_over`."""

    def __init__(self, exchange: Exchange) -> None:
        self._pushes: asyncio.Queue[dict[str, object] | None] = asyncio.Queue()
        self._asking = Asking(self._pushes.put_nowait, lambda: self._pushes.put_nowait(None), exchange)
        self.hello: dict[str, object] = {}
        """The answer to our greeting."""

    @classmethod
    async def connect(cls, transport: Transport, *, name: str = "tui", patience: float = 5.0) -> AsyncClient:
        """Opening the stream and being greeted may each take ``patience`` seconds.

        Raises Unreachable (Mute when somebody listens and is silent), SupervisorError when the supervisor refuses.
        """
        try:
            # it may wait for a full backlog, so it is done beside the loop
            sock = await asyncio.to_thread(transport.open, patience)
        except OSError as exc:
            raise Unreachable(f"no supervisor answers at {transport}: {exc.strerror or exc}") from exc
        client = cls(Exchange(STRUCT_JSON))
        await client._asking.attach(sock)
        try:
            client.hello = await client.call("hello", patience, proto=frames.PROTOCOL, client=name)
        except BaseException:
            await client.close()
            raise
        return client

    @classmethod
    async def take_over(cls, other: Client) -> AsyncClient:
        """Go on with the connection of a blocking client, which must not be used any more."""
        sock, exchange, pushes = other.release()
        client = cls(exchange)
        client.hello = other.hello
        for push in pushes:
            client._pushes.put_nowait(push)
        await client._asking.attach(sock)
        return client

    async def call(self, op: str, within_s: float | None = None, /, **arguments: object) -> dict[str, object]:
        """Send one request and wait for its reply. Raises SupervisorError or Unreachable."""
        try:
            return yes(await self._asking.call(op, within_s, arguments))
        except Ended as exc:
            raise unreachable(exc, op) from exc

    async def pushes(self) -> AsyncIterator[dict[str, object]]:
        """Pushed messages until the connection ends."""
        while (message := await self._pushes.get()) is not None:
            yield message

    async def close(self) -> None:
        """Close after what waits has been sent; a peer that takes nothing is left after a moment."""
        wire = self._asking.wire
        wire.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                await wire.gone.wait()
        wire.abort()


_LAST_S = 1.0

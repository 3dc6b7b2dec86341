"""How long and how much a client of ours takes of an answer before anybody sees a word of it: its head, and a body that
the SDK reads whole. The HTTP layer knows a limit for each read, and none for their sum.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import httpx2

COMPRESSED = "compressed"
"""Of a response's extensions: how its body is encoded though none was asked for; it is read as it is."""
_STREAMS = frozenset(("text/event-stream", "application/octet-stream", "text/plain", ""))
"""Some servers give a stream no type, or a general one."""
_MOST_BYTES = 1 << 20
MOST_S = 15.0
_CONNECTED = (".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")


def streams(response: httpx2.Response) -> bool:
    """Whether its body may be a stream of events, by what it says of it."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower() in _STREAMS


class Bounded(httpx2.SyncByteStream):
    """A body that is read whole ends where it becomes too long: its status has said what matters."""

    def __init__(self, inner: httpx2.SyncByteStream) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        most = _MOST_BYTES
        until = time.monotonic() + MOST_S
        try:
            for chunk in self._inner:
                yield chunk[:most]
                most -= len(chunk)
                if most <= 0 or time.monotonic() > until:
                    return
        except httpx2.HTTPError:
            return

    def close(self) -> None:
        self._inner.close()


class Wire:
    """The connection of one client, which asks one thing at a time."""

    def __init__(self) -> None:
        self._stream: Any = None
        self._head_s: float | None = None

    def hooks(self) -> dict[str, list[Callable[..., object]]]:
        return {"request": [self._asked], "response": [self._answered]}

    def _asked(self, request: httpx2.Request) -> None:
        request.extensions["trace"] = self._traced
        self._head_s = request.extensions.get("timeout", {}).get("read")

    def _traced(self, name: str, info: Mapping[str, object]) -> None:
        if name.endswith(_CONNECTED):
            self._stream = info["return_value"]
        elif name.endswith(".receive_response_headers.started"):
            self._hurry()
        elif ".receive_response_headers." in name and self._stream is not None:
            self._stream.__dict__.pop("read", None)

    def _hurry(self) -> None:
        """No read of this answer's head lasts longer than what is left of the time for all of it."""
        if self._stream is None or self._head_s is None:
            return
        until = time.monotonic() + self._head_s
        read: Callable[[int, float], bytes] = self._stream.read

        def within(most: int, timeout: float | None = None) -> bytes:
            return read(most, max(0.001, until - time.monotonic()))

        self._stream.read = within

    def _answered(self, response: httpx2.Response) -> None:
        encoding = response.headers.pop("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            response.extensions[COMPRESSED] = encoding
        if response.is_success and response.request.url.path.endswith("/v1/messages") and streams(response):
            return  # a reply, which is taken event by event
        response.request.extensions.get("timeout", {})["read"] = MOST_S
        response.stream = Bounded(cast(httpx2.SyncByteStream, response.stream))

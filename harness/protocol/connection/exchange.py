"""The exchange on one framed connection, without any input or output: bytes in, messages out, and back.

Who asks holds an `Exchange`, who is asked an `Answering`. Requests carry ``id`` and ``op``, replies the same ``id``
with ``ok``, pushes carry ``push`` and no ``id``. Standard library only, so that every part can use it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from harness.protocol.connection import frames


class Codec(Protocol):
    """How messages are written as JSON, and read."""

    def encode(self, message: object) -> bytes:
        """One message as JSON in UTF-8."""

    def decode(self, body: bytes) -> dict[str, object]:
        """The object in a frame's body. Raises Garbage."""


class _StandardJson:
    """JSON of the standard library; lone surrogates become ``?``."""

    def encode(self, message: object) -> bytes:
        return frames.dump(message)

    def decode(self, body: bytes) -> dict[str, object]:
        return frames.parse(body)


JSON: Codec = _StandardJson()


class Ended(Exception):
    """The connection has ended, or must be ended: no reply to what was asked will come. The text is a predicate."""


class Closed(Ended):
    """The peer ended the stream."""

    def __init__(self) -> None:
        super().__init__("closed the connection")


class Broken(Ended):
    """The stream failed, or what came is no frame of ours; ``why`` is the reason alone."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the connection broke: {why}")
        self.why = why


class Silent(Ended):
    """The peer is there and did not answer in time."""

    def __init__(self, op: str, seconds: float) -> None:
        super().__init__(f"did not answer {op} within {seconds:.0f} s")


class Refusal(NamedTuple):
    """The error of a reply: ``code`` for programs, the texts for people."""

    code: str
    message: str
    hint: str = ""


def refusal(reply: Mapping[str, object], wordless: str) -> Refusal | None:
    """What a reply refuses, None when it is a yes; ``wordless`` is said for a peer that gives no reason."""
    if reply.get("ok"):
        return None
    error = reply.get("error")
    if not isinstance(error, dict):
        return Refusal("error", str(error or wordless))
    return Refusal(str(error.get("code", "error")), str(error.get("message", wordless)), str(error.get("hint", "")))


class Reply(NamedTuple):
    """The answer to one of our requests."""

    number: int
    message: dict[str, object]


class Push(NamedTuple):
    """Something the peer says unasked."""

    message: dict[str, object]


class Incoming(NamedTuple):
    """Something the peer wants; ``number`` is its id as it gave it, which may be anything."""

    number: object
    op: str
    message: dict[str, object]


class Exchange:
    """The asking side: numbers requests, and finds the reply to each among what comes."""

    def __init__(self, codec: Codec = JSON) -> None:
        self._codec = codec
        self._ids = itertools.count(1)
        self._open: set[int] = set()
        self._decoder = frames.Decoder()

    def request(self, op: str, arguments: Mapping[str, object]) -> tuple[int, bytes]:
        """The number of a new request and its frame. Raises Oversize; then nothing was asked."""
        number = next(self._ids)
        frame = frames.frame(self._codec.encode({"id": number, "op": op, **arguments}))
        self._open.add(number)
        return number, frame

    def forget(self, number: int) -> None:
        """Nobody waits for this reply any more; it is ignored when it comes."""
        self._open.discard(number)

    def take(self, data: bytes) -> Iterator[Reply | Push]:
        """What these bytes complete, in order; what answers no open request is left out.

        Iterate to the end. Raises Oversize and Garbage, after everything that came before.
        """
        for body in self._decoder.feed(data):
            message = self._codec.decode(body)
            if "push" in message:
                yield Push(message)
                continue
            number = message.get("id")
            if type(number) is int and number in self._open:
                self._open.remove(number)
                yield Reply(number, message)

    def end(self) -> None:
        """The stream has ended. Raises HalfFrame when that was inside a frame."""
        self._decoder.end()


class Answering:
    """The side that is asked: every message that comes is a request, whatever it lacks."""

    def __init__(self, codec: Codec = JSON) -> None:
        self._codec = codec
        self._decoder = frames.Decoder()

    def take(self, data: bytes) -> Iterator[Incoming]:
        """The requests that these bytes complete, in order. Raises Oversize and Garbage, after what came before."""
        for body in self._decoder.feed(data):
            message = self._codec.decode(body)
            yield Incoming(message.get("id"), str(message.get("op")), message)

    def reply(self, number: object, fields: object) -> bytes:
        """The frame of a yes: the members of an object, or of a record that the codec knows. Raises Oversize."""
        yes = self._codec.encode({"id": number, "ok": True})
        body = self._codec.encode(fields)
        return frames.frame(yes if body == b"{}" else yes[:-1] + b"," + body[1:])

    def refuse(self, number: object, error: Mapping[str, str]) -> bytes:
        """The frame of a no: ``code``, ``message`` and perhaps ``hint``."""
        return self._frame({"id": number, "ok": False, "error": error})

    def push(self, message: object) -> bytes:
        """The frame of something that nobody asked for. Raises Oversize."""
        return self._frame(message)

    def _frame(self, message: object) -> bytes:
        return frames.frame(self._codec.encode(message))

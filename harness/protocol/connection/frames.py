"""Frames on our unix sockets: a 4-byte big-endian length, then one JSON object in UTF-8. Standard library only.

Socket paths may be longer than the kernel's 107 bytes: bind and connect go through ``/proc/self/fd/<dirfd>/<name>``.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

MAX_FRAME = 8 * 1024 * 1024
PROTOCOL = 1
_HEAD = struct.Struct(">I")


def members(record: object) -> dict[str, object]:
    """The fields of a frozen record, as an object; one that says nothing (None) is left out."""
    names: tuple[str, ...] = type(record).__slots__  # type: ignore[attr-defined]
    return {name: value for name in names if (value := getattr(record, name)) is not None}


_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=members).encode
_read = json.JSONDecoder().decode


class FrameError(Exception):
    """The peer sent something that is no frame of ours; the connection must be closed."""


class Oversize(FrameError):
    """A frame is larger than `MAX_FRAME`."""


class Garbage(FrameError):
    """The body of a frame is no JSON object."""


class HalfFrame(FrameError):
    """The stream ended inside a frame."""


def encode(message: object) -> bytes:
    """One frame of a JSON-able object. Lone surrogates become ``?``."""
    return frame(dump(message))


def dump(message: object) -> bytes:
    """The body of a frame: JSON without spaces. Lone surrogates become ``?``."""
    return _write(message).encode("utf-8", "replace")


def frame(body: bytes) -> bytes:
    """One frame around already encoded JSON."""
    if len(body) > MAX_FRAME:
        raise Oversize(f"frame of {len(body)} bytes is over the limit of {MAX_FRAME}")
    return _HEAD.pack(len(body)) + body


class Decoder:
    """Incremental splitter of a byte stream into frame bodies."""

    __slots__ = ("_buf",)

    def __init__(self) -> None:
        self._buf = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._buf += data
        while len(self._buf) >= 4:
            (n,) = _HEAD.unpack_from(self._buf)
            if n > MAX_FRAME:
                raise Oversize(f"peer announced a frame of {n} bytes")
            if len(self._buf) < 4 + n:
                return
            body = bytes(self._buf[4 : 4 + n])
            del self._buf[: 4 + n]
            yield body

    def end(self) -> None:
        """The stream has ended. Raises HalfFrame when that was inside a frame."""
        if self._buf:
            raise HalfFrame("stream ended inside a frame")


def parse(body: bytes) -> dict[str, object]:
    """The JSON object in a frame body; anything else is Garbage."""
    try:
        value = _read(body.decode("utf-8", "surrogatepass"))
    except ValueError as exc:
        raise Garbage(f"frame is not JSON: {exc}") from exc
    except RecursionError as exc:
        raise Garbage("frame is nested too deeply") from exc
    if not isinstance(value, dict):
        raise Garbage("frame is not a JSON object")
    return value


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    fd = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{path.name}"
    finally:
        os.close(fd)


def listen(path: Path, backlog: int = 64) -> socket.socket:
    """A listening unix socket at ``path`` with mode 0600; an old file of that name is replaced."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    old = os.umask(0o177)
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        with _short(path) as name:
            sock.bind(name)
    except BaseException:
        sock.close()
        raise
    finally:
        os.umask(old)
    sock.listen(backlog)
    return sock


def connect(path: Path, timeout: float | None = 5.0) -> socket.socket:
    """A connected unix socket; raises OSError (FileNotFoundError, ConnectionRefusedError, TimeoutError)."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        sock.settimeout(timeout)
        with _short(path) as name:
            sock.connect(name)
    except BaseException:
        sock.close()
        raise
    return sock


def peer(sock: socket.socket) -> tuple[int, int, int]:
    """(pid, uid, gid) of the process at the other end (SO_PEERCRED)."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, gid = struct.unpack("3i", raw)
    return pid, uid, gid

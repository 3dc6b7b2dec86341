"""How a byte stream to a peer is opened: the one thing that differs between a socket here and a command elsewhere.

Standard library only.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import NamedTuple, Protocol

from harness.protocol.connection import frames


class Transport(Protocol):
    """Opens byte streams to one peer; its ``str`` is what people are told of where that is.

    A stream is a connected stream socket. What speaks through the standard input and output of a command gives the
    command one end of a socket pair for both and returns the other.
    """

    @property
    def local(self) -> bool:
        """True when the peer's files are ours too, so that they can be read without asking it."""

    def open(self, timeout: float) -> socket.socket:
        """A new stream. Raises OSError; TimeoutError when somebody is there and takes no connection."""


class UnixSocket(NamedTuple):
    """A socket in the file system of this machine."""

    path: Path

    @property
    def local(self) -> bool:
        return True

    def open(self, timeout: float) -> socket.socket:
        return frames.connect(self.path, timeout)

    def __str__(self) -> str:
        return str(self.path)

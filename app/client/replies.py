"""Replies of the supervisor as the records that they are: the one place where screen and command line decode them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import msgspec

from harness.protocol.client import SupervisorError

T = TypeVar("T")


class Asked(Protocol):
    """Whoever is asked, and answers at once."""

    def call(self, op: str, **arguments: object) -> Mapping[str, object]:
        """The reply. Raises SupervisorError, Unreachable."""


def ask(who: Asked, kind: type[T], op: str, **arguments: object) -> T:
    """The reply to one request, as what a reply to it is. Raises SupervisorError, Unreachable."""
    return read(kind, op, who.call(op, **arguments))


def read(kind: type[T], op: str, reply: Mapping[str, object]) -> T:
    """A reply as the record that it is; one that is not is refused as any other. Raises SupervisorError."""
    try:
        return msgspec.convert(reply, kind)
    except msgspec.ValidationError as exc:
        raise SupervisorError("bad_reply", f"the supervisor's answer to {op!r} cannot be read: {exc}") from exc

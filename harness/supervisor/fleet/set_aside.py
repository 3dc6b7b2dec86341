"""A stop that the log cannot take, since it is damaged: kept in a file beside it, so that the session stays stopped."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from harness.eventlog.framing import BadLine
from harness.eventlog.regular_files import opened
from harness.linux import durable
from harness.protocol.paths import SessionFolder

NAME = "stopped.json"


class Aside(msgspec.Struct, frozen=True):
    """When and why a session was set aside."""

    ts: str
    reason: str = ""


def read(folder: SessionFolder) -> Aside | None:
    """None when it was not set aside. What cannot be read counts as a stop: nothing of it must start by a mistake."""
    try:
        with opened(folder.root / NAME) as file:
            return msgspec.json.decode(file.read(), type=Aside)
    except FileNotFoundError:
        return None
    except (OSError, BadLine, msgspec.DecodeError):
        return Aside("", "stopped by you")


def write(folder: SessionFolder, reason: str) -> Aside:
    """Durably (blocking). Raises OSError."""
    aside = Aside(
        datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"), reason or "stopped by you"
    )
    durable.write_file(folder.root / NAME, msgspec.json.encode(aside))
    return aside

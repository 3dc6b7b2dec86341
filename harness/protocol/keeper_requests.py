"""What any process of ours may ask of a keeper, and what it answers. What only its supervisor may ask stands in
`harness.keeper.loop.requests`. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.protocol.connection import frames
from harness.protocol.connection.op import BadArgument, Op

CLASSES = ("A", "B", "C")
"""How durable records are when the answer comes: synced, synced with those of others, or only written."""


@dataclass(frozen=True, slots=True)
class KeeperHello:
    """A keeper's identity, and where its log ends."""

    sid: str
    pid: int
    start: int
    boot: str
    head: int
    hash: str = ""
    poisoned: str = ""
    """Why it writes no more; empty while it does."""
    epoch: int = 0
    gen: int = 0
    running: tuple[str, ...] = ()
    folder: tuple[int, int] | None = None
    """Device and inode of its session's folder."""


@dataclass(frozen=True, slots=True)
class SupervisorHello(Op[KeeperHello]):
    """A supervisor's first frame. ``folder`` is the session's folder as it sees it; with ``keeps`` it is told before
    the keeper ends.
    """

    OP = "hello"
    epoch: int
    folder: tuple[int, ...] | None = None
    keeps: bool = False
    role: str = "supervisor"
    proto: int = frames.PROTOCOL


@dataclass(frozen=True, slots=True)
class BrainHello(Op[KeeperHello]):
    """An agent's first frame, under the secret of its lease."""

    OP = "hello"
    gen: int
    secret: str
    role: str = "brain"
    proto: int = frames.PROTOCOL


@dataclass(frozen=True, slots=True)
class ViewerHello(Op[KeeperHello]):
    """The first frame of a process that only reads."""

    OP = "hello"
    role: str = "viewer"
    proto: int = frames.PROTOCOL


@dataclass(frozen=True, slots=True)
class NewRecord:
    """One that is to be appended: a text, and an object or what the codec makes one of, once it was looked at."""

    type: object
    data: object


_NONE = NewRecord(None, None)


def _records(value: object) -> tuple[NewRecord, ...]:
    if not isinstance(value, list) or not value:
        raise BadArgument("records must be a list of at least one {type, data}")
    return tuple([NewRecord(item.get("type"), item.get("data")) if isinstance(item, dict) else _NONE for item in value])


def _class(value: object) -> str:
    if value not in CLASSES:
        raise BadArgument(f"durability class {str(value)[:40]!r} is not A, B or C")
    return str(value)


@dataclass(frozen=True, slots=True)
class Appended:
    """Numbers of the first and the last record, and the log's hash after them."""

    first: int
    last: int
    hash: str = ""


@dataclass(frozen=True, slots=True)
class Append(Op[Appended]):
    """Append records as one batch, all or none. ``expect`` is the head of the log that they were made for."""

    OP = "append"
    records: tuple[NewRecord, ...] = field(metadata={"read": _records})
    cls: str = field(default="A", metadata={"read": _class})
    expect: object = None


@dataclass(frozen=True, slots=True)
class Stored:
    """Name and size of a stored payload."""

    sha: str
    bytes: int


@dataclass(frozen=True, slots=True)
class PutBlob(Op[Stored]):
    """Store a payload, given in base64, that records will name."""

    OP = "blob"
    data: str


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The newest record at the beginning of the feed."""

    head: int


@dataclass(frozen=True, slots=True)
class Subscribe(Op[Subscribed]):
    """Push the log from behind record ``after`` on; -1 for all of it."""

    OP = "subscribe"
    after: int


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """What a living keeper waits for, in words: its snapshot store, or means for a call."""

    waits: str | None = None
    lacks: str | None = None


@dataclass(frozen=True, slots=True)
class Ping(Op[WaitsFor]):
    """Ask whether the keeper answers, and what it waits for."""

    OP = "ping"


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Memory of a keeper's process in bytes, by the kernel's names."""

    pss: int = 0
    rss: int = 0
    private_dirty: int = 0


@dataclass(frozen=True, slots=True)
class KeeperSizes:
    """Size of a keeper's log and process."""

    head: int
    connections: int
    memory: ProcessMemory


@dataclass(frozen=True, slots=True)
class Stats(Op[KeeperSizes]):
    """How much memory the keeper takes, and how many connections it has."""

    OP = "stats"


def lines_of(push: Mapping[str, object]) -> list[str]:
    """The lines of the log in a push of a feed."""
    lines = push.get("lines")
    return lines if isinstance(lines, list) else []

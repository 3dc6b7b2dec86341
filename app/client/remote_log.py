"""A log read through the supervisor's socket, for a screen that does not see its disk: pieces are asked for when they
are wanted, and a bounded number of bytes is kept.
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from itertools import islice

from app.client.replies import read
from harness.eventlog.blobs import DamagedBlob
from harness.eventlog.framing import LogError
from harness.protocol.client import SupervisorError, Unreachable
from harness.views.replies import LogPiece, PayloadPiece

PIECE_BYTES = 256 * 1024
"""Of one reply: what the loop takes in at once."""
KEPT_BYTES = 16 << 20
_WANTED = 8
"""So many places of the log are fetched one after the other; older wishes are those of a screen that moved on."""
_ENDED = frozenset({"gone", "not_found"})

Ask = Callable[..., Awaitable[Mapping[str, object]]]


async def payload(ask: Ask, sid: str, sha: str) -> bytes:
    """The payload of this SHA-256, checked. Raises SupervisorError, Unreachable, DamagedBlob."""
    data = bytearray()
    while True:
        part = read(PayloadPiece, "blob", await ask("blob", sid=sid, sha=sha, offset=len(data), most=PIECE_BYTES))
        piece = base64.b64decode(part.data)
        data += piece
        if not piece or len(data) >= part.bytes:
            break
    if sha256(data).hexdigest() != sha:
        raise DamagedBlob(f"payload {sha} came damaged: its bytes do not have the hash of its name")
    return bytes(data)


class AskedIndex:
    """The records of one session by position. ``ask`` sends one request; ``came`` is called when there is news, on the
    loop that everything here runs on.
    """

    def __init__(self, sid: str, ask: Ask, came: Callable[[], None], *, kept_bytes: int = KEPT_BYTES) -> None:
        self._sid = sid
        self._ask = ask
        self._came = came
        self._most = kept_bytes
        self._lines: dict[int, bytes] = {}
        """In the order in which they came."""
        self._bytes = 0
        self._count = 0
        self._told = 0
        """How many records `extend` spoke of."""
        self._news = False
        self._end = ""
        """Why there will be no more, when that is known."""
        self._wanted: deque[tuple[int, int]] = deque(maxlen=_WANTED)
        self._look = True
        self._task: asyncio.Task[None] | None = None
        self._go()

    @property
    def home(self) -> None:
        """What lies beside the log is asked for by itself."""

    def __len__(self) -> int:
        return self._told

    def close(self) -> None:
        self._wanted.clear()
        self._lines.clear()
        if self._task is not None:
            self._task.cancel()

    def extend(self) -> int:
        """Records that came since the last call, negative when the writer took some back; what follows is asked for.

        Raises LogError when there is no such log any more.
        """
        if self._end:
            raise LogError(self._end)
        added = self._count - self._told
        self._told = self._count
        self._look = True  # also while it is being asked: the answer may be older than what this is about
        self._go()
        return added

    def arrived(self) -> bool:
        """True when records came since the last call that `has` had denied."""
        news = self._news
        self._news = False
        return news

    def has(self, first: int, stop: int) -> bool:
        """True when these are here; what is not is asked for."""
        missing = next((seq for seq in range(max(first, 0), min(stop, self._told)) if seq not in self._lines), None)
        if missing is None:
            return True
        if (first, stop) not in self._wanted:
            self._wanted.append((first, stop))
        self._go()
        return False

    def line(self, i: int) -> bytes:
        """The raw record; empty for one that is damaged or not here yet. Raises IndexError."""
        if not 0 <= i < self._told:
            raise IndexError(i)
        return self._lines.get(i, b"")

    def lines(self, first: int, stop: int) -> list[bytes]:
        """Raw records in order; empty where one is damaged or not here yet."""
        return [self._lines.get(seq, b"") for seq in range(max(first, 0), min(stop, self._told))]

    # -- asking ------------------------------------------------------------------------------------

    @property
    def _busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def _go(self) -> None:
        if not self._busy and not self._end:
            self._task = asyncio.get_running_loop().create_task(self._fetch(), name=f"records of {self._sid}")

    async def _fetch(self) -> None:
        """Fetch until nothing is wanted: who is told that records came may want more at once."""
        while not self._end and (self._look or self._wanted):
            await self._fetch_wanted()

    async def _fetch_wanted(self) -> None:
        """Ask for the end, then for what is wanted, the newest wish first; a connection that fails ends it until it is
        asked again.
        """
        before = self._count
        found = False
        try:
            while self._look or self._wanted:
                if self._look:
                    self._look = False
                    await self._piece(self._count)
                    continue
                first, stop = self._wanted[-1]
                missing = next((seq for seq in range(first, min(stop, self._count)) if seq not in self._lines), None)
                if missing is None:
                    self._wanted.pop()
                    continue
                found = True
                await self._piece(missing)
        except Unreachable:
            self._wanted.clear()
        except SupervisorError as exc:
            self._wanted.clear()
            if exc.code in _ENDED:
                self._end = str(exc)
        if found or self._count != before or self._end:
            self._news = self._news or found
            self._came()

    async def _piece(self, seq: int) -> None:
        try:
            reply = await self._ask("read", sid=self._sid, from_seq=seq, most_bytes=PIECE_BYTES)
            piece = read(LogPiece, "read", reply)
        except SupervisorError as exc:
            if exc.code != "damaged" or seq >= self._count:
                raise
            self._keep(seq, b"")  # shown as what it is; the records after it are asked for by themselves
            return
        lines = [line.encode() for line in piece.lines]
        self._count = piece.head + 1
        for gone in [kept for kept in self._lines if kept >= self._count]:
            self._bytes -= len(self._lines.pop(gone))
        for at, line in enumerate(lines, seq):
            self._keep(at, line)
        if not lines and seq < self._count:
            self._keep(seq, b"")
        self._shed(seq, seq + len(lines))

    def _keep(self, seq: int, line: bytes) -> None:
        self._bytes += len(line) - len(self._lines.pop(seq, b""))
        self._lines[seq] = line

    def _shed(self, first: int, stop: int) -> None:
        """Forget what came longest ago, but nothing that came just now or is being fetched."""
        wanted = self._wanted[-1] if self._wanted else (first, stop)
        over = self._bytes - self._most
        for seq in list(islice(self._lines, len(self._lines) if over > 0 else 0)):
            if over <= 0:
                return
            if not (first <= seq < stop or wanted[0] <= seq < wanted[1]):
                size = len(self._lines.pop(seq))
                self._bytes -= size
                over -= size

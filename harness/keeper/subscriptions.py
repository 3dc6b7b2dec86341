"""Giving the log to subscribers: history from the files, then live lines from each commit. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Iterable

from harness.eventlog.framing import seq_of
from harness.keeper.log.appender import Appender
from harness.keeper.loop.connection import PAUSE_BYTES, QUEUE_BYTES, Conn
from harness.keeper.loop.errors import OpError
from harness.protocol.connection import frames

PUSH_BYTES = 512 * 1024
_AHEAD_BYTES = 512 * 1024
_POLL_BYTES = 256 * 1024


class Feeds:
    """The subscribers of one journal.

    A slow one never holds up anybody: history is read at its pace, live lines are bounded by its queue.
    """

    def __init__(self, journal: Appender) -> None:
        self._journal = journal
        self._live: set[Conn] = set()
        self._history: set[Conn] = set()

    def subscribe(self, conn: Conn, after: int) -> None:
        """Start (or restart) the feed after a record. Raises OpError when the log does not reach that far."""
        journal = self._journal
        if after > journal.written or after < -1:
            raise OpError(
                "conflict", f"the log ends at record {journal.written}, there is no record {after} to go on from"
            )
        self.drop(conn)
        conn.feed_head = after
        recent = journal.recent(after)
        if recent is None:
            self._from_files(conn, after)
            return
        self._live.add(conn)
        for frame in pushes([line for _, line in recent], journal.written):
            conn.send_frame(frame)
        conn.feed_head = journal.written

    def _from_files(self, conn: Conn, after: int) -> None:
        self.drop(conn)
        conn.tail = self._journal.tail(after)
        self._history.add(conn)

    def drop(self, conn: Conn) -> None:
        self._live.discard(conn)
        self._history.discard(conn)
        if conn.tail is not None:
            conn.tail.close()
            conn.tail = None

    def publish(self, fresh: list[tuple[int, bytes]]) -> None:
        """Queue newly committed lines for every live subscriber; encoded once."""
        if not fresh or not self._live:
            return
        ready = list(pushes([line for _, line in fresh], fresh[-1][0]))
        large = sum(len(frame) for frame in ready) > QUEUE_BYTES - PAUSE_BYTES
        for conn in list(self._live):
            if large and conn.out_bytes < PAUSE_BYTES:
                # One commit that is larger than the queue is no fault of a reader that keeps up: it gets it from the
                # files.
                self._from_files(conn, conn.feed_head)
                continue
            for frame in ready:
                conn.send_frame(frame)
            conn.feed_head = fresh[-1][0]

    def hungry(self) -> bool:
        """True when somebody who waits for history has room for more; who has none is woken by his socket."""
        return any(conn.out_bytes < _AHEAD_BYTES for conn in self._history)

    def pump(self) -> None:
        """Read more history for those who have room."""
        for conn in list(self._history):
            if conn.closing or conn.closed or conn.tail is None:
                self.drop(conn)
                continue
            if conn.out_bytes >= _AHEAD_BYTES:
                continue
            lines = conn.tail.poll(_POLL_BYTES)
            for frame in pushes(lines, self._journal.written):
                conn.send_frame(frame)
            if lines:
                conn.feed_head = seq_of(lines[-1])
            if conn.feed_head >= self._journal.written:
                self.drop(conn)
                self._live.add(conn)


def pushes(lines: Iterable[bytes], head: int) -> Iterable[bytes]:
    """Lines of a log as framed pushes of bounded size; ``head`` is the newest record that each of them tells of."""
    batch: list[str] = []
    size = 0
    for line in lines:
        batch.append(line.decode("utf-8", "replace"))
        size += len(line)
        if size >= PUSH_BYTES:
            yield _push(batch, head)
            batch = []
            size = 0
    if batch:
        yield _push(batch, head)


def _push(lines: list[str], head: int) -> bytes:
    return frames.frame(
        json.dumps({"push": "events", "lines": lines, "head": head}, ensure_ascii=False, separators=(",", ":")).encode()
    )

"""The process's hold on its session: the log read from disk and followed through the keeper, folded, and handed on
record by record; records and blobs appended.
"""

from __future__ import annotations

import base64
import contextlib
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.agents.errors import Conflict, Fenced, Lost, NoSupervisor, Refused
from harness.agents.peer import Link
from harness.eventlog import blobs, reader
from harness.eventlog.framing import BadLine, check_line, hash_of
from harness.eventlog.index import OffsetIndex
from harness.events import types as t
from harness.projections import apply, state_snapshots
from harness.projections.state.session_state import SessionState
from harness.protocol.keeper_requests import Append, BrainHello, NewRecord, PutBlob, Subscribe, lines_of

_LEASE_S = 10.0
_STEP = 1 << 20
_EARLY = ("stale_lease", "conflict")  # our lease, or the lines that we read on disk, are not with the keeper yet
_APPEND_S = 120.0
_SPACE_RETRY_S = 5.0
_FENCING = frozenset(("stale_lease", "poisoned", "stale_epoch"))


class Journal:
    """First `load`, then `join`.

    ``following`` is false when the log cannot be understood: then records can only be appended, blindly.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log"
        self._blobs = folder / "blobs"
        self._memory = folder / "memory"
        self._line = b""
        self._link: Link | None = None
        self.state = SessionState()
        self.on_record: Callable[[t.Record], None] = _nobody
        """Who is told of each record, once it is folded."""
        self.following = True

    def load(self, form: str = "", recall: Callable[[bytes], bool] | None = None) -> None:
        """Fold the log on disk; with the ``form`` of what may have been remembered of it, only what stands behind that.

        Raises LogError, DecodeError, or what ``on_record`` raises, when it cannot be read or understood.
        """
        known = state_snapshots.load(self._memory, self._log, form) if form and recall is not None else None
        after = -1
        if known is not None and recall is not None:
            apply.become(self.state, known.state)
            if recall(known.more):
                after = known.seq
            else:
                apply.become(self.state, SessionState())
        for line in reader.read(self._log) if known is None or after < 0 else self._behind(known):
            self._fold(t.decode(line), line)

    def _behind(self, known: state_snapshots.Snapshot) -> Iterator[bytes]:
        """Verified lines behind a snapshot, without reading what stands before it in its segment."""
        chain = bytes.fromhex(known.hash)
        at = known.seq + 1
        index = OffsetIndex(self._log)
        try:
            while at < len(index):
                lines, following = index.scan(at, _STEP)
                for line in lines:
                    chain = check_line(line + b"\n", chain)
                    yield line
                    at += 1
                at = following
        except BadLine:  # the next segment begins here, or damage, which the reader names
            yield from reader.read(self._log, at - 1)
        finally:
            index.close()

    def remember(self, form: str, known: bytes) -> None:
        """Keep the fold and what the agent knows at the record being folded; without room on the disk, keep nothing."""
        try:
            data = state_snapshots.encode(self.state, hash_of(self._line).hex(), form, known)
            state_snapshots.store(self._memory, self.head, data)
        except OSError as exc:
            print(f"brain: what is known at record {self.head} is not kept: {exc}", file=sys.stderr, flush=True)

    @property
    def link(self) -> Link:
        if self._link is None:
            raise Lost("keeper: not connected")
        return self._link

    def join(self, keeper: Path, gen: int, secret: str) -> None:
        """Become the keeper's brain and follow the log from here on. Raises Fenced when the lease is not ours, Lost
        when no keeper answers.

        A brain is forked before its lease can be granted to it, so an early refusal is no last word.
        """
        deadline = time.monotonic() + _LEASE_S
        pause = 0.005
        while True:
            link = Link(keeper, "keeper", Lost)
            try:
                link.ask(BrainHello(gen, secret))
                if self.following:
                    link.ask(Subscribe(self.head))
                self._link = link
                break
            except Refused as exc:
                link.close()
                if exc.code not in _EARLY or self.state.lease_gen > gen or time.monotonic() > deadline:
                    raise Fenced(f"the keeper refused this brain: {exc}") from exc
            time.sleep(pause)
            pause = min(0.1, pause * 2)
        while self.following and self.state.lease_gen < gen:  # decide nothing before our own lease is in view
            self.follow(deadline - time.monotonic())
            if time.monotonic() > deadline:
                raise Lost(f"keeper: the lease {gen} was granted but never pushed")

    @property
    def head(self) -> int:
        return self.state.seq

    def _fold(self, record: t.Record, line: bytes) -> None:
        self._line = line
        apply.advance(self.state, record)
        self.on_record(record)

    def read_blob(self, ref: t.BlobRef) -> bytes:
        """A payload that fits its name. Raises OSError, ValueError."""
        return blobs.get(self._blobs, ref.sha)

    def _take(self) -> bool:
        moved = False
        while self.link.pushes:
            message = self.link.pushes.popleft()
            if message.get("push") != "events":
                continue
            for line in lines_of(message):
                raw = str(line).encode()
                record = t.decode(raw)
                if record.seq <= self.head:
                    continue
                if record.seq != self.head + 1:
                    raise Lost(f"keeper: record {self.head + 1} was left out")
                self._fold(record, raw)
                moved = True
        return moved

    def follow(self, wait_s: float, other: Link | None = None) -> bool:
        """Fold what the keeper pushed, waiting up to ``wait_s`` seconds; True when the log moved.

        Returns early when ``other`` has something to say (its end included). Raises Lost.
        """
        if self._take():
            return True
        watched = [self.link.fileno()] + ([other.fileno()] if other is not None and other.alive else [])
        ready = select.select(watched, (), (), max(0.0, wait_s))[0]
        if self.link.fileno() in ready:
            self.link.read(0.0)
        if other is not None and other.alive and other.fileno() in ready:
            with contextlib.suppress(NoSupervisor):  # the link remembers that it is closed; who needs it connects again
                other.read(0.0)
        return self._take()

    def append(self, bodies: Sequence[t.Body], *, expect: int | None = None, cls: str = "A") -> int:
        """Append durably and fold; the seq of the last record. A full disk is waited for.

        Raises Conflict when ``expect`` is not the head, Fenced when this brain may not write any more, Lost, Refused.
        """
        wanted = Append(tuple(NewRecord(body.TYPE, body) for body in bodies), cls, expect)
        while True:
            try:
                last = self.link.ask(wanted, _APPEND_S).last
                break
            except Refused as exc:
                if exc.code in _FENCING:
                    raise Fenced(str(exc)) from exc
                if exc.code == "conflict":
                    raise Conflict(exc.code, str(exc)) from exc
                if exc.code != "no_space":
                    raise
            self.follow(_SPACE_RETRY_S)
        deadline = time.monotonic() + _APPEND_S
        while self.following and self.head < last:
            self.follow(deadline - time.monotonic())
            if time.monotonic() > deadline:
                raise Lost(f"keeper: record {last} was appended but never pushed")
        return last

    def put_blob(self, data: bytes, media: str) -> t.BlobRef:
        """Store a payload durably. Raises Fenced, Lost, Refused; a full disk is waited for."""
        text = base64.b64encode(data).decode()
        while True:
            try:
                stored = self.link.ask(PutBlob(text), _APPEND_S)
                return t.BlobRef(stored.sha, stored.bytes, media)
            except Refused as exc:
                if exc.code in _FENCING:
                    raise Fenced(str(exc)) from exc
                if exc.code != "no_space":
                    raise
            self.follow(_SPACE_RETRY_S)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()


def _nobody(_record: t.Record) -> None:
    return None

"""The only writer of a log: open or recover, append, commit, seal. Standard library only, no threads, no clock but the
wall's.

A batch is one ``write``; what was not written whole is cut back before anything else happens; a failed fsync poisons
the writer for good, because the kernel may have dropped the pages and a second fsync would claim success.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from harness.eventlog import head_marker, recovery
from harness.eventlog.framing import (
    GENESIS,
    MAX_LINE,
    LogError,
    encode_data,
    encode_event,
    encode_footer,
    encode_header,
)
from harness.eventlog.reader import DamagedLog, Place, missing, segment_name, segments
from harness.linux.durable import sync_folder

SEGMENT_BYTES = 64 * 1024 * 1024
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_TEMPORARY = ".tmp"


class NoSpace(LogError):
    """The disk (or quota) is full: the batch was cut back, nothing of it is in the log; it may be appended again
    later. ``what`` is the message without what to do about it.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; free some space, then try again")
        self.what = what


class Poisoned(LogError):
    """A write or fsync failed in a way that leaves the disk's content unknown; this writer refuses everything from now
    on.
    """


class LogBusy(LogError):
    """Another process holds the log for writing."""


class _Clock:
    """RFC 3339 UTC with milliseconds; the part up to the second is formatted once a second."""

    __slots__ = ("_prefix", "_second")

    def __init__(self) -> None:
        self._second = -1
        self._prefix = ""

    def now(self) -> str:
        ms = time.time_ns() // 1_000_000
        second, rest = divmod(ms, 1000)
        if second != self._second:
            self._second = second
            self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._prefix}.{rest:03d}Z"


class LogWriter:
    """Appends to the log in one folder. Not thread-safe; at most one per log (held by a lock on the folder)."""

    def __init__(self, folder: Path, sid: str, segment_bytes: int, folder_fd: int) -> None:
        """Use `open`."""
        self.recovery: recovery.Recovery | None = None
        self._folder = folder
        self._sid = sid
        self._segment_bytes = segment_bytes
        self._folder_fd = folder_fd
        self._fd = -1
        self._number = 0
        self._size = 0
        self._first = 0
        # (seq of the last record, its hash, hash of the last line): a header or footer moves only the last.
        self._durable: tuple[int, bytes, bytes] = (-1, GENESIS, GENESIS)
        self._head, self._hash, self._chain = self._durable
        self._pending: list[bytes] = []
        self._unsynced = False
        self._anchor = head_marker.Anchor(folder_fd)
        self._to_note: head_marker.Head | None = None
        self.taken_leave = False
        """True when whoever wrote the log before us closed it after its last record; False after a kill, a crash or a
        power cut.
        """
        self._poison = ""
        self._clock = _Clock()

    @classmethod
    def open(
        cls,
        dir: Path,  # noqa: A002 - the contract's name
        sid: str,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        take: Callable[[bytes], None] | None = None,
        after: Place | None = None,
    ) -> LogWriter:
        """Create the log, or verify its last segment and cut a torn tail (see `recovery`).

        With ``take`` the whole log is verified and each event line (with its line feed) handed to it, or only what is
        behind ``after``, a record that `reader.stands`. What ``take`` raises is passed on; the log is unchanged then.
        Raises DamagedLog, NewerLog, LogBusy, NoSpace, and OSError when the folder cannot be used.
        """
        existed = dir.exists()
        dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not existed:
            sync_folder(dir.parent)
        folder_fd = os.open(dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        log = cls(dir, sid, segment_bytes, folder_fd)
        try:
            try:
                fcntl.flock(folder_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise LogBusy(f"log {dir} is open for writing in another process") from exc
            log._recover(take, after)
        except OSError as exc:
            log._release()
            if exc.errno in _FULL:
                raise NoSpace(f"log {dir} cannot be opened: {exc.strerror}") from exc
            raise
        except BaseException:
            log._release()
            raise
        return log

    @property
    def head(self) -> int:
        """``seq`` of the last appended record, pending ones included; -1 if none."""
        return self._head

    @property
    def hash(self) -> str:
        """Chain hash (hex) of the record `head`; zeros if none."""
        return self._hash.hex()

    @property
    def written(self) -> int:
        """``seq`` of the last record that is in the file."""
        return self._durable[0]

    @property
    def segment(self) -> int:
        return self._number

    @property
    def size(self) -> int:
        """Bytes of the current segment."""
        return self._size

    @property
    def first(self) -> int:
        """``seq`` of the first record of the current segment."""
        return self._first

    @property
    def poisoned(self) -> str:
        """Why this writer refuses to go on, or empty."""
        return self._poison

    def append(self, kind: str, data: dict[str, object], *, actor: str, gen: int = 0) -> int:
        """Frame one record into the pending batch and return its ``seq``; nothing is written before `commit`.

        Raises ValueError when the record is over 1 MiB or not JSON (the log is unchanged), Poisoned.
        """
        self._refuse_poisoned()
        seq = self._head + 1
        line, chain = encode_event(seq, self._clock.now(), kind, actor, gen, encode_data(data), self._chain)
        if len(line) > MAX_LINE:
            raise ValueError(
                f"record of {len(line)} bytes is over the limit of {MAX_LINE}; put the payload into a blob"
            )
        self._pending.append(line)
        self._head = seq
        self._hash = chain
        self._chain = chain
        return seq

    def commit(self, sync: bool, *, note: bool = True) -> list[bytes]:
        """Write the batch; with ``sync`` everything written so far is on the disk when this returns. The lines of the
        batch, with their line feeds.

        Without ``note`` the anchor beside the log lags until `note`, so that whoever waits is told first. Raises
        NoSpace (batch dropped, the log as before it), Poisoned. What is in the log by then is never refused: trouble
        with the segment after it shows in `poisoned` and at the next call.
        """
        self._refuse_poisoned()
        lines = self._pending
        if lines:
            self._write(b"".join(lines))
            self._pending = []
            self._durable = (self._head, self._hash, self._chain)
            self._unsynced = True
        if sync and self._unsynced:
            self._sync(self._fd)
            self._unsynced = False
            self._to_note = head_marker.Head(self._head, self._hash, False) if self._head >= 0 else None
        if sync and note:
            self.note()
        if self._size >= self._segment_bytes:
            with contextlib.suppress(Poisoned):
                self._seal()
        return lines

    def note(self) -> None:
        """Keep beside the log what the newest sync reached, unless that is done."""
        if self._to_note is not None:
            self._anchor.put(self._to_note)
            self._to_note = None

    def close(self) -> None:
        """Drop what is pending and let go of the log; everything committed is flushed first unless poisoned.

        Raises Poisoned.
        """
        try:
            if self._fd >= 0 and not self._poison:
                if self._unsynced:
                    self._sync(self._fd)
                    self._unsynced = False
                self._note_head(closed=True)
        finally:
            self._rewind()
            self._release()

    # -- writing -----------------------------------------------------------------------------------

    def _refuse_poisoned(self) -> None:
        if self._poison:
            raise Poisoned(self._poison)
        if self._fd < 0:
            raise Poisoned(f"log {self._folder} is closed")

    def _rewind(self) -> None:
        self._pending.clear()
        self._head, self._hash, self._chain = self._durable

    def _poisoned_by(self, what: str, exc: OSError) -> Poisoned:
        self._rewind()
        self._poison = (
            f"{what} of {self._folder / segment_name(self._number)} failed: {exc.strerror or exc}; nothing is appended"
            " any more, check the disk"
        )
        return Poisoned(self._poison)

    def _write(self, data: bytes) -> None:
        """One write at the end of the segment, or none: a short one is cut back."""
        try:
            done = os.write(self._fd, data)
            if done == len(data):
                self._size += done
                return
            why = f"only {done} of {len(data)} bytes fitted"
        except OSError as exc:
            if exc.errno not in _FULL:
                raise self._poisoned_by("writing", exc) from exc
            why = exc.strerror or str(exc)
        try:
            os.ftruncate(self._fd, self._size)
        except OSError as exc:
            raise self._poisoned_by("cutting back", exc) from exc
        self._rewind()
        raise NoSpace(f"log {self._folder / segment_name(self._number)} cannot grow: {why}")

    def _sync(self, fd: int) -> None:
        try:
            os.fdatasync(fd)
        except OSError as exc:
            raise self._poisoned_by("fdatasync", exc) from exc

    def _note_head(self, *, closed: bool = False) -> None:
        """Keep beside the log how far it reaches; only after a sync, so that this is never ahead of the disk."""
        seq, chain, _ = self._durable
        self._to_note = None
        if seq >= 0:
            self._anchor.put(head_marker.Head(seq, chain, closed))

    def _seal(self) -> None:
        """Close the segment with a footer and go on in a new one. Without room for it the segment simply stays open."""
        last, _, chain = self._durable
        footer, sealed = encode_footer(last - self._first + 1, last, chain)
        try:
            fresh = self._prepare(self._number + 1, sealed, last + 1)
        except OSError as exc:
            if exc.errno in _FULL:
                return
            raise self._poisoned_by("preparing the segment after", exc) from exc
        try:
            self._write(footer)
            self._sync(self._fd)
            self._unsynced = False
            self._note_head()
            self._publish(self._number + 1)
        except NoSpace:
            os.close(fresh)
            return
        except Poisoned:
            os.close(fresh)
            raise
        except OSError as exc:
            os.close(fresh)
            raise self._poisoned_by("naming the segment after", exc) from exc
        self._adopt(fresh, self._number + 1, last + 1)

    def _prepare(self, number: int, prev: bytes, first: int) -> int:
        """A synced new segment under a temporary name: under its real name a segment always has its header."""
        name = segment_name(number) + _TEMPORARY
        fd = os.open(
            name, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600, dir_fd=self._folder_fd
        )
        try:
            header, chain = encode_header(number, self._sid, prev, first)
            if os.write(fd, header) != len(header):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(fd)
        except BaseException:
            os.close(fd)
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=self._folder_fd)
            raise
        self._next_chain = chain
        return fd

    def _publish(self, number: int) -> None:
        name = segment_name(number)
        os.rename(name + _TEMPORARY, name, src_dir_fd=self._folder_fd, dst_dir_fd=self._folder_fd)
        os.fsync(self._folder_fd)

    def _adopt(self, fd: int, number: int, first: int) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd
        self._number = number
        self._first = first
        self._size = os.fstat(fd).st_size
        self._head = first - 1
        self._chain = self._next_chain
        self._durable = (self._head, self._hash, self._chain)

    def _release(self) -> None:
        self._anchor.close()
        for fd in (self._fd, self._folder_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = -1
        self._folder_fd = -1

    # -- opening -----------------------------------------------------------------------------------

    def _recover(self, take: Callable[[bytes], None] | None, after: Place | None) -> None:
        for name in os.listdir(self._folder_fd):
            if name.endswith(_TEMPORARY):
                os.unlink(name, dir_fd=self._folder_fd)
        known = head_marker.load(self._folder)
        numbers = segments(self._folder)
        if not numbers:
            if known is not None:
                raise missing(self._folder, known)
            self._begin(1, GENESIS, 0)
            return
        number = numbers[-1]
        if take is None:
            scan = recovery.last_segment(self._folder, self._sid, number, known)
        else:
            scan = recovery.every_segment(self._folder, self._sid, numbers, known, take, after)
        path = scan.path
        self.taken_leave = known is not None and known.closed and known.seq == scan.head
        self._unsynced = True  # what a killed writer left may still be in memory only
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        if scan.torn:
            self.recovery = recovery.cut(path, self._folder_fd, self._fd, scan.offset)
        self._number = number
        self._first = scan.first
        self._size = scan.offset
        if not scan.offset:
            header, self._chain = encode_header(number, self._sid, scan.chain, scan.first)
            self._write(header)
            os.fsync(self._fd)
        else:
            self._chain = scan.chain
        self._head = scan.head
        self._hash = scan.hash
        self._durable = (self._head, self._hash, self._chain)
        if scan.sealed:
            self._begin(number + 1, scan.chain, scan.head + 1)

    def _begin(self, number: int, prev: bytes, first: int) -> None:
        fd = self._prepare(number, prev, first)
        self._publish(number)
        self._adopt(fd, number, first)


__all__ = ["SEGMENT_BYTES", "DamagedLog", "LogBusy", "LogError", "LogWriter", "NoSpace", "Poisoned"]

"""How far a session's files have grown, without asking more of the disk than needed. Standard library only.

The file system's own count says, for almost nothing, how much was written by anybody. Only when that could pass the
limit, or when nobody looked for a while (others may delete as much as this session writes), the session's folders are
walked. They are an agent's: nothing in them is opened but folders, links are not followed, and what cannot be counted
(unreadable or too deep) is covered by the growth of the file system.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

from harness.sandbox.limits import Limits, Over

DEPTH = 128
_LINKED = 100_000
_REST = 10  # a walk is not repeated before this many times its own processor time has passed
_LONGEST_REST_S = 10.0
_UNSEEN_S = 30
_BATCH = 256
_RELEVANT = 16 << 20


@dataclass(frozen=True, slots=True)
class Volume:
    """A file system's own count."""

    size: int
    used: int
    available: int
    files: int


@dataclass(frozen=True, slots=True)
class Count:
    """What a walk found; ``whole`` is False when parts could not be counted."""

    bytes: int
    files: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Known:
    """What the keeper remembers of a session between calls: what it held at first and at the last walk, and the
    volumes' use then.
    """

    first_bytes: int
    first_files: int
    bytes: int
    files: int
    used: int
    used_files: int
    walked: int = 0
    """When the last walk ended, Unix time in seconds."""


def volume(path: str) -> Volume:
    """The count of the file system that holds ``path``. Raises OSError."""
    info = os.statvfs(path)
    return Volume(
        info.f_blocks * info.f_frsize,
        (info.f_blocks - info.f_bfree) * info.f_frsize,
        info.f_bavail * info.f_frsize,
        info.f_files - info.f_ffree,
    )


def outermost(paths: list[str]) -> list[str]:
    """The paths that lie in none of the others, so that nothing is counted twice."""
    kept: list[str] = []
    for path in sorted({os.path.normpath(path) for path in paths}):
        if not any(path.startswith(one + "/") for one in kept):
            kept.append(path)
    return kept


def walk(roots: list[str]) -> Generator[None, None, Count]:
    """Count in small steps and return the result at the end.

    Never raises: what cannot be read makes it less than whole.
    """
    counter = _Counter()
    for root in roots:
        yield from counter.below(root)
    return counter.count()


class _Counter:
    """Adds up what lies below folders, on their own file systems, holding at most `DEPTH` of them open."""

    def __init__(self) -> None:
        self._bytes = 0
        self._files = 0
        self._whole = True
        self._linked: set[tuple[int, int]] = set()

    def count(self) -> Count:
        return Count(self._bytes, self._files, self._whole)

    def below(self, root: str) -> Iterator[None]:
        stack: list[tuple[int, Iterator[os.DirEntry[str]]]] = []
        try:
            self._descend(stack, root, None)
            device = os.fstat(stack[0][0]).st_dev if stack else -1
            while stack:
                folder, entries = stack[-1]
                if (entry := self._next(entries)) is None:
                    stack.pop()
                    os.close(folder)
                    continue
                if (info := self._info(entry)) is None:
                    continue
                self._add(info)
                if stat.S_ISDIR(info.st_mode) and info.st_dev == device:
                    self._descend(stack, entry.name, folder)
                if self._files % _BATCH == 0:
                    yield
        finally:
            for folder, _ in stack:
                os.close(folder)

    def _descend(self, stack: list[tuple[int, Iterator[os.DirEntry[str]]]], name: str, folder: int | None) -> None:
        if len(stack) >= DEPTH:
            self._whole = False
            return
        try:
            below = os.open(
                name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
            )
        except OSError as exc:
            self._whole = self._whole and isinstance(exc, FileNotFoundError)
            return
        stack.append((below, os.scandir(below)))

    def _next(self, entries: Iterator[os.DirEntry[str]]) -> os.DirEntry[str] | None:
        try:
            return next(entries, None)
        except OSError:
            self._whole = False
            return None

    def _info(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        try:
            return entry.stat(follow_symlinks=False)
        except OSError as exc:
            self._whole = self._whole and isinstance(exc, FileNotFoundError)
            return None

    def _add(self, info: os.stat_result) -> None:
        self._files += 1
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            if (info.st_dev, info.st_ino) in self._linked:
                return
            if len(self._linked) < _LINKED:
                self._linked.add((info.st_dev, info.st_ino))
        self._bytes += info.st_blocks * 512


class Meter:
    """Watches the folders of one session during one call; `look` is cheap, and `steps` does a piece of a walk that it
    asked for.

    ``deleted`` gives the bytes of files on a device that have no name any more and are still open.
    """

    def __init__(self, roots: list[str], limits: Limits, known: Known | None, deleted: Callable[[int], int]) -> None:
        self.known = known
        self._limits = limits
        self._deleted = deleted
        self._roots = outermost(roots)
        self._places: dict[int, str] = {}
        for root in self._roots:
            with contextlib.suppress(OSError):
                self._places.setdefault(os.stat(root).st_dev, root)
        self._began = self._volumes()
        self._at_start = None if known is None or self._beyond(known) else known
        self._walking: Generator[None, None, Count] | None = None
        self._walk_cost = 0.0
        self._walk_volumes: dict[int, Volume] = {}
        self._rest_until = 0.0

    def close(self) -> None:
        """Hold no folder open any more."""
        if self._walking is not None:
            self._walking.close()
            self._walking = None

    def _volumes(self) -> dict[int, Volume]:
        found = {}
        for device, place in self._places.items():
            with contextlib.suppress(OSError):
                found[device] = volume(place)
        return found

    def _beyond(self, known: Known) -> bool:
        """The session had passed a limit when this call began: it may go on, to clean up, but not grow further."""
        grown = known.bytes - known.first_bytes
        made = known.files - known.first_files
        too_many = self._limits.disk_files is not None and made > self._limits.disk_files
        return too_many or (self._limits.disk is not None and grown > self._limits.disk)

    def look(self) -> None:
        """Compare the file systems' counts with the limits; begins a walk when only that can tell."""
        now = self._volumes()
        if (
            self._walking is None
            and time.monotonic() >= self._rest_until
            and (self._may_be_over(now) or self._scarce(now) is not None)
        ):
            self._walking = walk(self._roots)
            self._walk_cost = 0.0
            self._walk_volumes = now

    @property
    def walking(self) -> bool:
        return self._walking is not None

    def steps(self, budget_s: float) -> Over | None:
        """Go on with the walk for about ``budget_s``; at its end what it proves."""
        if self._walking is None:
            return None
        end = time.monotonic() + budget_s
        began = time.process_time()
        try:
            while time.monotonic() < end:
                next(self._walking)
        except StopIteration as done:
            found: Count = done.value
        else:
            return None
        finally:
            self._walk_cost += time.process_time() - began
        self._walking = None
        self._rest_until = time.monotonic() + min(_LONGEST_REST_S, _REST * self._walk_cost)
        return self._judge(found)

    def _judge(self, count: Count) -> Over | None:
        now = self._volumes()
        used = _used(now)
        files = _files(now)
        size = count.bytes + sum(self._deleted(device) for device in self._places)
        number = count.files
        if not count.whole and self.known is not None:
            size = max(size, self.known.bytes + max(0, used - self.known.used))
            number = max(number, self.known.files + max(0, files - self.known.used_files))
        seen = Known(0, 0, size, number, _used(self._walk_volumes), _files(self._walk_volumes), int(time.time()))
        first = self.known
        self.known = replace(
            seen, first_bytes=first.first_bytes if first else size, first_files=first.first_files if first else number
        )
        if self._at_start is None:
            self._at_start = self.known
        return self._over(self.known, self._at_start, now)

    def _over(self, known: Known, start: Known, now: dict[int, Volume]) -> Over | None:
        grown = known.bytes - known.first_bytes
        made = known.files - known.first_files
        before = start.bytes - start.first_bytes
        before_made = start.files - start.first_files
        if self._limits.disk is not None and grown > max(self._limits.disk, before):
            return Over("disk", grown, self._limits.disk)
        if self._limits.disk_files is not None and made > max(self._limits.disk_files, before_made):
            return Over("disk_files", made, self._limits.disk_files)
        scarce = self._scarce(now)
        return scarce if scarce is not None and known.bytes - start.bytes >= _RELEVANT else None

    def _may_be_over(self, now: dict[int, Volume]) -> bool:
        if self.known is None or self._at_start is None or abs(time.time() - self.known.walked) > _UNSEEN_S:
            return True
        grown = self.known.bytes - self.known.first_bytes + max(0, _used(now) - self.known.used)
        made = self.known.files - self.known.first_files + max(0, _files(now) - self.known.used_files)
        over_bytes = self._limits.disk is not None and grown > self._limits.disk and _used(now) != self.known.used
        return over_bytes or (
            self._limits.disk_files is not None
            and made > self._limits.disk_files
            and _files(now) != self.known.used_files
        )

    def _scarce(self, now: dict[int, Volume]) -> Over | None:
        """A file system that has less free than it must keep and lost some of it since this call began."""
        for device, there in now.items():
            keep = self._limits.free_disk(there.size)
            began = self._began.get(device, there)
            if there.available < keep and began.available - there.available >= _RELEVANT:
                return Over("disk_free", there.available, keep, self._places[device])
        return None


def _used(volumes: dict[int, Volume]) -> int:
    return sum(there.used for there in volumes.values())


def _files(volumes: dict[int, Volume]) -> int:
    return sum(there.files for there in volumes.values())

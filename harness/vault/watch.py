"""Which names the kernel saw change: inotify as a hint, so that ten changes in ten thousand files cost ten looks.
Standard library only.

A hint only ever saves work: what is decided on (an approval, an undo) is looked at in full, and so is the tree now and
then. What no hint tells: that a file was written through a hard link which was made and removed in a folder that is
itself new.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from dataclasses import dataclass, field

_MODIFY = 0x2
_ATTRIB = 0x4
_CLOSE_WRITE = 0x8
_MOVED_FROM = 0x40
_MOVED_TO = 0x80
_CREATE = 0x100
_DELETE = 0x200
_OVERFLOW = 0x4000
_IGNORED = 0x8000
_ONLY_FOLDERS = 0x01000000
_IS_FOLDER = 0x40000000
_WANTED = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLY_FOLDERS
_ARRIVED = _MOVED_TO | _CREATE
_DEPARTED = _MOVED_FROM | _DELETE
_EVENT = struct.Struct("iIII")
libc = ctypes.CDLL(None, use_errno=True)

Place = tuple[int, bytes]
"""(number of the root, path of a folder beneath it)"""


@dataclass(slots=True)
class Seen:
    """What changed since the last look. ``all`` = something was missed: look at everything."""

    names: dict[Place, set[bytes]] = field(default_factory=dict)
    closed: dict[Place, set[bytes]] = field(default_factory=dict)
    """Names of ``names`` that somebody had open for writing, and let go of; that is also where a mapping ends."""
    folders: set[Place] = field(default_factory=set)
    """Folders that appeared, vanished or moved: what is below them must be looked at."""
    all: bool = False


class _Passing:
    """Files that bore a name for a moment between two looks. Through a hard link that came and went, one that is kept
    under another name may have been written.
    """

    def __init__(self) -> None:
        self._here: set[tuple[Place, bytes]] = set()
        """Names that something arrived at and is still at."""
        self._moving: set[int] = set()
        """Cookies of what arrived, left its name again and has not arrived elsewhere yet."""
        self._gone = False

    @property
    def unknown(self) -> bool:
        """True when something that arrived is gone and nobody knows what it was."""
        return self._gone or bool(self._moving)

    def note(self, name: tuple[Place, bytes], mask: int, cookie: int) -> None:
        """Take in one event, in their order."""
        if mask & _ARRIVED:
            self._gone = self._gone or name in self._here  # another took its name
            self._here.add(name)
            self._moving.discard(cookie)
        elif mask & _DEPARTED and name in self._here:
            self._here.remove(name)
            if mask & _DELETE:
                self._gone = True
            else:
                self._moving.add(cookie)


_MOST_READS = 64
"""Pieces of 64 KiB that are read at once: several times what the kernel keeps by default."""


class Watcher:
    """One inotify instance. After `lost` it is of no use any more."""

    def __init__(self) -> None:
        """Raises OSError when the kernel has no instance left for this user."""
        self.fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "inotify_init1")
        self._places: dict[int, Place] = {}
        self.lost = False

    def close(self) -> None:
        os.close(self.fd)

    def add(self, root: int, path: bytes, fd: int) -> None:
        """Watch the open folder ``fd``, which stands at ``path``.

        Running out of watches only means that everything is looked at again.
        """
        number = libc.inotify_add_watch(self.fd, b"/proc/self/fd/%d" % fd, ctypes.c_uint32(_WANTED))
        if number < 0:
            self.lost = True
        else:
            self._places[number] = (root, path)

    def read(self) -> Seen:
        """Everything that happened since the last read. Does not wait."""
        seen = Seen(all=self.lost)
        passing = _Passing()
        for _ in range(_MOST_READS):
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                seen.all = seen.all or passing.unknown
                return seen
            except OSError as exc:
                if exc.errno == errno.EINTR:
                    continue
                self.lost = True
                seen.all = True
                return seen
            self._take(data, seen, passing)
        seen.all = True  # names change faster than they are read: no end is waited for, everything is looked at
        return seen

    def _take(self, data: bytes, seen: Seen, passing: _Passing) -> None:
        at = 0
        while at < len(data):
            number, mask, cookie, size = _EVENT.unpack_from(data, at)
            at += _EVENT.size + size
            if mask & _OVERFLOW:
                seen.all = True
                continue
            if mask & _IGNORED:
                self._places.pop(number, None)
                continue
            place = self._places.get(number)
            name = data[at - size : at].rstrip(b"\0")
            if place is None or not (name or place[1] == b""):
                continue  # a folder below a root is told of by the one above it
            seen.names.setdefault(place, set()).add(name)
            if mask & _CLOSE_WRITE:
                seen.closed.setdefault(place, set()).add(name)
            passing.note((place, name), mask, cookie)
            if mask & _IS_FOLDER and mask & (_MOVED_FROM | _MOVED_TO | _CREATE | _DELETE):
                root, folder = place
                seen.folders.add((root, folder + b"/" + name if folder else name))

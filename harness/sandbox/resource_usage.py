"""What a running call takes of memory and processes, read from outside the sandbox. Standard library only.

A sandbox has its own ``/proc``, which lists exactly the processes of the call; it is opened once through a process
inside. Only files of the kernel are read, none of which waits for the process that it is about, except the exact count,
which is asked for when the cheap one is over.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass

from harness.linux import groups
from harness.linux.proc import children, descendants

_STATUS = re.compile(rb"^(Threads|RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+)", re.MULTILINE)
_ROLLUP = re.compile(rb"^(Pss|Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+)", re.MULTILINE)
_IN_FLIGHT = re.compile(rb"^scm_fds:\s+[1-9]", re.MULTILINE)
_INODE_BYTES = 1024
_MAPS_BYTES = 4 << 20
_MEMORY = ("/memfd:", "/dev/zero", "/SYSV", "/dev/shm/")
"""How names of files begin that are memory."""
_OURS = "1"
"""The first process of a sandbox is the one that oversees the call (`harness.executor.runner`)."""
_FDS_LOOKED_AT = 20_000


@dataclass(frozen=True, slots=True)
class Usage:
    """Tasks (threads count), bytes of private memory of the processes, with the kernel's tables of it, and of shared
    memory, bytes in the call's own /tmp, /dev/shm and files without a name. ``hides``: it has memory that nobody can
    count, behind a mapping or on its way from process to process.
    """

    tasks: int
    private: int
    shared: int
    temporary: int
    hides: bool = False

    @property
    def memory(self) -> int:
        """Bytes in all. Shared pages are mostly files of /dev/shm, so the greater of both counts, not their sum."""
        return self.private + max(self.shared, self.temporary)

    def taken(self, grown: int) -> int:
        """The same when the shared memory of the machine grew by ``grown`` bytes meanwhile: that is its own only when
        it hides some.
        """
        return self.private + max(self.shared, self.temporary, grown if self.hides else 0)


def parse_status(text: bytes) -> tuple[int, int, int]:
    """(threads, private bytes, shared bytes) from the text of ``/proc/PID/status``."""
    found = {name: int(value) for name, value in _STATUS.findall(text)}
    return (
        found.get(b"Threads", 1),
        (found.get(b"RssAnon", 0) + found.get(b"VmSwap", 0) + found.get(b"VmPTE", 0)) << 10,
        found.get(b"RssShmem", 0) << 10,
    )


def parse_tables(text: bytes) -> int:
    """Bytes of page tables from the text of ``/proc/PID/status``."""
    found = dict(_STATUS.findall(text))
    return int(found.get(b"VmPTE", 0)) << 10


def parse_rollup(text: bytes) -> tuple[int, int]:
    """(private bytes, shared bytes), each page divided by those who share it, from the text of
    ``/proc/PID/smaps_rollup``.
    """
    found = {name: int(value) for name, value in _ROLLUP.findall(text)}
    private = found.get(b"Pss_Anon", found.get(b"Pss", 0)) + found.get(b"SwapPss", 0)
    return private << 10, found.get(b"Pss_Shmem", 0) << 10


def available() -> int:
    """Bytes of memory that this machine could still give; a large number when the kernel does not say."""
    return _meminfo(rb"MemAvailable")


def machine_shared() -> int:
    """Bytes of shared memory on this machine: tmpfs, memfd and the like."""
    return _meminfo(rb"Shmem")


def _meminfo(name: bytes) -> int:
    found = re.search(rb"^" + name + rb":\s+(\d+) kB", _read("/proc/meminfo", None, 1 << 14), re.MULTILINE)
    return int(found[1]) << 10 if found else 1 << 60


def _read(path: str, folder: int | None, limit: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(fd, limit)
    finally:
        os.close(fd)


def _whole(path: str, folder: int | None) -> bytes:
    """A file that the kernel gives in pieces, up to `_MAPS_BYTES`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        pieces: list[bytes] = []
        while sum(map(len, pieces)) < _MAPS_BYTES and (piece := os.read(fd, 1 << 16)):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


class Tree:
    """The processes of one call. ``leader`` is the process that the keeper started."""

    def __init__(self, leader: int, *, sandboxed: bool) -> None:
        self._leader = leader
        self._sandboxed = sandboxed
        self._proc = -1
        self._tmp = -1
        self._shm = -1

    def close(self) -> None:
        """Hold nothing of the call any more; what is asked then is found by parentage."""
        for fd in (self._proc, self._tmp, self._shm):
            if fd >= 0:
                os.close(fd)
        self._proc = -1
        self._tmp = -1
        self._shm = -1

    def _enter(self, pids: list[int]) -> None:
        """Open the sandbox's own /proc, /tmp and /dev/shm, once one of these processes of it lets us."""
        ours = os.stat("/proc").st_dev
        for pid in pids:
            try:
                root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:  # gone, or of an identity that we may not look into
                continue
            with contextlib.suppress(OSError):
                info = os.stat("proc", dir_fd=root, follow_symlinks=False)
                if info.st_dev != ours and info.st_ino == 1:  # the root of another process namespace's /proc
                    self._proc = _folder("proc", root)
            if self._proc >= 0:
                with contextlib.suppress(OSError):
                    self._tmp = _folder("tmp", root)
                    self._shm = _folder("dev/shm", root)
            os.close(root)
            if self._proc >= 0:
                return

    def _pids(self) -> tuple[list[str], int | None]:
        if self._sandboxed and self._proc < 0:
            if not (first := children(self._leader)):
                return [], None  # all of a sandbox is below the first process in it, which has begun nothing yet
            self._enter(first)
        if self._proc < 0:
            below = descendants(self._leader)  # a look at every process of the machine
            if self._sandboxed:
                self._enter(below)
            if self._proc < 0:
                return [f"/proc/{pid}" for pid in below], None
        return [name for name in os.listdir(self._proc) if name.isdigit() and name != _OURS], self._proc

    def look(self, tasks: int | None = None) -> Usage:
        """A cheap look, which counts pages that processes share once for each; it stops early at ``tasks``."""
        pids, folder = self._pids()
        seen = 0
        private = 0
        shared = 0
        for pid in pids:
            try:
                threads, own, common = parse_status(_read(f"{pid}/status", folder, 1 << 14))
            except OSError:
                continue
            seen = seen + threads
            private = private + own
            shared = shared + common
            if tasks is not None and seen >= tasks:
                break
        return Usage(seen, private, shared, self.temporary())

    def put_behind(self, nice: int) -> bool:
        """Have the kernel count the call's nice value against other sessions too, which it does not by itself where it
        groups by session; whether there is nothing more to try.
        """
        pids, folder = self._pids()
        return bool(pids) and groups.lower(nice, pids[0], folder)

    def exact(self) -> Usage:
        """Each page counted once; it walks the page tables of the processes, so it costs milliseconds a gigabyte."""
        pids, folder = self._pids()
        seen = 0
        private = 0
        shared = 0
        for pid in pids:
            try:
                status = _read(f"{pid}/status", folder, 1 << 14)
                threads, own, common = parse_status(status)
                with contextlib.suppress(PermissionError):  # not ours to look into: what status said counts
                    resident, common = parse_rollup(_read(f"{pid}/smaps_rollup", folder, 4096))
                    own = resident + parse_tables(status)
            except OSError:
                continue
            seen = seen + threads
            private = private + own
            shared = shared + common
        nameless, blind = self._nameless()
        hidden = sum(size for name, size in nameless if name.startswith(_MEMORY))
        return Usage(seen, private, shared, self.temporary() + hidden, blind or self._in_flight())

    def temporary(self) -> int:
        """Bytes that the call's own /tmp and /dev/shm hold in memory, each file with what the kernel needs to know
        it.
        """
        total = 0
        for fd in (self._tmp, self._shm):
            if fd >= 0:
                info = os.fstatvfs(fd)
                total += (info.f_blocks - info.f_bfree) * info.f_frsize + (info.f_files - info.f_ffree) * _INODE_BYTES
        return total

    def filled(self) -> dict[str, float]:
        """How full /tmp (``tmp``) and /dev/shm (``shm``) of the call are, 0 to 1."""
        shares = {}
        for name, fd in (("tmp", self._tmp), ("shm", self._shm)):
            if fd >= 0:
                info = os.fstatvfs(fd)
                shares[name] = 1 - min(info.f_bfree / max(1, info.f_blocks), info.f_ffree / max(1, info.f_files))
        return shares

    def deleted(self, device: int) -> int:
        """Bytes of files on ``device`` that were deleted and are still open, or mapped."""
        return sum(size for _, size in self._nameless(device)[0])

    def _nameless(self, device: int | None = None) -> tuple[list[tuple[str, int]], bool]:
        """Names and sizes of the files without a name that are open or mapped, and whether there is memory among them
        whose size nobody can tell.
        """
        pids, folder = self._pids()
        found: dict[tuple[int, int], tuple[str, int]] = {}
        looked = 0
        for pid in pids:
            try:
                handle = os.open(f"{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
            except OSError:
                continue
            try:
                for name in os.listdir(handle):
                    looked += 1
                    if looked > _FDS_LOOKED_AT:
                        return list(found.values()), True
                    with contextlib.suppress(OSError):
                        info = os.stat(name, dir_fd=handle)
                        if stat.S_ISREG(info.st_mode) and info.st_nlink == 0 and device in (None, info.st_dev):
                            found.setdefault(
                                (info.st_dev, info.st_ino), (os.readlink(name, dir_fd=handle), info.st_blocks * 512)
                            )
            finally:
                os.close(handle)
        blind = False
        for pid in pids:
            with contextlib.suppress(OSError):
                blind = self._mapped(pid, folder, device, found) or blind
        return list(found.values()), blind

    @staticmethod
    def _mapped(
        pid: str, folder: int | None, device: int | None, found: dict[tuple[int, int], tuple[str, int]]
    ) -> bool:
        """Add the files without a name that a process has mapped; True when the size of one that is memory cannot be
        known: then its pages in the mapping count.
        """
        blind = False
        for line in _whole(f"{pid}/maps", folder).split(b"\n"):
            if not line.endswith(b" (deleted)"):
                continue
            span, _, _, number, inode, name = line.split(None, 5)
            major, minor = (int(part, 16) for part in number.split(b":"))
            key = (os.makedev(major, minor), int(inode))
            if key in found or device not in (None, key[0]):
                continue
            text = os.fsdecode(name)
            try:
                info = os.stat(f"{pid}/map_files/{span.decode()}", dir_fd=folder)
                size = info.st_blocks * 512
            except OSError:
                first, last = (int(part, 16) for part in span.split(b"-"))
                size = last - first
                blind = blind or text.startswith(_MEMORY)
            found[key] = (text, size)
        return blind

    def _in_flight(self) -> bool:
        """True when a socket of the call holds descriptors that were sent and not taken: what they lead to is in no
        table of any process.
        """
        pids, folder = self._pids()
        looked = 0
        for pid in pids:
            with contextlib.suppress(OSError):
                handle = os.open(f"{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
                try:
                    for name in os.listdir(handle):
                        looked += 1
                        if looked > _FDS_LOOKED_AT:
                            return True
                        with contextlib.suppress(OSError):
                            if os.readlink(name, dir_fd=handle).startswith("socket:") and _IN_FLIGHT.search(
                                _read(f"{pid}/fdinfo/{name}", folder, 4096)
                            ):
                                return True
                finally:
                    os.close(handle)
        return False


def _folder(name: str, root: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=root)

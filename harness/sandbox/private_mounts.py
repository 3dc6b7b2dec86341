"""What each call gets new inside a sandbox whose mounts are copies of its session's: its own temporary folders, its own
list of processes, its own loopback. Standard library only.

Bubblewrap has made all mounts once, in the way that a call alone would get them; here are the few that a call can write
and nobody else has to see.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
from dataclasses import dataclass

from harness.linux import namespaces as ns
from harness.sandbox import bubblewrap

_BINDS = ("--bind", "--ro-bind", "--ro-bind-try")
_COVERED = ("sys", "sysrq-trigger", "irq", "bus")
"""What of /proc root could write, and bubblewrap covers too."""
_NO_EXTRAS = ns.NO_SUID | ns.NO_DEVICES
_GET_FLAGS = 0x8913
_SET_FLAGS = 0x8914
_UP = 1
_REQUEST = struct.Struct("16sh22x")


@dataclass(frozen=True, slots=True)
class Fresh:
    """What is new for each call; made from a bubblewrap command line by `of`."""

    temporary: tuple[tuple[str, str], ...]
    """(folder, size in bytes) of the file systems in memory."""
    within: tuple[str, ...]
    """Mounts beneath those, which a new one would hide."""
    network: bool
    """It has a network of its own, of which only the loopback is up."""

    @property
    def namespaces(self) -> int:
        """The namespaces that each call is born into, beside those that it shares with the calls before."""
        return ns.NEW_MOUNTS | ns.NEW_PIDS | ns.NEW_IPC | (ns.NEW_NETWORK if self.network else 0)

    def make(self) -> None:
        """As the first process of these namespaces, with the capabilities to mount. Raises OSError."""
        kept = [(path, ns.taken(path)) for path in self.within if os.path.lexists(path)]
        before = os.umask(0)
        for folder, size in self.temporary:
            ns.mount("tmpfs", folder, _NO_EXTRAS, f"mode=1777,size={size}")
        os.umask(0o022)
        os.makedirs(bubblewrap.HOME, 0o755, exist_ok=True)
        for path, tree in kept:
            _mount_point(path, tree)
            ns.put(tree, path)
            os.close(tree)
        os.umask(before)
        ns.mount("proc", "/proc", _NO_EXTRAS | ns.NO_PROGRAMS)
        for name in _COVERED:
            if os.path.lexists(path := f"/proc/{name}"):
                ns.make_read_only(path)
        if self.network:
            _loopback_up()


def of(argv: list[str]) -> Fresh:
    """What is new for each call in the sandbox of a bubblewrap command line."""
    temporary = tuple((argv[at + 1], argv[at - 1]) for at, word in enumerate(argv) if word == "--tmpfs")
    targets = dict.fromkeys(argv[at + 2] for at, word in enumerate(argv) if word in _BINDS)
    hidden = [path for path in targets if any(path.startswith(f"{folder}/") for folder, _ in temporary)]
    within = [path for path in hidden if not any(path.startswith(f"{other}/") for other in hidden)]
    return Fresh(temporary, tuple(within), "--unshare-net" in argv)


def _mount_point(path: str, tree: int) -> None:
    """A folder or a file to mount on, of the kind that is to be mounted."""
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.makedirs(path, 0o755, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as any_socket:
        _, flags = _REQUEST.unpack(fcntl.ioctl(any_socket, _GET_FLAGS, _REQUEST.pack(b"lo", 0)))
        fcntl.ioctl(any_socket, _SET_FLAGS, _REQUEST.pack(b"lo", flags | _UP))

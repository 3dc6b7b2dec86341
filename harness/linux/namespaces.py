"""Forks that are born into namespaces of their own, and the mounts they arrange there. Standard library only."""

from __future__ import annotations

import ctypes
import os

from harness.linux import kernel

NEW_MOUNTS = 0x00020000
NEW_IPC = 0x08000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000
NO_SUID = 2
NO_DEVICES = 4
NO_PROGRAMS = 8
READ_ONLY = 1
_REMOUNT = 32
_BIND = 4096
_SIBLING = 0x00008000
_CLONE3 = 435
_OPEN_TREE = 428
_MOVE_MOUNT = 429
_TREE_COPY = 1 | 0x8000 | os.O_CLOEXEC
"""OPEN_TREE_CLONE, with all mounts beneath (AT_RECURSIVE)."""
_FROM_DESCRIPTOR = 4
_HERE = -100
_CloneArguments = ctypes.c_uint64 * 8

_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def sibling(new: int) -> int:
    """Fork; the child is born into the ``new`` namespaces as a child of our own parent, who collects it.

    0 in the child, its pid here. The same as `os.fork` for the interpreter, and like it for one thread. Needs what the
    namespaces need (CAP_SYS_ADMIN in our user namespace). Raises OSError.
    """
    wanted = _CloneArguments(new | _SIBLING)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid: int = _libc.syscall(ctypes.c_long(_CLONE3), ctypes.byref(wanted), ctypes.c_size_t(ctypes.sizeof(wanted)))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    code = ctypes.get_errno()
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(code, os.strerror(code))
    return pid


def mount(kind: str, path: str, flags: int, options: str = "") -> None:
    """Mount a file system of this kind. Raises OSError."""
    _mount(kind, path, kind, flags, options)


def make_read_only(path: str) -> None:
    """From here on nothing beneath can be written by this way. Raises OSError."""
    flags = READ_ONLY | NO_SUID | NO_DEVICES | NO_PROGRAMS
    _mount(path, path, "", _BIND, "")
    _mount("", path, "", flags | _BIND | _REMOUNT, "")


def taken(path: str) -> int:
    """A descriptor of a copy of what is mounted there, with all mounts beneath it; `put` it where it shall be.

    Raises OSError.
    """
    return kernel.syscall(_OPEN_TREE, _HERE, ctypes.c_char_p(os.fsencode(path)), _TREE_COPY)


def put(tree: int, path: str) -> None:
    """Mount what was `taken`. Raises OSError."""
    empty = ctypes.c_char_p(b"")
    kernel.syscall(_MOVE_MOUNT, tree, empty, _HERE, ctypes.c_char_p(os.fsencode(path)), _FROM_DESCRIPTOR)


def _mount(source: str, path: str, kind: str, flags: int, options: str) -> None:
    done = _libc.mount(
        os.fsencode(source), os.fsencode(path), os.fsencode(kind), ctypes.c_ulong(flags), os.fsencode(options)
    )
    if done != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)

"""The second wall, inside the mount namespace: Landlock confines writes, signals and sockets. Standard library only.

TCP needs no rule here: without network the call has a network of its own, which the runner verifies, and tests may use
its loopback.

``reference: linux/Documentation/userspace-api/landlock.rst`` (ABI 1 file system, 2 refer, 3 truncate, 4 TCP, 5 device
ioctl, 6 scopes).
"""

from __future__ import annotations

import ctypes
import functools
import os
import stat

from harness.linux import kernel

_CREATE = 444
_ADD = 445
_RESTRICT = 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1

_WRITE_FILE = 1 << 1
_REMOVE_DIR = 1 << 4
_REMOVE_FILE = 1 << 5
_MAKE = 0x7F << 6  # char, dir, reg, sock, fifo, block, sym
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_IOCTL_DEV = 1 << 15
_ON_FILES = _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
_ABSTRACT_SOCKETS = 1
_SIGNALS = 2
_RULESET_BYTES = ((3, 8), (5, 16))
"""(newest version of Landlock, bytes that it takes of a `_Ruleset`); a newer one takes all of it."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


@functools.cache
def abi() -> int:
    """Version of Landlock in this kernel; 0 when it has none or it is switched off."""
    try:
        return kernel.syscall(_CREATE, None, 0, _VERSION_FLAG)
    except OSError:
        return 0


def handled(version: int) -> int:
    """The write rights that a kernel of this version can confine; 0 below 2, where renames between folders would always
    fail.
    """
    if version < 2:
        return 0
    rights = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE | _REFER
    if version >= 3:
        rights |= _TRUNCATE
    return rights | _IOCTL_DEV if version >= 5 else rights


def restrict(writable: list[str]) -> int:
    """Confine this process and all its children for good; returns the ABI used (0: no Landlock, nothing done).

    Writes only beneath ``writable``, and to devices; no signals to and no abstract sockets of processes outside.
    Needs NO_NEW_PRIVS. Raises OSError.
    """
    version = abi()
    rights = handled(version)
    if not rights:
        return 0
    rules = _Ruleset(rights, 0, (_ABSTRACT_SOCKETS | _SIGNALS) if version >= 6 else 0)
    size = next((size for newest, size in _RULESET_BYTES if version <= newest), ctypes.sizeof(rules))
    ruleset = kernel.syscall(_CREATE, ctypes.byref(rules), size, 0)
    try:
        for path in writable:
            _allow(ruleset, path, rights & ~_IOCTL_DEV)
        _allow(ruleset, "/dev", rights & _ON_FILES)
        _allow(ruleset, "/dev/shm", rights & ~_IOCTL_DEV)
        kernel.syscall(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        allowed = rights if stat.S_ISDIR(os.fstat(fd).st_mode) else rights & _ON_FILES
        kernel.syscall(_ADD, ruleset, _PATH_BENEATH, ctypes.byref(_Beneath(allowed, fd)), 0)
    finally:
        os.close(fd)

"""System calls that Python's ``os`` does not offer, through one ctypes door. Standard library only."""

from __future__ import annotations

import ctypes
import errno
import os
import resource

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SYS_OPENAT2 = 437
OPEN_FILES = 1 << 16
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def syscall(number: int, *args: object) -> int:
    """One raw system call; integers are passed as 64 bit. Raises OSError."""
    result: int = _libc.syscall(
        ctypes.c_long(number),
        *[ctypes.c_uint64(arg & 0xFFFFFFFFFFFFFFFF) if isinstance(arg, int) else arg for arg in args],
    )
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, *values: object) -> None:
    """prctl(2); raises OSError."""
    padded = [*values, *[0] * (4 - len(values))]
    if (
        _libc.prctl(
            ctypes.c_int(option), *[ctypes.c_ulong(value) if isinstance(value, int) else value for value in padded]
        )
        != 0
    ):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def raise_open_files() -> int:
    """Let this process open as many files as its hard limit allows, and at most ``OPEN_FILES``: shells start programs
    with 1,024, which some hundreds of connections use up. How many it may open now.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return OPEN_FILES if soft == resource.RLIM_INFINITY else soft


def hide_memory() -> None:
    """No other process of this user may read our memory or descriptors, or attach to us. Raises OSError."""
    prctl(PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """What our children leave behind when they end becomes ours. Raises OSError."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def openat2(folder: int, path: str, flags: int, mode: int, resolve: int) -> int:
    """openat2(2) with O_CLOEXEC; raises OSError, ENOSYS where the kernel has none."""
    how = _OpenHow(flags | os.O_CLOEXEC, mode, resolve)
    for _ in range(64):
        try:
            return syscall(
                SYS_OPENAT2, folder, ctypes.c_char_p(os.fsencode(path)), ctypes.byref(how), ctypes.sizeof(how)
            )
        except OSError as exc:
            if exc.errno != errno.EAGAIN:  # EAGAIN: a rename raced with the walk, which the kernel asks to repeat
                raise
    raise OSError(errno.EAGAIN, "the folder tree keeps changing under the path", path)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


_NoCapabilities = ctypes.c_uint32 * 6
"""Three sets of two words; a type of ctypes costs more to make than the call that it is for."""
_CAPABILITY_VERSION_3 = 0x20080522
_MOST_CAPABILITIES = 64
"""As many as the three words of a set can hold."""


def without_capabilities(*, bounded: bool = False) -> None:
    """Give up every capability for good: none is left now, and no program run later can get one. ``bounded``: that
    programs can get none is so already, by `bound_capabilities` of the process that this one was forked from. Raises
    OSError.
    """
    if not bounded:
        bound_capabilities()
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    if _libc.capset(ctypes.byref(header), ctypes.byref(_NoCapabilities())) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def bound_capabilities() -> None:
    """No program that this process or its children run can get a capability; they themselves keep what they have until
    they give it up or join a user namespace. Raises OSError.
    """
    for number in range(_MOST_CAPABILITIES):
        if _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0) == 0:
            continue
        if (code := ctypes.get_errno()) == errno.EINVAL:  # the kernel has no more
            break
        raise OSError(code, os.strerror(code))
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)


def setns(namespace: int) -> None:
    """Join the namespace behind a descriptor of ``/proc/PID/ns/…``. Raises OSError."""
    if _libc.setns(ctypes.c_int(namespace), ctypes.c_int(0)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

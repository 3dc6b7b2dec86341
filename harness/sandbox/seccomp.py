"""A system-call filter assembled by hand: what no tool needs and what would lead out of the sandbox. Standard library
only.

``reference: linux/Documentation/userspace-api/seccomp_filter.rst; include/uapi/linux/{bpf_common,seccomp,audit}.h``
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import struct

from harness.linux import kernel

# Numbers on (x86_64, aarch64); None where the machine has no such call.
CALLS: dict[str, tuple[int | None, int | None]] = {
    "_sysctl": (156, None),
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
SOCKET = (41, 198)
IOCTL = (16, 29)
CLONE = (56, 220)
CLONE3 = (435, 435)
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7), "arm64": (1, 0xC00000B7)}
_X32_BIT = 0x40000000
# CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}; CLONE_NEWTIME means a signal number in clone(2)
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: typing into the terminal of whoever started us
_AF_INET = 2
_AF_INET6 = 10
_AF_NETLINK = 16
_NETLINK_ROUTE = 0

_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL = 0x80000000
_NR = 0
_ARCH = 4
_ARG0 = 16
_ARG1 = 24
_ARG2 = 32
_MODE_FILTER = 2

Step = tuple[int, int, int, int]


class Unsupported(Exception):
    """This machine type has no filter table; the message names it."""


def _fail(code: int) -> Step:
    return (_RETURN, 0, 0, _ERRNO | code)


def _on(number: int, block: list[Step]) -> list[Step]:
    """``block`` when the loaded number is ``number``, else skip it.

    Every block ends in returns, so the number stays loaded after it.
    """
    return [(_EQUAL, 0, len(block), number), *block]


def program(machine: str, *, network: bool) -> list[Step]:
    """The filter as (code, jump if true, jump if false, k) steps; raises Unsupported."""
    if machine not in _MACHINES:
        raise Unsupported(
            f"no system-call filter for machine type {machine}; Watchfloor sandboxes tools on x86_64 and aarch64"
        )
    column, arch = _MACHINES[machine]
    allow: Step = (_RETURN, 0, 0, _ALLOW)
    steps: list[Step] = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NR)]
    if column == 0:
        steps += [(_AT_LEAST, 0, 1, _X32_BIT), _fail(errno.EPERM)]
    netlink: list[Step] = (
        [(_EQUAL, 0, 3, _AF_NETLINK), (_LOAD, 0, 0, _ARG2), (_EQUAL, 0, 1, _NETLINK_ROUTE), allow] if network else []
    )
    steps += _on(
        SOCKET[column],
        [
            (_LOAD, 0, 0, _ARG0),
            (_EQUAL, 1, 0, _AF_INET),
            (_EQUAL, 0, 1, _AF_INET6),
            allow,
            *netlink,
            _fail(errno.EPERM),
        ],
    )
    first, second = _TERMINAL_INPUT
    steps += _on(
        IOCTL[column], [(_LOAD, 0, 0, _ARG1), (_EQUAL, 1, 0, first), (_EQUAL, 0, 1, second), _fail(errno.EPERM), allow]
    )
    steps += _on(CLONE[column], [(_LOAD, 0, 0, _ARG0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _fail(errno.EPERM), allow])
    # its flags lie in memory, which a filter cannot read; libc falls back to clone
    steps += _on(CLONE3[column], [_fail(errno.ENOSYS)])
    for numbers in CALLS.values():
        if (number := numbers[column]) is not None:
            steps += _on(number, [_fail(errno.EPERM)])
    return [*steps, allow]


_STEP = struct.Struct("HBBI")


def learn() -> None:
    """Have both filters ready, so that whoever is forked from this process need not make them."""
    with contextlib.suppress(Unsupported):  # each call says so
        assembled(network=False)
        assembled(network=True)


@functools.cache
def assembled(*, network: bool) -> bytes:
    """The filter of this machine as the kernel reads it. Raises Unsupported."""
    return b"".join(_STEP.pack(*step) for step in program(os.uname().machine, network=network))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def apply(*, network: bool) -> None:
    """Filter this process and all its children for good. Needs NO_NEW_PRIVS. Raises OSError or Unsupported."""
    code = assembled(network=network)
    buffer = ctypes.create_string_buffer(code)
    prog = _Program(len(code) // _STEP.size, ctypes.addressof(buffer))
    kernel.prctl(kernel.PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(prog))

"""System calls that no tool needs: asked directly, through the 32-bit and x32 gates, and at random.

The list is this suite's own and does not come from the filter it tests.
"""

from __future__ import annotations

import platform
import random
from collections.abc import Iterator

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Inside

# name: (x86_64, aarch64, i386); None where there is no such call.
CALLS: dict[str, tuple[int | None, int | None, int | None]] = {
    "acct": (163, 89, 51),
    "add_key": (248, 217, 286),
    "adjtimex": (159, 171, 124),
    "bpf": (321, 280, 357),
    "chroot": (161, 51, 61),
    "clock_settime": (227, 112, 264),
    "delete_module": (176, 106, 129),
    "fanotify_init": (300, 262, 338),
    "finit_module": (313, 273, 350),
    "fsconfig": (431, 431, 431),
    "fsmount": (432, 432, 432),
    "fsopen": (430, 430, 430),
    "fspick": (433, 433, 433),
    "init_module": (175, 105, 128),
    "io_uring_enter": (426, 426, 426),
    "io_uring_register": (427, 427, 427),
    "io_uring_setup": (425, 425, 425),
    "ioperm": (173, None, 101),
    "iopl": (172, None, 110),
    "kcmp": (312, 272, 349),
    "kexec_load": (246, 104, 283),
    "kexec_file_load": (320, 294, None),
    "keyctl": (250, 219, 288),
    "mount": (165, 40, 21),
    "mount_setattr": (442, 442, 442),
    "move_mount": (429, 429, 429),
    "name_to_handle_at": (303, 264, 341),
    "open_by_handle_at": (304, 265, 342),
    "open_tree": (428, 428, 428),
    "perf_event_open": (298, 241, 336),
    "pidfd_getfd": (438, 438, 438),
    "pivot_root": (155, 41, 217),
    "process_vm_readv": (310, 270, 347),
    "process_vm_writev": (311, 271, 348),
    "ptrace": (101, 117, 26),
    "quotactl": (179, 60, 131),
    "reboot": (169, 142, 88),
    "request_key": (249, 218, 287),
    "setns": (308, 268, 346),
    "settimeofday": (164, 170, 79),
    "swapoff": (168, 225, 115),
    "swapon": (167, 224, 87),
    "syslog": (103, 116, 103),
    "umount2": (166, 39, 52),
    "unshare": (272, 97, 310),
    "userfaultfd": (323, 282, 374),
    "vhangup": (153, 58, 111),
}
EXACT = {
    "add a key": "return past_filter((248, 217)[MACHINE], 'user', 'attack', 'payload', 7, -3)",
    "read the session's keys": (
        "return past_filter((250, 219)[MACHINE], 11, -3, ctypes.create_string_buffer(4096), 4096, 0)"
    ),
    "join a session of keys": "return past_filter((250, 219)[MACHINE], 1, 'attack', 0, 0, 0)",
    "ask for a key": "return past_filter((249, 218)[MACHINE], 'user', 'attack', 0, -3)",
    "make a bpf map": "return past_filter((321, 280)[MACHINE], 0, struct.pack('IIIII', 2, 4, 4, 1, 0) + bytes(60), 72)",
    "load a bpf program": "return past_filter((321, 280)[MACHINE], 5, bytes(72), 72)",
    "userfaultfd": "return past_filter((323, 282)[MACHINE], 0o2000001)",
    "userfaultfd by its device": (
        "d = os.open('/dev/userfaultfd', os.O_RDWR); import fcntl; return f'opened {fcntl.ioctl(d, 0xAA00, 0)}'"
    ),
    "measure performance": (
        "return past_filter((298, 241)[MACHINE], ctypes.create_string_buffer(struct.pack('IIQ', 1, 112, 9), 112), 0,"
        " -1, -1, 0)"
    ),
    "io_uring": "return past_filter(425, 8, ctypes.create_string_buffer(120))",
    "a handle of a file": (
        "return past_filter((303, 264)[MACHINE], -100, '/usr', ctypes.create_string_buffer(struct.pack('Ii', 128, 0),"
        " 136), ctypes.create_string_buffer(8), 0)"
    ),
    "open by a guessed handle": (
        "d = os.open('/', 0); return past_filter((304, 265)[MACHINE], d, ctypes.create_string_buffer(struct.pack('IiQ',"
        " 8, 1, 2), 136), 0)"
    ),
    "read the kernel's log": "return past_filter((103, 116)[MACHINE], 3, ctypes.create_string_buffer(4096), 4096)",
    "switch the filter off": (
        "return past_filter((317, 277)[MACHINE], 1, 0, 0) if libc.prctl(22, 0, 0, 0, 0) == 0 else past_filter((101,"
        " 117)[MACHINE], 0, 0, 0, 0)"
    ),
    "forget no_new_privs": "return succeeded(libc.prctl(38, 0, 0, 0, 0), 'no_new_privs is off')",
    "raise a capability": "return succeeded(libc.prctl(47, 2, 21, 0, 0), 'an ambient capability')",
    "a filter that lets all pass": (
        "r = libc.prctl(22, 2, struct.pack('HHIQ', 1, 0, 0, 0), 0, 0); return past_filter((272, 97)[MACHINE],"
        " 0x10000000)"
    ),
}


def _plain(name: str, args: str = "0, 0, 0, 0, 0") -> Inside:
    x86, arm, _ = CALLS[name]
    return Inside(
        f"{name}({args})",
        f"n = ({x86}, {arm})[MACHINE]\nif n is None: raise OSError(errno.ENOSYS, 'not on this machine')\nreturn"
        f" past_filter(n, {args})",
    )


def _x32(name: str) -> Inside:
    return Inside(f"{name} by x32", f"return past_filter({CALLS[name][0]} | 0x40000000, 0, 0, 0, 0, 0)")


def _old(name: str) -> Inside:
    return Inside(f"{name} by int 0x80", f"return int80({CALLS[name][2]})")


def _fuzz(dice: random.Random, number: int) -> Inside:
    values = (
        "0",
        "1",
        "-1",
        "3",
        "4096",
        "0x7fffffff",
        "-100",
        "given['worktree']",
        "'/proc/1/root'",
        "given['targets'][0]",
        "ctypes.create_string_buffer(256)",
    )
    calls = "\n".join(
        f"try: syscall({dice.randrange(0, 470) | dice.choice((0, 0, 0, 0x40000000))},"
        f" {', '.join(dice.choice(values) for _ in range(6))})\nexcept OSError: pass"
        for _ in range(30)
    )
    return Inside(f"thirty random calls {number}", f"{calls}\nreturn 'done'", claim=False)


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    x86 = platform.machine() == "x86_64"
    if dice is None:
        yield from (_plain(name) for name in CALLS)
        yield from (Inside(name, code) for name, code in EXACT.items())
        if x86:
            yield from (_x32(name) for name, numbers in CALLS.items() if numbers[0] is not None)
            yield from (_old(name) for name, numbers in CALLS.items() if numbers[2] is not None)
            yield Inside("a unix socket by int 0x80", "return int80(359, 1, 1, 0)")
            yield Inside("clone with namespaces by int 0x80", "return int80(120, 0x10000011, 0, 0)")
        return
    for number in range(8):
        name = dice.choice(sorted(CALLS))
        yield _plain(
            name,
            ", ".join(
                dice.choice(("0", "1", "-1", "-3", "0x10000000", "given['worktree']", "bytes(128)")) for _ in range(5)
            )
            + f" , {number}",
        )
        if x86 and CALLS[name][0] is not None:
            yield _x32(name)
    yield from (_fuzz(dice, number) for number in range(4))

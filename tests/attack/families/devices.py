"""Devices, terminals, and the files by which the kernel is set."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Inside
from tests.attack.watch import SETTINGS

NODES = {
    "memory": ("S_IFCHR", 1, 1),
    "kernel memory": ("S_IFCHR", 1, 2),
    "ports": ("S_IFCHR", 1, 4),
    "kernel log": ("S_IFCHR", 1, 11),
    "null": ("S_IFCHR", 1, 3),
    "console": ("S_IFCHR", 5, 1),
    "fuse": ("S_IFCHR", 10, 229),
    "tun": ("S_IFCHR", 10, 200),
    "kvm": ("S_IFCHR", 10, 232),
    "loop control": ("S_IFCHR", 10, 237),
    "a disk": ("S_IFBLK", 8, 0),
    "a virtual disk": ("S_IFBLK", 254, 0),
    "a loop": ("S_IFBLK", 7, 0),
}
FILES = (
    "mem",
    "kmem",
    "port",
    "kmsg",
    "sda",
    "vda",
    "nvme0n1",
    "loop0",
    "loop-control",
    "fuse",
    "kvm",
    "net/tun",
    "vhost-net",
    "userfaultfd",
    "snapshot",
)
FILES += (
    "mapper/control",
    "btrfs-control",
    "rtc0",
    "watchdog",
    "hwrng",
    "uinput",
    "input/event0",
    "dri/card0",
    "tty0",
    "tty1",
    "vcs",
    "console",
    "uhid",
)
KNOBS = (
    *SETTINGS,
    *(
        "/proc/sysrq-trigger",
        "/proc/acpi/wakeup",
        "/proc/irq/0/smp_affinity",
        "/proc/mtrr",
        "/proc/timer_list",
        "/proc/sys/fs/binfmt_misc/register",
    ),
    *(
        "/sys/power/state",
        "/sys/kernel/debug",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/module/kernel",
        "/sys/class/net/lo/mtu",
        "/sys/kernel/mm/ksm/run",
    ),
    *(
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sys/user/max_user_namespaces",
        "/proc/sys/kernel/yama/ptrace_scope",
        "/proc/sys/kernel/unprivileged_bpf_disabled",
    ),
)
READS = ("/proc/kcore", "/proc/kmsg", "/proc/1/root/etc/shadow", "/etc/shadow", "/sys/kernel/debug/tracing/trace_pipe")
TERMINALS = ("0", "1", "2", "pty", "/dev/tty", "/dev/console", "/dev/pts/0", "/dev/pts/1", "/dev/ptmx")
REQUESTS = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "TIOCCONS": 0x541D, "TIOCSCTTY": 0x540E, "TIOCSETD": 0x5423}


def _node(name: str, how: str) -> Inside:
    kind, major, minor = NODES[name]
    make = {
        "mknod": "os.mknod('node', mode, dev)",
        "mknodat": "d = os.open('.', os.O_DIRECTORY); os.mknod('node', mode, dev, dir_fd=d)",
        "in /tmp": "os.chdir('/tmp'); os.mknod('node', mode, dev)",
        "in /dev": "os.chdir('/dev'); os.mknod('node', mode, dev)",
        "in /dev/shm": "os.chdir('/dev/shm'); os.mknod('node', mode, dev)",
    }[how]
    code = (
        f"import stat\nmode, dev = stat.{kind} | 0o666, os.makedev({major}, {minor})\n{make}\nd = os.open('node',"
        " os.O_RDWR); return 'opened a device'"
    )
    return Inside(f"{how} of {name}", code)


def _knob(path: str, how: str) -> Inside:
    where = {"itself": path, "root of itself": f"/proc/self/root{path}", "root of process 1": f"/proc/1/root{path}"}[
        how
    ]
    code = f"p = '{where}'\nold = open(p, 'rb').read(4096) if os.path.isfile(p) else b'0'\n"
    code += "d = os.open(p, os.O_WRONLY); os.write(d, old or b'0'); return 'wrote a setting'"
    return Inside(f"set {path} by {how}", code)


def _terminal(which: str, request: str) -> Inside:
    opened = f"d = {which}" if which.isdigit() else f"d = os.open('{which}', os.O_RDWR | os.O_NOCTTY)"
    if which == "pty":
        opened = "a, d = os.openpty()"
    # Setting a discipline or a controlling terminal is harmless on a terminal of one's own.
    claim = request in ("TIOCSTI", "TIOCLINUX", "TIOCCONS") or which != "pty"
    high = "| 1 << 32" if request == "TIOCSTI" and which == "pty" else ""
    code = (
        f"{opened}\nb = ctypes.create_string_buffer(b'x')\nreturn succeeded(libc.ioctl(d,"
        f" ctypes.c_ulong({REQUESTS[request]} {high}), b), '{request}')"
    )
    return Inside(f"{request} on {which}", code, claim=claim and which != "/dev/ptmx")


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        yield from (_node(name, "mknod") for name in NODES)
        yield from (_node("memory", how) for how in ("mknodat", "in /tmp", "in /dev", "in /dev/shm"))
        yield from (
            Inside(f"open /dev/{name}", f"d = os.open('/dev/{name}', os.O_RDWR | os.O_NONBLOCK); return 'opened'")
            for name in FILES
            if name != "console"
        )
        yield from (_knob(path, "itself") for path in KNOBS)
        yield from (_knob(KNOBS[0], how) for how in ("root of itself", "root of process 1"))
        yield from (
            Inside(
                f"read {path}",
                f"d = os.open('{path}', os.O_RDONLY | os.O_NONBLOCK); return f'read {{len(os.read(d, 1))}}'",
            )
            for path in READS
        )
        yield from (_terminal(which, "TIOCSTI") for which in TERMINALS)
        yield from (_terminal("pty", request) for request in REQUESTS)
        return
    for _ in range(6):
        yield _node(dice.choice(sorted(NODES)), dice.choice(("mknod", "mknodat", "in /tmp", "in /dev", "in /dev/shm")))
        yield _knob(dice.choice(KNOBS), dice.choice(("itself", "root of itself", "root of process 1")))
        yield _terminal(dice.choice(TERMINALS), dice.choice(sorted(REQUESTS)))

"""Signals to, and looks into, the processes of the host."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Inside

WHO = ("victim", "keeper", "suite")
# Numbers (x86_64, aarch64). Those marked True lead nowhere for any tool: getting past the filter is an escape.
DEEDS: dict[str, tuple[str, bool]] = {
    "kill": ("os.kill(p, {n})", False),
    "kill its group": ("os.killpg(p, {n})", False),
    "tgkill": ("syscall((234, 131)[MACHINE], p, p, {n})", False),
    "tkill": ("syscall((200, 130)[MACHINE], p, {n})", False),
    "queue a signal": (
        "syscall((129, 138)[MACHINE], p, {n}, ctypes.create_string_buffer(struct.pack('iii', {n}, 0, -1), 128))",
        False,
    ),
    "queue a signal to a thread": (
        "syscall((297, 240)[MACHINE], p, p, {n}, ctypes.create_string_buffer(struct.pack('iii', {n}, 0, -1), 128))",
        False,
    ),
    "signal by pidfd": ("d = os.pidfd_open(p); syscall(424, d, {n}, 0, 0)", False),
    "be told by signal": (
        (
            "import fcntl; r, w = os.pipe(); fcntl.fcntl(r, 8, p); fcntl.fcntl(r, 10, {n}); fcntl.fcntl(r, 4, 0x2800);"
            " os.write(w, b'x')"
        ),
        False,
    ),
    "seize": ("return past_filter((101, 117)[MACHINE], 0x4206, p, 0, 0)", True),
    "attach": ("return past_filter((101, 117)[MACHINE], 16, p, 0, 0)", True),
    "read memory": (
        "b = ctypes.create_string_buffer(4096); return past_filter((310, 270)[MACHINE], p, b, 1, b, 1, 0)",
        True,
    ),
    "write memory": (
        "b = ctypes.create_string_buffer(4096); return past_filter((311, 271)[MACHINE], p, b, 1, b, 1, 0)",
        True,
    ),
    "advise memory": ("return past_filter(440, p, 0, 0, 0, 0)", True),
    "take a descriptor": ("return past_filter(438, 3, 0, 0)", True),
    "compare": ("return past_filter((312, 272)[MACHINE], p, os.getpid(), 0, 0, 0)", True),
    "open its memory": ("return read(f'/proc/{p}/mem')", False),
    "read its environment": ("return read(f'/proc/{p}/environ')", False),
    "read its command": ("return read(f'/proc/{p}/cmdline')", False),
    "list its descriptors": ("return str(os.listdir(f'/proc/{p}/fd'))", False),
    "open its descriptor": ("return read(f'/proc/{p}/fd/0')", False),
    "renice": ("os.setpriority(os.PRIO_PROCESS, p, 19)", False),
    "bind to a processor": ("os.sched_setaffinity(p, {0})", False),
    "limit": ("import resource; resource.prlimit(p, resource.RLIMIT_NOFILE, (3, 3))", False),
    "io priority": ("syscall((251, 30)[MACHINE], 1, p, 0)", False),
    "schedule": ("os.sched_setscheduler(p, 3, os.sched_param(0))", False),
    "move its pages": ("syscall((256, 238)[MACHINE], p, 64, 0, 0)", False),
    "its out-of-memory score": ("return write(f'/proc/{p}/oom_score_adj', '1000', os.O_WRONLY)", False),
    "its memory limit": ("return write(f'/proc/{p}/clear_refs', '1', os.O_WRONLY)", False),
    "its user map": ("return write(f'/proc/{p}/uid_map', '0 0 1', os.O_WRONLY)", False),
}
SELF = {
    "kill everybody": "os.kill(-1, 9); return 'killed'",
    "terminate everybody": "os.kill(-1, 15); return 'sent'",
    "kill process 1": "os.kill(1, 9)",
    "stop the parent": "os.kill(os.getppid(), 19); os.kill(os.getppid(), 18)",
}


def _to(who: str, deed: str, number: int) -> Inside:
    code, claim = DEEDS[deed]
    text = code.replace("{n}", str(number)).replace("p;", "p;")
    return Inside(f"{deed} ({number}) {who}", f"p = given['{who}']\n" + "\n".join(text.split("; ")), claim=claim)


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        for deed in DEEDS:
            for who in WHO[:2] if "{n}" not in DEEDS[deed][0] else WHO[:1]:
                yield _to(who, deed, 9)
        for number in (1, 2, 15, 18, 19, 34, 64):
            yield _to("victim", "kill", number)
        for name, code in SELF.items():
            yield Inside(name, code, claim=False)
        return
    for _ in range(24):
        yield _to(dice.choice(WHO[:2]), dice.choice(sorted(DEEDS)), dice.choice((*range(1, 32), *range(34, 65))))

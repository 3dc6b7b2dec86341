"""Sockets that lead to something on the host: our own, an agent's, a container engine's, the kernel's."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Inside

KINDS = ("STREAM", "DGRAM", "SEQPACKET", "RAW")
SYSTEM = (
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
)
NAMED = {
    "its path": "s",
    "a relative path": "os.path.relpath(s)",
    "the root of process 1": "'/proc/1/root' + s",
    "a link": "(os.path.lexists('sock-link') or os.symlink(s, 'sock-link')) and 'sock-link' or 'sock-link'",
    "the cwd of process 1": "'/proc/1/cwd' + s",
}
# AF_UNIX 1, AX25 3, NETLINK 16, PACKET 17, ALG 38, VSOCK 40, XDP 44: everything but the two of the internet.
OTHERS = [number for number in range(1, 47) if number not in (2, 10)]


def _path(number: int, kind: str, named: str, access: str = "sandbox") -> Inside:
    code = (
        f"s = given['sockets'][{number} % len(given['sockets'])]\nreturn connect(socket.AF_UNIX, socket.SOCK_{kind},"
        f" {NAMED[named]})"
    )
    return Inside(f"socket {number} ({kind}) by {named}, {access}", code, access=access)


def _abstract(kind: str, end: str, access: str) -> Inside:
    code = f"return connect(socket.AF_UNIX, socket.SOCK_{kind}, '\\0' + given['abstract'] + '{end}')"
    return Inside(f"abstract socket ({kind}{end}), {access}", code, access=access)


def _other(family: int, kind: int, protocol: int, access: str) -> Inside:
    allowed = (
        "if given_family == 16 and protocol == 0: raise OSError(errno.EPERM, 'routes may be asked with the network')\n"
        if access == "network"
        else ""
    )
    code = (
        f"given_family, protocol = {family}, {protocol}\n{allowed}socket.socket({family}, {kind},"
        f" {protocol}).close()\nreturn 'socket opened'"
    )
    return Inside(f"a socket of family {family}, kind {kind}, protocol {protocol}, {access}", code, access=access)


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        for number in range(len(ground.given["sockets"])):
            yield _path(number, "STREAM", "its path")
        for named in NAMED:
            yield _path(0, "STREAM", named)
        for number, path in enumerate(SYSTEM):
            yield Inside(f"the system's socket {path}", f"return connect(socket.AF_UNIX, socket.SOCK_STREAM, '{path}')")
            if number < 2:
                code = f"return connect(socket.AF_UNIX, socket.SOCK_STREAM, '{path}')"
                yield Inside(f"the system's socket {path}, network", code, access="network")
        for kind, end in (("STREAM", ""), ("DGRAM", "d"), ("SEQPACKET", "p")):
            for access in ("sandbox", "network"):
                yield _abstract(kind, end, access)
        for access in ("sandbox", "network"):
            yield _path(0, "STREAM", "its path", access)
            for family in OTHERS:
                yield _other(family, 1 if family == 1 else 3, 0, access)
            for protocol in range(24):
                yield _other(16, 3, protocol, access)
        yield Inside("a pair of datagram sockets sending to a path", _PAIR)
        yield Inside(
            "a socket by an old system call",
            "return past_filter(41, 1, 1, 0) if MACHINE == 0 else past_filter(198, 1, 1, 0)",
        )
        yield Inside(
            "a socket of family 1 in the high bits",
            "n = (41, 198)[MACHINE]; return f'opened {syscall(n, 1 | 1 << 32, 1, 0)}'",
        )
        return
    for _ in range(24):
        access = dice.choice(("sandbox", "sandbox", "network"))
        if dice.random() < 0.5:
            yield _path(dice.randrange(8), dice.choice(KINDS), dice.choice(sorted(NAMED)), access)
        else:
            yield _other(
                dice.choice(OTHERS),
                dice.randrange(1, 11) | dice.choice((0, 0o2000000, 0o4000)),
                dice.randrange(64),
                access,
            )


_PAIR = """
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
ours.sendto(b'hello from inside', '\\0' + given['abstract'] + 'd')
return 'sent'
"""

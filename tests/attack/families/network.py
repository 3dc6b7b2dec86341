"""Reaching a server of this machine without the network being allowed. Traffic only ever goes to loopback."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Inside

HOSTS = (
    "127.0.0.1",
    "localhost",
    "0.0.0.0",
    "127.1",
    "127.255.255.254",
    "0177.0.0.1",
    "2130706433",
    "::1",
    "::ffff:127.0.0.1",
    "::",
)
WAYS = {
    "tcp": "s = socket.create_connection((h, p), 1.5); s.send(b'x'); return 'connected'",
    "udp": (
        "f = socket.AF_INET6 if ':' in h else socket.AF_INET; socket.socket(f, socket.SOCK_DGRAM).sendto(b'x', (h, p));"
        " return 'sent'"
    ),
    "tcp fast open": (
        "s = socket.socket(socket.AF_INET6 if ':' in h else socket.AF_INET); s.sendto(b'x', 0x20000000, (h, p)); return"
        " 'sent'"
    ),
    "bash": "return run('/bin/bash', '-c', f'exec 3<>/dev/tcp/{h}/{p}; echo x >&3')",
    "udp by bash": "return run('/bin/bash', '-c', f'echo x > /dev/udp/{h}/{p}')",
    "raw": (
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP).sendto(b'x' * 28, (h, 0)); return 'sent'"
    ),
    "bound to a device": (
        "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, 25, b'eth0\\0'); s.settimeout(1); s.connect((h, p));"
        " return 'connected'"
    ),
    "many ports": "\n".join(
        (
            "for port in range(p - 40, p + 40):",
            "    s = socket.socket(); s.settimeout(0.02)",
            "    if s.connect_ex(('127.0.0.1', port)) == 0: return f'connected to {port}'",
            "raise PermissionError(errno.EPERM, 'nobody listens')",
        )
    ),
}


def _reach(way: str, host: str) -> Inside:
    # A datagram to the sandbox's own loopback is sent and lost; whether one arrived is seen from outside.
    return Inside(
        f"{way} to {host}", f"h, p = '{host}', given['port']\n{WAYS[way]}", claim=way in ("tcp", "bash", "many ports")
    )


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        for way in WAYS:
            yield _reach(way, HOSTS[0])
        for host in HOSTS[1:]:
            yield _reach("tcp", host)
            yield _reach("udp", host)
        yield Inside("bring an interface up", "return run('/sbin/ip', 'link', 'add', 'x0', 'type', 'dummy')")
        yield Inside("a new interface by ioctl", _TUN)
        yield Inside(
            "change the firewall",
            "return past_filter((54, 208)[MACHINE], socket.socket(socket.AF_INET, 3, 255).fileno(), 0, 64, 0, 0)",
        )
        yield Inside(
            "listen for the host",
            "s = socket.create_server(('0.0.0.0', given['port'])); return 'listening'",
            claim=False,
        )
        return
    for _ in range(12):
        host = dice.choice((*HOSTS, f"127.{dice.randrange(256)}.{dice.randrange(256)}.{dice.randrange(1, 255)}"))
        yield _reach(dice.choice(sorted(WAYS)), host)


_TUN = """
fd = os.open('/dev/net/tun', os.O_RDWR)
import fcntl
fcntl.ioctl(fd, 0x400454CA, struct.pack('16sH', b'tun9', 1))
return 'made an interface'
"""

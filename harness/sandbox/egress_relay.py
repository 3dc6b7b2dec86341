"""The inner end of the way out for a call that names its hosts: what runs inside the sandbox. Standard library only,
nothing of ours.

The call keeps its own empty network. The runner opens a listening socket on that network's loopback and hands it, over
an inherited socket, to a proxy that lives outside (`harness.sandbox.egress_proxy`); what connects to it is answered
from there.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

PORT = 61080
"""On the sandbox's own loopback, above the ports that a kernel hands out by itself."""
CHANNEL_FD = 7
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def environment(hosts: Iterable[str]) -> dict[str, str]:
    """What makes programs use the proxy.

    Loopback names stay the sandbox's own, unless ``hosts`` (without ports) name them.
    """
    address = f"http://127.0.0.1:{PORT}"
    named = set(hosts)
    direct = ",".join(name for name in _LOOPBACK if name not in named)
    found: dict[str, str] = {}
    for name, value in (
        ("http_proxy", address),
        ("https_proxy", address),
        ("all_proxy", address),
        ("no_proxy", direct),
    ):
        found[name] = value
        found[name.upper()] = value
    return found


def hand_over() -> bool:
    """Open the listening socket and give it to the proxy outside; True once that serves it.

    Nothing of it stays open here.
    """
    with socket.socket(fileno=CHANNEL_FD) as channel, socket.create_server(("127.0.0.1", PORT), backlog=64) as listener:
        os.set_inheritable(channel.fileno(), False)
        try:
            socket.send_fds(channel, [b"L"], [listener.fileno()])
            return channel.recv(1) == b"R"
        except OSError:  # the proxy ended before it served
            return False

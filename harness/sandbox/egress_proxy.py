"""The way out of the sandbox for a call that names its hosts: a small HTTP proxy that dials those and nothing else.
Standard library only.

``python -I -S …/egress_proxy.py HOST[:PORT]…`` outside the sandbox, one process a call. Descriptor 3 is a socket over
which the runner inside hands out its listening socket (`harness.sandbox.egress_relay`), 4 is the call's pidfd: the
proxy ends when the call does, or the keeper. It takes ``CONNECT host:port`` and plain ``http://`` requests, reads host
names strictly, resolves a name once and dials that address. Names that lead to this machine or into a private network
are refused; such an address has to be named itself.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import resource
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

# isolated mode knows only the standard library; our own code comes last, so it can shadow nothing
if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from harness.domain.addresses import WEB_PORTS, BadAddress, is_address, join_host, split_host

CHANNEL_FD = 3
CALL_FD = 4
CONNECTIONS = 64
HEAD_BYTES = 64 << 10
HEAD_S = 30.0
DIAL_S = 30.0
_CHUNK = 64 << 10
_STACK = 256 << 10
_REQUEST = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]+) HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_OURS = frozenset((b"connection", b"host", b"keep-alive", b"proxy-authorization", b"proxy-connection"))
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Iterable[str]]


class Refused(Exception):
    """A request that is not passed on; ``status`` is the HTTP status, the message its reason, in plain ASCII."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """Where a client wants to go, and what is sent there first (empty for a tunnel)."""

    host: str
    port: int
    head: bytes
    tunnel: bool


class Hosts:
    """The hosts of one call, each with the ports it may be dialled at."""

    def __init__(self, named: Iterable[str]) -> None:
        """Raises BadAddress."""
        self._ports: dict[str, set[int]] = {}
        for text in named:
            host, port = split_host(text)
            self._ports.setdefault(host, set()).update(WEB_PORTS if port is None else (port,))

    def check(self, host: str, port: int) -> None:
        """Raise Refused unless exactly this host was named with this port."""
        if port in self._ports.get(host, ()):
            return
        known = ", ".join(
            join_host(name, number) for name, numbers in self._ports.items() for number in sorted(numbers)
        )
        raise Refused(403, f"{join_host(host, port)} is not among the hosts this call named ({known})")


def parse(head: bytes) -> Request:
    """A request head, up to and with its empty line.

    Raises Refused on everything that is not plainly one of the two forms.
    """
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    line = _REQUEST.fullmatch(lines[0])
    if line is None:
        raise Refused(400, "this is no request to a proxy")
    method = line[1]
    target = line[2].decode("ascii")
    try:
        if method == b"CONNECT":
            host, port = split_host(target)
            if port is None:
                raise Refused(400, "CONNECT needs a port")
            return Request(host, port, b"", True)
        if not target.startswith("http://"):
            raise Refused(400, "only CONNECT and http:// addresses are passed on")
        authority = re.split(r"[/?#]", target[7:], maxsplit=1)[0]
        path = target[7 + len(authority) :]
        host, given = split_host(authority)
    except BadAddress as exc:
        raise Refused(400, str(exc)) from exc
    port = 80 if given is None else given
    fields = [b"Host: " + join_host(host, None if port == 80 else port).encode(), b"Connection: close"]
    for raw in lines[1:]:
        field = _FIELD.fullmatch(raw)
        if field is None:
            raise Refused(400, "a header line is malformed")
        if field[1].lower() not in _OURS:
            fields.append(raw)
    first = method + b" " + (path if path.startswith("/") else "/" + path).encode() + b" HTTP/1.1"
    return Request(host, port, b"\r\n".join([first, *fields]) + b"\r\n\r\n", False)


def outward(text: str) -> bool:
    """True for an address of the public network; this machine, link-local, private and reserved ranges are not."""
    address: Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return outward(str(inner))
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved and not _own(address)


def _own(address: Address) -> bool:
    """True when an interface of this machine has the address: only then a socket can be bound to it."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def system_resolver(host: str, port: int) -> list[str]:
    """Every address of a name, as the system's resolver gives them. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def addresses(host: str, port: int, resolver: Resolver) -> list[str]:
    """What to dial for a named host; a name is resolved once, and only public addresses of it count. Raises Refused."""
    if is_address(host):
        return [host]
    if host == "localhost":
        return ["127.0.0.1", "::1"]
    try:
        found = list(resolver(host, port))
    except (OSError, UnicodeError) as exc:
        raise Refused(502, f"{host} cannot be resolved") from exc
    usable = [address for address in found if outward(address)]
    if found and not usable:
        raise Refused(
            403, f"{host} leads to this machine or a private network ({found[0]}); name that address itself in hosts"
        )
    return usable


def dial(host: str, port: int, resolver: Resolver) -> socket.socket:
    """A connection to the first address of ``host`` that answers. Raises Refused."""
    why = "it has no address"
    for address in addresses(host, port, resolver):
        try:
            return socket.create_connection((address, port), DIAL_S)
        except OSError as exc:
            why = exc.strerror or "it does not answer"
    raise Refused(502, f"{join_host(host, port)} cannot be reached: {why}")


def read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """(request head, bytes that came after it). Raises Refused, OSError."""
    client.settimeout(HEAD_S)
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = client.recv(_CHUNK)
        if not chunk or len(data) + len(chunk) > HEAD_BYTES:
            raise Refused(400, "the request is cut or too large")
        data += chunk
    head, end, rest = data.partition(b"\r\n\r\n")
    return head + end, rest


def serve(client: socket.socket, hosts: Hosts, resolver: Resolver = system_resolver) -> None:
    """Answer one client, from its request to the end of the connection."""
    with client:
        try:
            head, rest = read_head(client)
            request = parse(head)
            hosts.check(request.host, request.port)
            upstream = dial(request.host, request.port, resolver)
        except Refused as exc:
            body = f"{exc}\n".encode("ascii", "replace")
            client.sendall(
                b"HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
                % (exc.status, body[:-1], len(body), body)
            )
            return
        with upstream:
            client.settimeout(None)
            upstream.settimeout(None)
            if request.tunnel:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            upstream.sendall(request.head + rest)
            back = threading.Thread(target=pump, args=(upstream, client), daemon=True)
            back.start()
            pump(client, upstream)
            back.join()


def pump(source: socket.socket, target: socket.socket) -> None:
    """Copy one direction to its end, and pass the end on; an error ends both directions."""
    try:
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def confine() -> None:
    """What parses a sandboxed agent's bytes outside the sandbox can write no file and start nothing with more rights.

    Raises OSError.
    """
    from harness.linux import kernel
    from harness.sandbox import landlock, seccomp

    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    for what, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 4 * CONNECTIONS),
    ):
        hard = resource.getrlimit(what)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (value, value))
    landlock.restrict([])
    seccomp.apply(network=True)


def run(named: Sequence[str]) -> int:
    """Serve until the call ends; returns the exit code."""
    confine()
    hosts = Hosts(named)
    threading.stack_size(_STACK)
    waiter = select.poll()
    waiter.register(CALL_FD, select.POLLIN)
    with socket.socket(fileno=CHANNEL_FD) as channel:
        waiter.register(channel, select.POLLIN)
        if any(fd == CALL_FD for fd, _ in waiter.poll()):
            return 0
        _, fds, _, _ = socket.recv_fds(channel, 1, 1)
        waiter.unregister(channel)
        if not fds:
            return 0
        listener = socket.socket(fileno=fds[0])
        channel.sendall(b"R")
    listener.setblocking(False)  # a client that is gone again must not keep us from seeing the end of the call
    waiter.register(listener, select.POLLIN)
    places = threading.BoundedSemaphore(CONNECTIONS)

    def answer(client: socket.socket) -> None:
        try:
            serve(client, hosts)
        except OSError:
            client.close()  # one client's broken connection
        finally:
            places.release()

    while all(fd != CALL_FD for fd, _ in waiter.poll()):
        try:
            client, _ = listener.accept()
        except OSError:
            continue
        if places.acquire(blocking=False):
            threading.Thread(target=answer, args=(client,), daemon=True).start()
        else:
            client.close()
    return 0


if __name__ == "__main__":
    code = run(sys.argv[1:])
    os._exit(code)  # connections that still run end with the call

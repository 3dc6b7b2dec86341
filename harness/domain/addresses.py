"""Addresses of the network: hosts in one strict form, URLs without their credentials. Pure, standard library only.

What is judged and shown must be what is dialled, so a host has exactly one spelling here: letters, digits and hyphens
in lower case, or a plain IP address. What some resolver reads in a way of its own (``0x7f.1``, a trailing dot, a NUL
byte) is refused.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

MAX_HOSTS = 32
WEB_PORTS = (80, 443)
"""The ports of a host that is named without one."""
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")


class BadAddress(ValueError):
    """A host that cannot be named this way; the message says what is wrong with it."""


def split_host(text: str) -> tuple[str, int | None]:
    """``host``, ``host:port``, ``[v6]`` or ``[v6]:port`` → (host without brackets, port or None). Raises BadAddress."""
    lowered = text.lower() if text.isascii() else text
    if lowered.startswith("["):
        host, closing, rest = lowered[1:].partition("]")
        if not closing or (rest and not rest.startswith(":")):
            raise BadAddress(f"{text[:80]!r} is not [address] or [address]:port")
        return _v6(host, text), _port(rest[1:], text) if rest else None
    host, colon, port = lowered.partition(":")
    if ":" in port:
        raise BadAddress(f"{text[:80]!r}: write an IPv6 address in brackets, such as [2001:db8::1]")
    return _name(host, text), _port(port, text) if colon else None


def join_host(host: str, port: int | None) -> str:
    """The one spelling of a host and an optional port."""
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


def normal_host(text: str) -> str:
    """The one spelling of what ``text`` names. Raises BadAddress."""
    return join_host(*split_host(text))


def is_address(host: str) -> bool:
    """True for an IP address (as `split_host` gives it), False for a name."""
    return ":" in host or bool(_NUMERIC.fullmatch(host.rpartition(".")[2]))


def _name(host: str, text: str) -> str:
    labels = host.split(".")
    if not host or len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadAddress(f"{text[:80]!r} is not a host name; use letters, digits, hyphens and dots, or an IP address")
    if _NUMERIC.fullmatch(labels[-1]):
        import ipaddress  # only here: the keeper, which loads this module, rarely needs it

        try:
            same = str(ipaddress.IPv4Address(host)) == host
        except ValueError:
            same = False
        if not same:
            raise BadAddress(f"{text[:80]!r} is neither a host name nor a plain IPv4 address such as 192.0.2.1")
    return host


def _v6(host: str, text: str) -> str:
    import ipaddress

    try:
        address = ipaddress.IPv6Address(host)
    except ValueError as exc:
        raise BadAddress(f"{text[:80]!r} is not an IPv6 address") from exc
    if address.scope_id is not None or address.ipv4_mapped is not None:
        raise BadAddress(f"{text[:80]!r}: a zone or an IPv4 address inside an IPv6 address cannot be named")
    return str(address)


def _port(port: str, text: str) -> int:
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise BadAddress(f"{text[:80]!r}: a port is a number from 1 to 65535")
    return int(port)


def strip_credential(url: str) -> tuple[str, bool]:
    """(``url`` without user name and password of a web address, whether something was removed); other forms stay."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, False
    if "@" not in parts.netloc or parts.scheme in ("", "file"):
        return url, False
    userinfo, _, host = parts.netloc.rpartition("@")
    if parts.scheme in ("ssh", "git+ssh", "ssh+git"):
        user, colon, _ = userinfo.partition(":")
        return urlunsplit(parts._replace(netloc=f"{user}@{host}")), bool(colon)
    return urlunsplit(parts._replace(netloc=host)), True

"""Patterns over named hosts in rules, read as ``host[:port]``. Pure.

``*`` stands for characters of a host name, or for every port. To allow, a pattern without a port means the ports of the
web, and IP addresses and ``localhost`` have to be spelled out; to ask or deny, a pattern is taken as widely as it
reads.
"""

from __future__ import annotations

import fnmatch

from harness.domain.addresses import WEB_PORTS, BadAddress, is_address, join_host, normal_host, split_host


def covers(pattern: str, named: str) -> bool:
    """True when an allow rule for ``pattern`` is enough for a call that names ``named``, a host in its one spelling."""
    try:
        host, port = split_host(named)
    except BadAddress:
        return False
    wanted, at = _split(pattern)
    by_name = not is_address(host) and host != "localhost" and fnmatch.fnmatchcase(host, wanted)
    if not by_name and wanted != join_host(host, None):
        return False
    return at == "*" or (at == str(port) if at else port is None or port in WEB_PORTS)


def unclear(pattern: str) -> bool:
    """True for a pattern that no allow rule may have: ``*`` stands for a whole host or for what comes before a dot,
    nothing else.
    """
    wanted, at = _split(pattern)
    if wanted != "*":
        wanted = wanted.removeprefix("*.")
        try:
            if normal_host(wanted) != wanted or split_host(wanted)[1] is not None:
                return True
        except BadAddress:
            return True
    return not (at in ("", "*") or at.isdecimal()) or pattern.endswith(":")


def touches(pattern: str, named: str) -> bool:
    """True when a rule that asks or denies for ``pattern`` is about ``named``."""
    try:
        host, port = split_host(named)
    except BadAddress:
        return True
    wanted, at = _split(pattern)
    shown = join_host(host, None)
    ports = {str(number) for number in (WEB_PORTS if port is None else (port,))}
    return (wanted == shown or fnmatch.fnmatchcase(shown, wanted)) and (at in ("", "*") or at in ports)


def _split(pattern: str) -> tuple[str, str]:
    host, colon, port = pattern.rpartition(":")
    return (host, port) if colon and not pattern.endswith("]") else (pattern, "")

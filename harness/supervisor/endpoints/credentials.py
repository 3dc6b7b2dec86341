"""Keys of model endpoints: in this process's memory and in the guardian's memfd, never in a file, a log or an
environment.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass

from harness.protocol.config.credential import Credential, key_problem, url_problem
from harness.supervisor.base.errors import OpError


@functools.lru_cache(maxsize=64)
def fingerprint(c: Credential) -> str:
    """Short name of a credential for the log; says nothing about the key."""
    return hashlib.sha256(
        b"watchfloor/credential\0" + c.base_url.encode() + b"\0" + c.key.encode("utf-8", "surrogateescape")
    ).hexdigest()[:12]


@dataclass(slots=True)
class _Entry:
    credential: Credential
    bad: bool = False


class Credentials:
    """Given credentials by fingerprint, newest last. ``fd`` is a memfd that outlives this process (or -1)."""

    def __init__(self, fd: int = -1) -> None:
        self._fd = fd
        self.changed: Callable[[], None] = lambda: None
        """Called when a key is known that was not: who waits for one looks again."""
        self._known: dict[str, _Entry] = {}
        if fd >= 0:
            raw = os.pread(fd, os.fstat(fd).st_size, 0)
            for item in json.loads(raw) if raw else []:
                c = Credential(str(item["base_url"]), str(item["key"]))
                self._known[fingerprint(c)] = _Entry(c)

    def add(self, c: Credential) -> str:
        """Remember a credential as the newest; returns its fingerprint. Known again, it is as good or bad as it was:
        who launches another session with it has not said that it is to be tried again.
        """
        name = fingerprint(c)
        known = self._known.pop(name, None)
        self._known[name] = known or _Entry(c)
        if self._fd >= 0:
            body = json.dumps(
                [{"base_url": e.credential.base_url, "key": e.credential.key} for e in self._known.values()]
            ).encode()
            os.pwrite(self._fd, body, 0)
            os.ftruncate(self._fd, len(body))
        if known is None:
            self.changed()
        return name

    def mark_bad(self, name: str) -> None:
        """The endpoint rejected it: others for the same endpoint are preferred from now on."""
        if (entry := self._known.get(name)) is not None:
            entry.bad = True

    def forgive(self, name: str = "") -> None:
        """The user says try again, with this one or with any: what was rejected may be good now."""
        for known, entry in self._known.items():
            if name in ("", known):
                entry.bad = False

    def keys(self) -> tuple[str, ...]:
        """Every key that we hold: what must not be written down anywhere."""
        return tuple(entry.credential.key for entry in self._known.values())

    def find(self, base_url: str, name: str, configured: Credential | None) -> Credential | None:
        """The credential of a session: the one it was launched with, else the newest for its endpoint, else the
        configured one.
        """
        entries: list[_Entry] = []
        if name in self._known:
            entries.append(self._known[name])
        entries += [e for e in reversed(self._known.values()) if e.credential.base_url == base_url and e not in entries]
        if configured is not None and configured.base_url == base_url:
            known = self._known.get(fingerprint(configured))
            entries.append(known or _Entry(configured))
        usable = [e for e in entries if e.credential.base_url == base_url]
        fresh = [e for e in usable if not e.bad]
        return (fresh or usable)[0].credential if usable else None


def given_credential(raw: object) -> Credential | None:
    """The credential of an op's argument. Raises OpError ``bad_request``."""
    if raw is None:
        return None
    base_url, key = (raw.get("base_url"), raw.get("key")) if isinstance(raw, dict) else (None, None)
    if not isinstance(base_url, str) or not isinstance(key, str):
        raise OpError("bad_request", "credential must be {base_url, key}")
    url = base_url.rstrip("/")
    key = key.strip()
    if problem := unusable(url) or key_problem(key):
        raise OpError("bad_request", problem)
    return Credential(url, key) if key else None


def unusable(url: str) -> str:
    """Why a base URL cannot be used; empty when it can."""
    why = url_problem(url)
    return f"the base URL {why}" if why else ""

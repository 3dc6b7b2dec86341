"""What a person types to mean a session: its id, the beginning of one, its name; with a host, one of another machine.

Standard library only. Logs and folders hold plain ids: a host is only ever said between people and programs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SID = re.compile(r"[a-z0-9]{10}")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")


class OtherHost(ValueError):
    """A session of another machine was named where only our own can be meant."""

    def __init__(self, name: SessionName) -> None:
        super().__init__(
            f"{name} names a session of the machine {name.host}, and this fleet drives only its own sessions"
        )


@dataclass(frozen=True, slots=True)
class SessionName:
    """``text`` is an id when there is a ``host``, else an id, the beginning of one or a name; no host: this machine."""

    text: str
    host: str = ""

    @classmethod
    def parse(cls, text: str) -> SessionName:
        """``host/id``, else all of it is of this machine: names may hold a slash, too."""
        host, slash, sid = text.partition("/")
        if slash and is_host(host) and is_session_id(sid):
            return cls(sid, host)
        return cls(text)

    def own(self) -> str:
        """What to look for among our own sessions. Raises OtherHost."""
        if self.host:
            raise OtherHost(self)
        return self.text

    def __str__(self) -> str:
        return f"{self.host}/{self.text}" if self.host else self.text


def is_session_id(text: str) -> bool:
    """True for the name of a session folder."""
    return _SID.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """True for the name of a machine: labels of lowercase letters, digits and inner hyphens, 253 characters at most."""
    return _HOST.fullmatch(text) is not None

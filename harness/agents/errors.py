"""Why an agent's process stops in the middle of something. Each passes through whatever the agent is at untouched."""

from __future__ import annotations


class Interruption(Exception):
    """Base: leave what you are doing."""


class Lost(Interruption):
    """The keeper is gone: exit, there is nowhere to put a record."""


class NoSupervisor(Interruption):
    """The supervisor is gone or not ready for us: wait for it, append nothing new."""


class Fenced(Interruption):
    """A newer process holds the lease, or the log takes no more records: exit and write nothing."""


class Stopped(Interruption):
    """The user stopped the session while the agent was thinking."""


class Refused(Exception):
    """The other side refused an op: ``code`` for programs, the text for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message or code)
        self.code = code


class Conflict(Refused):
    """The log has moved since the decision was taken: decide again."""


class CannotGoOn(Exception):
    """The agent cannot take up this log, or not with these settings; the text is for the person."""

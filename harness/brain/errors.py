"""Why a brain stops in the middle of something. Each of them passes through a running model request untouched."""

from __future__ import annotations


class Interruption(Exception):
    """Base: leave what you are doing."""


class Lost(Interruption):
    """The keeper is gone: exit, there is nowhere to put a record."""


class NoSupervisor(Interruption):
    """The supervisor is gone or not ready for us: wait for it, append nothing new."""


class Fenced(Interruption):
    """A newer brain holds the lease, or the log takes no more records: exit and write nothing."""


class Stopped(Interruption):
    """The user stopped the session while a reply was on its way."""


class Refused(Exception):
    """The other side refused an op: ``code`` for programs, the text for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message or code)
        self.code = code


class Conflict(Refused):
    """The log has moved since the decision was taken: decide again."""


class Overdue(Exception):
    """A reply took longer than it may; the text says which deadline."""


class TooLarge(Exception):
    """A reply is larger than what can be kept."""

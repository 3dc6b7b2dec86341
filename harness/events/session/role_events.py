"""What the log keeps of roles."""

from __future__ import annotations

import msgspec


class PinnedRole(msgspec.Struct, frozen=True):
    """Who plays a ``part`` of a session (worker, judge, planner): the role's name, the SHA-256 of its file's text, and
    that text.
    """

    part: str
    name: str
    version: str
    text: str

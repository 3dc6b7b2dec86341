"""What a client sees of a job that runs. Its texts are untrusted: whoever shows them passes `untrusted.to_display`."""

from __future__ import annotations

import msgspec


class JobView(msgspec.Struct, frozen=True):
    """``what`` is its command on one line, ``since`` when it began, ``printed`` the bytes it printed, ``last`` its
    newest lines.
    """

    sid: str
    session: str
    job: str
    call_id: str
    what: str
    since: str
    runs_s: int
    limit_s: int
    printed: int
    last: str


class JobList(msgspec.Struct, frozen=True, kw_only=True):
    """Those that run."""

    jobs: list[JobView]


class JobOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of what one printed, in base64: from ``offset`` on, ``end`` is behind its last byte."""

    data: str
    offset: int
    end: int

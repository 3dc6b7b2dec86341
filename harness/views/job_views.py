"""What a client sees of a job that runs. Its texts are untrusted: whoever shows them passes `untrusted.to_display`."""

from __future__ import annotations

import msgspec


class JobView(msgspec.Struct, frozen=True):
    """A running job: its command on one line (``what``), since when, how many bytes it printed, its newest lines
    (``last``).
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
    """Running jobs."""

    jobs: list[JobView]


class JobOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a job's output, in base64, from ``offset``; ``end`` is behind the last byte printed."""

    data: str
    offset: int
    end: int

"""What a log says of jobs: commands that outlive the call that started them."""

from __future__ import annotations

from harness.events.body import BlobRef, Body


class JobStarted(Body, frozen=True, kw_only=True):
    """A job runs, started by call ``call_id``. ``what`` is its command on one line, ``limit_s`` the seconds that it may
    run, ``grace_s`` the seconds between the request to end and the kill, ``log_bytes`` about how much of its output is
    kept. ``clock`` is the monotonic clock at the start: it cannot be set and does not advance during suspend.
    """

    TYPE = "job.started"
    job: str
    call_id: str
    what: str = ""
    limit_s: int = 0
    grace_s: float = 0.0
    log_bytes: int = 0
    clock: float


class JobWaiting(Body, frozen=True, kw_only=True):
    """Call ``call_id`` waits for ``job`` (empty: any job); ``words`` describe for what. The agent is not run until the
    call ends.
    """

    TYPE = "job.waiting"
    call_id: str
    job: str = ""
    words: str = ""


class JobEnded(Body, frozen=True, kw_only=True):
    """A job has ended, and no process of it is left. ``status``: ok, error, timeout, cancelled, lost (nobody saw its
    end). ``last`` are its last lines, ``printed`` the number of bytes printed, ``output`` what is kept of them;
    ``told`` is the call whose result reports this to the agent, empty if the harness must send a message instead.
    """

    TYPE = "job.ended"
    job: str
    status: str
    exit_code: int | None = None
    ms: int = 0
    last: str = ""
    printed: int = 0
    output: BlobRef | None = None
    note: str = ""
    told: str = ""

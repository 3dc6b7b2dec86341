"""What a log says of jobs: commands that outlive the call that started them."""

from __future__ import annotations

from harness.events.body import BlobRef, Body


class JobStarted(Body, frozen=True, kw_only=True):
    """A job runs, started by call ``call_id``. ``what`` is its command on one line, ``limit_s`` the seconds that it may
    run, ``grace_s`` those that it has to end when asked to, ``log_bytes`` about how much of its output is kept.
    ``clock`` is the machine's monotonic clock then, which nobody sets and which stands while it sleeps.
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
    """The agent waits with call ``call_id``, for ``job`` or (empty) any; ``words`` say for what. Nobody thinks for the
    session until that call ends.
    """

    TYPE = "job.waiting"
    call_id: str
    job: str = ""
    words: str = ""


class JobEnded(Body, frozen=True, kw_only=True):
    """A job has ended, and no process of it is left. ``status``: ok, error, timeout, cancelled, lost (nobody saw its
    end). ``last`` are its last lines, ``printed`` the bytes it printed, ``output`` what is kept of them; ``told`` is
    the call whose result tells the agent, empty when a message of the harness has to.
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

"""What a person may ask of jobs: which run, what one printed, end one."""

from __future__ import annotations

import base64
import functools
import time

from harness.domain.text.output_lines import newest
from harness.executor import job_log
from harness.keeper.loop.requests import CancelJob
from harness.projections.state.jobs import RunningJob
from harness.protocol.paths import SessionFolder
from harness.supervisor.base.errors import OpError
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.log_reading import MOST_BYTES, bounded
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.views.job_views import JobList, JobOutput, JobView
from harness.views.replies import DONE, Done

_TAIL = 4 * 1024
_PATIENCE_S = 15.0


class JobOps:
    """The table of what is asked about jobs."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"jobs": self.jobs, "job_cancel": self.cancel, "job_log": self.log}

    async def jobs(self, c: Connection, m: Fields) -> JobList:
        """The jobs that run, of one session or of all, with the newest lines of each."""
        sessions = [self._p.fleet.find(text_of(m, "sid"))] if m.get("sid") else list(self._p.fleet)
        found: list[JobView] = []
        for session in sessions:
            if session.state.jobs.running:
                found += await session.look("its jobs", _PATIENCE_S, functools.partial(views, session))
        return JobList(jobs=found)

    async def cancel(self, c: Connection, m: Fields) -> Done:
        """End a running job; the reply comes when it was told to end."""
        session, job = self._job(m)
        await session.keeper().ask(CancelJob(job))
        return DONE

    async def log(self, c: Connection, m: Fields) -> JobOutput:
        """What a running job printed, in base64, from byte ``offset`` on."""
        session, job = self._job(m)
        offset = bounded(m, "offset", 0, 0)
        most = bounded(m, "most", MOST_BYTES, 1, MOST_BYTES)
        part = await session.look("a job's output", _PATIENCE_S, lambda: read(session.folder, job, offset, most))
        return JobOutput(data=base64.b64encode(part.data).decode(), offset=part.offset, end=part.end)

    def _job(self, m: Fields) -> tuple[Session, str]:
        """The session and its running job. Raises OpError."""
        session = self._p.fleet.find(text_of(m, "sid"))
        job = text_of(m, "job", 20)
        if job not in session.state.jobs.running:
            names = ", ".join(session.state.jobs.running) or "none"
            raise OpError("not_found", f"job {job} of {session.name} does not run; those that run: {names}")
        return session, job


def read(folder: SessionFolder, job: str, offset: int, most: int) -> job_log.Part:
    """A piece of what a running job printed. Raises OpError ``gone``."""
    try:
        return job_log.read(folder.jobs / job, offset, most)
    except OSError as exc:
        raise OpError("gone", f"the output of job {job} cannot be read: {exc.strerror}") from exc


def views(session: Session) -> list[JobView]:
    """The running jobs of a session, as a client sees them (blocking)."""
    out: list[JobView] = []
    for name, job in session.state.jobs.running.items():
        part = job_log.tail(session.folder.jobs / name, _TAIL)
        out.append(
            JobView(
                sid=session.sid,
                session=session.name,
                job=name,
                call_id=job.call_id,
                what=job.what,
                since=job.ts,
                runs_s=_runs_s(job),
                limit_s=job.limit_s,
                printed=part.end,
                last=newest(part.data),
            )
        )
    return out


def _runs_s(job: RunningJob) -> int:
    """As its limit counts them."""
    return max(0, round(time.monotonic() - job.clock))

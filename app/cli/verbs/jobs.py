"""The verb ``jobs``: which run, what one printed, end one. What jobs print is the agents': all of it passes the display
function, unless it goes into a file or a pipe.
"""

from __future__ import annotations

import argparse
import base64
import codecs
from pathlib import Path

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import Usage
from app.cli.base.context import Context
from app.cli.base.output import emit, raw, reader_gone, safe, say, table
from app.client import records
from app.client.replies import ask
from harness.domain.calls.job_words import outcome
from harness.domain.text.formatting import stretch
from harness.events import types as t
from harness.protocol.client import Client, SupervisorError
from harness.protocol.paths import SessionFolder
from harness.views.job_views import JobList, JobOutput, JobView
from harness.views.replies import SessionShown

_POLL_MS = 300
_PIECE = 1 << 18


def jobs(ctx: Context, args: argparse.Namespace) -> int:
    match args.words:
        case ["cancel", sid, job]:
            return _cancel(ctx, sid, job, as_json=args.json)
        case ["log", sid, job]:
            return _log(ctx, sid, job, _AsJson(job) if args.json else _AsPrinted(job), follow=args.follow)
        case [] | [_]:
            return _list(ctx, args.words, as_json=args.json)
        case _:
            raise Usage("say jobs, jobs ID, jobs cancel ID JOB or jobs log ID JOB")


def _list(ctx: Context, named: list[str], *, as_json: bool) -> int:
    with ctx.connect() as client:
        found = ask(client, JobList, "jobs", sid=named[0] if named else "").jobs
    if as_json:
        for job in found:
            emit(msgspec.to_builtins(job))
        return exits.OK
    if not found:
        say("no job runs")
        return exits.OK
    body = [
        (safe(j.session), safe(j.job), stretch(j.runs_s), stretch(j.limit_s), safe(j.what, 60), _last_line(j))
        for j in found
    ]
    for line in table(("SESSION", "JOB", "RUNS", "LIMIT", "WHAT", "LAST LINE"), body, width=max(ctx.width, 100)):
        say(line)
    return exits.OK


def _last_line(job: JobView) -> str:
    return safe(job.last.rpartition("\n")[2], 300)


def _cancel(ctx: Context, sid: str, job: str, *, as_json: bool) -> int:
    with ctx.connect() as client:
        client.call("job_cancel", sid=sid, job=job)
    if as_json:
        emit({"job": job, "cancelled": True})
    else:
        say(f"job {safe(job)} is told to end; what has not ended after its grace is killed")
    return exits.OK


class _AsPrinted:
    """What a job printed, byte for byte, and how it ended in words."""

    def __init__(self, job: str) -> None:
        self._job = job

    def missing(self, at: int, size: int) -> None:
        say(f"[… {size} bytes are not kept …]")

    def piece(self, at: int, data: bytes) -> None:
        raw(data)

    def ended(self, body: t.JobEnded) -> None:
        say(f"[job {safe(self._job)} {outcome(body.status, body.exit_code, body.ms)}]")


class _AsJson:
    """The same as one object a line: a piece of text and the byte it begins at, bytes that are not kept, the end."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def missing(self, at: int, size: int) -> None:
        emit({"job": self._job, "offset": at, "missing": size})

    def piece(self, at: int, data: bytes) -> None:
        if text := self._decoder.decode(data):
            emit({"job": self._job, "offset": at, "text": text})

    def ended(self, body: t.JobEnded) -> None:
        emit({"job": self._job, "status": body.status, "exit_code": body.exit_code, "ms": body.ms})


def _log(ctx: Context, sid: str, job: str, shown_as: _AsPrinted | _AsJson, *, follow: bool) -> int:
    """Print what a job printed; of one that has ended what is kept, behind what was shown while it ran."""
    at = 0
    with ctx.connect() as client:
        shown = ask(client, SessionShown, "session", sid=sid)
        while True:
            try:
                piece = ask(client, JobOutput, "job_log", sid=sid, job=job, offset=at, most=_PIECE)
            except SupervisorError as exc:
                if exc.code not in ("not_found", "gone"):
                    raise
                return _rest(ctx, client, Path(shown.folder), job, shown_as, at, exc)
            if missing := piece.offset - at:
                shown_as.missing(at, missing)
            shown_as.piece(piece.offset, base64.b64decode(piece.data))
            at = piece.end
            if not piece.data and (not follow or reader_gone(_POLL_MS)):
                return exits.OK


def _never_was(job: str, known: list[str]) -> SupervisorError:
    had = f"its jobs were: {', '.join(known)}" if known else "it never had one"
    return SupervisorError("not_found", f"this session has no job {safe(job)}; {had}")


def _rest(
    ctx: Context,
    client: Client,
    folder: Path,
    job: str,
    shown_as: _AsPrinted | _AsJson,
    at: int,
    why: SupervisorError,
) -> int:
    """What a job that has ended printed behind byte ``at``, and how it ended. Raises ``why`` when its end is in no
    record, and SupervisorError when it never was.
    """
    source: records.RecordSource
    if records.readable(client.transport, folder):
        source = records.DiskRecords(SessionFolder(folder, ctx.folders.session(folder.name).keeper_socket), -1)
    else:
        source = records.AskedRecords(client, folder.name, -1)
    ended: t.JobEnded | None = None
    known: list[str] = []
    while ended is None:
        piece = source.read()
        for line in piece.lines:
            body = t.decode(line).body
            if isinstance(body, t.JobStarted):
                known.append(body.job)
            if isinstance(body, t.JobEnded) and body.job == job:
                ended = body
        if not piece.lines and not piece.more and ended is None:
            raise why if job in known else _never_was(job, known)
    if ended.output is not None:
        kept = source.payload(ended.output.sha)
        left = ended.printed - at if at else len(kept)
        shown_as.piece(at, kept[max(0, len(kept) - left) :])
    shown_as.ended(ended)
    return exits.OK

"""What an earlier call of the same session gave: found in the session's own log and blobs, by the id of the call.
Standard library only.
"""

from __future__ import annotations

import json
import re

from harness.eventlog import blobs
from harness.eventlog.index import OffsetIndex
from harness.eventlog.writer import LogError
from harness.executor import job_log
from harness.protocol.paths import SessionFolder

_CALL = re.compile(r"c(\d{1,15})\.\d{1,6}", re.ASCII)
_JOB = re.compile(r"j\d{1,9}", re.ASCII)
_STEP = 256 * 1024
_PLACE_OF_TYPE = 200
_ENDED = b'"type":"tool.ended"'
_JOB_ENDED = b'"type":"job.ended"'
_REPLY = b'"type":"model.message"'
_CUT = b"\n[the output was cut here: what came after it was not kept]\n"


class NoOutput(Exception):
    """There is nothing to read; the message says why, for the model."""


def of_call(folder: SessionFolder, call: str) -> bytes:
    """The whole output of the call ``c<seq>.<i>`` or the job ``j<n>``, as far as it was kept. Raises NoOutput."""
    if _JOB.fullmatch(call):
        return _of_job(folder, call)
    named = _CALL.fullmatch(call)
    if named is None:
        raise NoOutput(f"{call[:40]!r} is not the id of a call; an id looks like c12.0 and stands in a call's result")
    log = OffsetIndex(folder.log)
    try:
        ended = _ended(log, call, int(named[1]))
    finally:
        log.close()
    if ended is None:
        raise NoOutput(f"no call {call} of this session has ended with an output")
    stored = ended.get("output")
    if not isinstance(stored, dict):
        return str(ended.get("preview", "")).encode("utf-8", "replace")
    try:
        return blobs.get(folder.blobs, str(stored.get("sha"))) + (_CUT if ended.get("truncated") else b"")
    except (LogError, OSError, ValueError) as exc:
        raise NoOutput(f"the output of call {call} cannot be read: {exc}") from exc


def _of_job(folder: SessionFolder, job: str) -> bytes:
    """What a job printed until now, or in all. Raises NoOutput."""
    where = folder.jobs / job
    try:
        if job_log.pieces(where):
            return job_log.whole(where)
        ended = _end_of_job(folder, job)
        stored = ended.get("output")
        return blobs.get(folder.blobs, str(stored.get("sha"))) if isinstance(stored, dict) else b""
    except (LogError, OSError, ValueError) as exc:
        raise NoOutput(f"the output of job {job} cannot be read: {exc}") from exc


def _end_of_job(folder: SessionFolder, job: str) -> dict[str, object]:
    """What is on record of a job's end. Raises NoOutput."""
    wanted = f'"{job}"'.encode()
    log = OffsetIndex(folder.log)
    try:
        at = 0
        while at < len(log):
            lines, following = log.scan(at, _STEP)
            for line in lines:
                if _JOB_ENDED in line[:_PLACE_OF_TYPE] and wanted in line:
                    data = json.loads(line).get("data", {})
                    if data.get("job") == job:
                        return dict(data)
            at = max(following, at + 1)
    finally:
        log.close()
    raise NoOutput(f"this session has no job {job}")


def _ended(log: OffsetIndex, call: str, proposed: int) -> dict[str, object] | None:
    """What is on record of the end of a call: all calls of a reply have ended before the next reply."""
    wanted = f'"{call}"'.encode()
    at = proposed
    while at < len(log):
        lines, following = log.scan(at, _STEP)
        for number, line in enumerate(lines, at):
            if _ENDED in line[:_PLACE_OF_TYPE] and wanted in line:
                data = json.loads(line).get("data", {})
                if data.get("call_id") == call:
                    return dict(data)
            if number > proposed and _REPLY in line[:_PLACE_OF_TYPE]:
                return None
        at = max(following, at + 1)
    return None

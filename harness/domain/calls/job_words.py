"""What became of a job, in words for the model and the person. Pure, standard library only."""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.text.formatting import stretch, whole_output


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended, as ``job.ended`` says it."""

    job: str
    status: str
    exit_code: int | None = None
    ms: int = 0
    last: str = ""
    printed: int = 0
    note: str = ""
    told: str = ""


_ENDED = {
    "ok": "ended well",
    "error": "failed",
    "timeout": "was ended at its time limit",
    "cancelled": "was cancelled",
    "lost": "is lost",
}


def outcome(status: str, exit_code: int | None, ms: int) -> str:
    """``failed, exit code 2, after 2h 10m``."""
    parts = [_ENDED.get(status, status)]
    if exit_code is not None:
        parts.append(f"exit code {exit_code}")
    if ms >= 1000:
        parts.append(f"after {stretch(ms / 1000)}")
    return ", ".join(parts)


def ended(end: JobEnd) -> str:
    """All that is told of an end: how, why, the last lines, where the rest is."""
    lines = [f"job {end.job} {outcome(end.status, end.exit_code, end.ms)}"]
    if end.note:
        lines.append(f"[{end.note}]")
    lines += printed(end.job, end.last, end.printed)
    if end.status == "lost":
        lines.append("[it is not run again by itself: look at what it left, then start it again if that is right]")
    return "\n".join(lines)


def printed(job: str, last: str, count: int) -> list[str]:
    """The last lines of an output of ``count`` bytes, and how to read the rest."""
    if not last:
        return ["[it printed nothing]"] if not count else [f"[read_output with call {job} shows what it printed]"]
    return ["its last lines:", last, whole_output(job, count)]

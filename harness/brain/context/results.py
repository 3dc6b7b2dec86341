"""What a call gave, as the model is told it: the same words for the same record, always. Pure."""

from __future__ import annotations

from harness.brain.context.excerpt import excerpt
from harness.domain.calls.call_states import NOT_RUN, CallEnd
from harness.events import types as t

NEVER_RAN = "The session ended before this call; nothing ran."
_TOGETHER = 64 * 1024
"""Bytes that the results of one reply have together: no single reply fills a context."""
_LEAST = 512


def told(result: t.ToolEnded | t.ToolResolved, beside: int = 1) -> tuple[str, bool]:
    """(text, it failed) of one of ``beside`` results that come at once."""
    text, failed = _ended(result) if isinstance(result, t.ToolEnded) else _resolved(result)
    share = max(_LEAST, _TOGETHER // max(1, beside))
    size = len(text.encode("utf-8", "replace"))
    return (text if size <= share else excerpt(text, size, result.call_id, share), failed)


def _ended(r: t.ToolEnded) -> tuple[str, bool]:
    notes = []
    if r.exit_code:
        notes.append(f"exit code {r.exit_code}")
    if r.status == CallEnd.TIMEOUT:
        notes.append(f"stopped at its time limit after {r.ms / 1000:.0f} s")
    elif r.status in NOT_RUN:
        notes.append(
            f"the call was {r.status}; nothing ran"
            if r.status != CallEnd.CANCELLED
            else "the call was cancelled while it ran"
        )
    if r.truncated:
        notes.append("the output passed its limit and the rest was dropped")
    body = r.preview if r.preview.strip() else ""
    if r.output is not None:
        body = excerpt(r.preview, r.output.bytes, r.call_id)
    if not body and not notes:
        body = "(no output)"
    return "\n".join(part for part in (body, *(f"[{n}]" for n in notes)) if part), r.status != CallEnd.OK


_RESOLVED = {
    "confirmed_done": (
        "The call was interrupted, but its effect was confirmed: it is done. Its output is lost.",
        False,
    ),
    "failed": ("The call was interrupted and counts as failed.", True),
}


def _resolved(r: t.ToolResolved) -> tuple[str, bool]:
    text, error = _RESOLVED.get(r.resolution, ("Interrupted, outcome unknown: inspect before you repeat it.", True))
    return (f"{text}\n{r.evidence}" if r.evidence else text), error

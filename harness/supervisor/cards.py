"""What an approval card is made from: title, diff and the view itself. The action is the only source; the agent's claim stays apart."""

from __future__ import annotations

import difflib
import hashlib
import shlex
from typing import Any

from harness.events.fold import OpenApproval, SessionState
from harness.events.views import ApprovalView
from harness.hands import reading
from harness.supervisor.track import OpenCall

MAX_DIFF_SOURCE = 1 << 20
MAX_DIFF = 256 * 1024
_TITLE = 200


def title(action: dict[str, Any]) -> str:
    """One line that says what would run (untrusted text as it is)."""
    kind = action["kind"]
    if kind == "push":
        refs = ", ".join(str(r[1]) for r in action.get("refspecs", []))
        text = f"push to {action.get('remote') or action.get('url', '')}: {refs}"
    elif "argv" in action:
        text = shlex.join(action["argv"])
    elif "script" in action:
        first, _, rest = str(action["script"]).strip().partition("\n")
        text = first + (f" (+{rest.count(chr(10)) + 1} lines)" if rest else "")
    else:
        text = f"{action['tool']} {action.get('path', '')}"
    return text if len(text) <= _TITLE else text[: _TITLE - 1] + "…"


def _old(folder: str, path: str) -> bytes | None:
    """The file's present content; None when it is absent, behind a link, no regular file or too large to show."""
    try:
        return reading.read_named(folder, path, MAX_DIFF_SOURCE)
    except (OSError, ValueError):
        return None


def diff(action: dict[str, Any], given: dict[str, Any]) -> str:
    """Unified diff of what a write or edit would do to the file as it is now (blocking). ``given`` is the tool's whole input."""
    if action["tool"] not in ("write_file", "edit_file"):
        return ""
    path = str(action.get("path", ""))
    before = _old(str(action.get("cwd", "")), path)
    if action["tool"] == "write_file":
        after = str(given.get("content", ""))
    else:
        if before is None:
            return "the file to edit is not there, or too large to show"
        old, new = str(given.get("old", "")), str(given.get("new", ""))
        after = before.decode("utf-8", "surrogateescape").replace(old, new, -1 if given.get("all") else 1)
    body = after.encode("utf-8", "surrogateescape" if action["tool"] == "edit_file" else "surrogatepass")
    if b"\0" in body or (before is not None and b"\0" in before):
        return f"binary content: {len(body)} bytes, SHA-256 {hashlib.sha256(body).hexdigest()}"
    if len(body) > MAX_DIFF_SOURCE:
        return f"too large to show as a diff: {len(body)} bytes, SHA-256 {hashlib.sha256(body).hexdigest()}"
    lines = difflib.unified_diff(
        (before or b"").decode("utf-8", "replace").splitlines(),
        after.encode("utf-8", "replace").decode("utf-8", "replace").splitlines(),
        "/dev/null" if before is None else f"a/{path}",
        f"b/{path}",
        lineterm="",
    )
    text = "\n".join(lines)
    if len(text) <= MAX_DIFF:
        return text
    return f"{text[:MAX_DIFF]}\n… {len(text) - MAX_DIFF} more characters; whole content has SHA-256 {hashlib.sha256(body).hexdigest()}"


def view(sid: str, s: SessionState, a: OpenApproval, call: OpenCall | None, action: dict[str, Any] | None, shown_diff: str) -> ApprovalView:
    """The card of one open request."""
    judged = call.judged if call is not None else None
    return ApprovalView(
        approval_id=a.approval_id,
        sid=sid,
        session_name=s.name or sid,
        kind=a.kind,
        title=a.title,
        options=a.options,
        risk=a.risk,
        ts=a.ts,
        seq=a.seq,
        call_id=a.call_id,
        tool=call.proposed.tool if call is not None else "",
        action_hash=a.action_hash,
        action=action,
        effects=judged.effects if judged is not None else [],
        rule=judged.rule if judged is not None else "",
        reason=judged.reason if judged is not None else "",
        claim=call.proposed.claim if call is not None else "",
        diff=shown_diff,
        detail=a.detail,
        deferred=a.deferred,
        repo=s.intent.repo if s.intent else "",
        branch=s.intent.branch if s.intent else "",
    )

"""What a session's log proves to be at a remote: the commits of its own pushes that arrived.

Blocking: call from a worker thread.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from harness.domain.actions.action import BadAction, PushAction, from_wire
from harness.domain.calls.call_states import CallEnd
from harness.eventlog import blobs, reader
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.protocol.paths import SessionFolder

_MARK = b"push"
_TYPES = (b'"tool.judged"', b'"tool.ended"', b'"tool.resolved"')


def pushed(folder: SessionFolder, worktree: Path) -> list[str]:
    """Commits that a remote holds by this session's pushes; a ref that it pushed to again counts with its last commit.

    A remote inside the worktree is no other place. Records behind damage prove nothing.
    """
    there: dict[tuple[str, str], str] = {}
    waiting: dict[str, PushAction] = {}
    try:
        for line in reader.read(folder.log):
            if not any(name in line for name in _TYPES) or (_MARK not in line and not waiting):
                continue
            body = t.decode(line).body
            if isinstance(body, t.ToolJudged):
                if (action := _push(folder, body)) is not None:
                    waiting[body.call_id] = action
            elif isinstance(body, t.ToolEnded | t.ToolResolved):
                action = waiting.get(body.call_id)
                if action is not None and _arrived(body):
                    _note(there, action, worktree)
    except LogError:
        pass
    return list(dict.fromkeys(there.values()))


def _push(folder: SessionFolder, judged: t.ToolJudged) -> PushAction | None:
    stored: object = judged.action
    if stored is None and judged.action_blob is not None:
        stored = json.loads(blobs.get(folder.blobs, judged.action_blob.sha))
    try:
        action = from_wire(stored)
    except BadAction:
        return None
    return action if isinstance(action, PushAction) else None


def _arrived(body: t.ToolEnded | t.ToolResolved) -> bool:
    return body.status == CallEnd.OK if isinstance(body, t.ToolEnded) else body.resolution == "confirmed_done"


def _note(there: dict[tuple[str, str], str], action: PushAction, worktree: Path) -> None:
    url = action.to.url
    if _below(url, worktree):
        return
    for sha, ref, _ in action.to.refspecs:
        if sha.strip("0"):
            there[url, ref] = sha
        else:
            there.pop((url, ref), None)


def _below(url: str, worktree: Path) -> bool:
    path = url.removeprefix("file://")
    return path.startswith("/") and Path(os.path.realpath(path)).is_relative_to(worktree)

"""A call that started and whose end nobody saw: what became of it, by its effect class or by a person's word."""

from __future__ import annotations

import hashlib

from harness.domain.actions.action import Action, FileAction, PushAction
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.call_lifecycle import Call
from harness.domain.decision import Decision
from harness.events import types as t
from harness.executor import files, push
from harness.linux import safe_files
from harness.supervisor.base import ids
from harness.supervisor.calls.on_record import action_of, input_of
from harness.supervisor.calls.queue import cards
from harness.supervisor.fleet.call_records import OpenCall
from harness.supervisor.fleet.session import Session
from harness.tools import registry
from harness.tools.tool import CONTAINED, READ, REVERSIBLE, Writes
from harness.workspace.git.errors import WorkspaceError

_FILE_S = 15.0
_PROBE_S = 90.0
"""Seconds that asking a remote may take."""


def file_outcome(action: Action, given: object) -> tuple[str, str]:
    """(resolution, evidence) of an interrupted write or edit, from the file as it is now (blocking).

    Both replace files atomically.
    """
    asked = given if isinstance(given, dict) else {}
    if not isinstance(action, FileAction):
        return "unknown_told_model", "it is no file tool, so no file says what became of it"
    path = action.path
    content: bytes | None
    try:
        content = safe_files.read_named(action.cwd, path, files.MAX_READ)
    except (FileNotFoundError, NotADirectoryError):
        content = None
    except OSError as exc:
        return "unknown_told_model", f"{path} cannot be read: {exc.strerror}"
    if registry.writes(action.tool) is Writes.WHOLE:
        done = content is not None and hashlib.sha256(content).hexdigest() == action.content_sha
        return (
            ("confirmed_done", "the file has exactly the new content")
            if done
            else ("confirmed_not_done", "the file does not have the new content")
        )
    old = str(asked.get("old", "")).encode()
    new = str(asked.get("new", "")).encode()
    if content is None or (old in content) == (new in content and bool(new)):
        return "unknown_told_model", "the file holds neither or both of the old and the new text"
    return (
        ("confirmed_not_done", "the old text is still there")
        if old in content
        else ("confirmed_done", "the new text is there and the old is gone")
    )


async def settle(session: Session, call: Call, known: OpenCall) -> None:
    """A call that started and whose outcome nobody saw: settle it by its effect class, or ask."""
    action = await action_of(session, known)
    if action is None:
        await _ask(session, call, known, "its action cannot be read")
        return
    if call.effect == READ:
        await session.append(
            t.ToolResolved(
                call_id=call.call_id,
                resolution="confirmed_not_done",
                evidence="reading has no effect; it runs again",
            )
        )
    elif call.effect == REVERSIBLE:
        given = await input_of(session, known.proposed)
        resolution, evidence = await _written(session, call.call_id, action, given)
        await session.append(t.ToolResolved(call_id=call.call_id, resolution=resolution, evidence=evidence))
    elif call.effect == CONTAINED:
        await session.append(
            t.ToolResolved(
                call_id=call.call_id,
                resolution="unknown_told_model",
                evidence="it ran inside the sandbox and was interrupted; the model is told",
            )
        )
    elif isinstance(action, PushAction):
        outcome = await session.do("asking the remote", _PROBE_S, lambda: push.probe(action))
        if outcome == Decision.DONE:
            await session.append(
                t.ToolResolved(
                    call_id=call.call_id,
                    resolution="confirmed_done",
                    evidence="the remote has exactly these commits",
                )
            )
        elif outcome == "not_done":
            await session.append(
                t.ToolResolved(
                    call_id=call.call_id,
                    resolution="confirmed_not_done",
                    evidence="the remote still has the old commits",
                )
            )
        else:
            await _ask(session, call, known, "the remote does not say")
    else:
        await _ask(session, call, known, known.doubt.why if known.doubt else "it was interrupted")


async def _written(session: Session, call_id: str, action: Action, given: object) -> tuple[str, str]:
    try:
        return await session.do(f"reading what call {call_id} left", _FILE_S, lambda: file_outcome(action, given))
    except WorkspaceError as exc:
        return "unknown_told_model", str(exc)


async def _ask(session: Session, call: Call, known: OpenCall, why: str) -> None:
    action = await action_of(session, known)
    what = cards.title(action) if action is not None else known.proposed.tool
    await session.append(
        t.ApprovalRequested(
            approval_id=ids.approval_id(),
            kind=Request.IN_DOUBT,
            title=f"did this happen? {what}",
            options=[Decision.DONE, Decision.FAILED, Decision.UNKNOWN],
            call_id=call.call_id,
            action_hash=call.action_hash,
            risk="high",
            detail={"why": why},
        )
    )

"""``python -m harness.supervisor.adopt``: make a copied, moved or restored state folder one that may be
driven, session by session.

A session is taken over when its worktree, git folder and repository are here and nothing of the original is; its
recorded paths are rewritten. What else is in the folder stays readable and is never driven. Prints one JSON object;
exit code 0, or 3 with ``{"refused": why}``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.domain.calls.call_states import CallEnd, CallStage
from harness.eventlog.framing import LogError
from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.projections.salvage import salvage
from harness.projections.state.session_state import SessionState
from harness.protocol import identity, locks
from harness.protocol.paths import FolderError, Folders, SessionFolder, ensure_private, resolve
from harness.protocol.session_names import is_session_id
from harness.supervisor.fleet.fleet import session_folders
from harness.supervisor.guardian import EXIT_REFUSED
from harness.supervisor.state_folder import Refused, check_version, take_lock
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.tree import worktrees


@dataclass(frozen=True, slots=True)
class AdoptedSession:
    """What became of one session; ``why`` says what keeps it from being driven, and is empty when nothing does."""

    sid: str
    name: str
    ended: bool
    why: str


def adopt(folders: Folders) -> dict[str, object]:
    """Adopt the folder.

    Repeating it finishes what was begun and looks again at what stayed behind. Raises Refused, FolderError, OSError.
    """
    ensure_private(folders.state)
    foreign = identity.look(folders.state)
    _unused(folders)
    for folder in (folders.runtime, folders.sessions, folders.worktrees):
        ensure_private(folder)
    check_version(folders.state)
    lock = take_lock(folders.supervisor_lock)
    try:
        identity.claim_runtime(folders)
        outcomes = [_session(folders, sid, foreign) for sid in session_folders(folders.sessions) if is_session_id(sid)]
        if foreign is not None or identity.read(folders.state) is None:
            identity.write(folders.state)
    finally:
        os.close(lock)
    listed = [{"sid": o.sid, "name": o.name, "ended": o.ended, "driven": not o.why, "why": o.why} for o in outcomes]
    return {"from": foreign.path if foreign else "", "sessions": listed}


def _unused(folders: Folders) -> None:
    """Nothing may be at work in the folder: a moved one takes its living processes along. Raises Refused."""
    held = [(folders.supervisor_lock, "the supervisor"), (folders.guardian_lock, "the supervisor's guardian")]
    held += [(folders.session(sid).lock, f"the keeper of session {sid}") for sid in locks.kept(folders)]
    for path, what in held:
        if locks.held(path):
            pid = locks.holder(path)
            raise Refused(
                f"{what}{f' (process {pid})' if pid else ''} still works in {folders.state}; stop it (watchfloor"
                " supervisor stop --sessions stop), or, after a move, wait half a minute: what lost its folder leaves"
                " by itself",
                EXIT_REFUSED,
            )


def _session(folders: Folders, sid: str, foreign: identity.Foreign | None) -> AdoptedSession:
    folder = folders.session(sid)
    state, problem = salvage(folder.log)
    name = state.name or sid
    if problem:
        return AdoptedSession(sid, name, state.terminal, f"its log is damaged: {problem}")
    private = folder.git / "private"
    root = Path(os.path.realpath(folders.worktrees)) / sid
    try:
        if why := worktrees.unmovable(private, root):
            return AdoptedSession(sid, name, state.terminal, why)
        recorded = worktrees.recorded_root(private)
        elsewhere = recorded is not None and recorded != root
        if not state.terminal and (elsewhere or foreign is not None):
            _settle(folder, sid, state, foreign)
        worktrees.move(private, root)
    except (WorkspaceError, LogError, OSError) as exc:
        return AdoptedSession(sid, name, state.terminal, str(exc))
    return AdoptedSession(sid, name, state.terminal, "")


def _settle(folder: SessionFolder, sid: str, state: SessionState, foreign: identity.Foreign | None) -> None:
    """Close in the log what was open between two processes of the original: nothing of it is carried out here on its
    old word.
    """
    if foreign is None or not foreign.moved:
        for leader in folder.spool.glob("*.pid"):  # they name processes of the original
            leader.unlink()
    log = LogWriter.open(folder.log, sid)
    try:
        for body in closing(state, foreign):
            log.append(body.TYPE, msgspec.to_builtins(body), actor="supervisor")
        log.commit(True)
    finally:
        log.close()


def closing(state: SessionState, foreign: identity.Foreign | None) -> list[t.Body]:
    """The records that make a session independent of its original's processes.

    What waits for a person is judged and asked anew, with this as the difference. What a machine would have begun by
    itself is not begun: the original may have done it. Calls that had started are left to the session's keeper: they
    are in doubt.
    """
    told = foreign.why if foreign is not None else "this session was taken over from another state folder"
    text = f"{told}; it goes on here; what its original did after it was copied is not in this log"
    bodies: list[t.Body] = [t.HarnessNote(level="warning", text=text, component="state folder")]
    if state.lease is not None:
        bodies.append(t.LeaseEnded(gen=state.lease.gen, reason="the state folder was adopted", exit_code=None))
    difference = [f"{told}; the original may have been allowed this since"]
    for call in state.calls.open.values():
        if call.stage == CallStage.ASKED:
            bodies.append(t.ApprovalStale(approval_id=call.approval_id, call_id=call.call_id, difference=difference))
        elif call.stage in (CallStage.PROPOSED, CallStage.JUDGED, CallStage.DECIDED):
            bodies.append(t.ToolEnded(call_id=call.call_id, status=CallEnd.CANCELLED, preview=_NOT_RUN))
    return bodies


_NOT_RUN = (
    "Not run here: Watchfloor's state folder was copied or moved before this call began, and whether the original ran"
    " it is not known. Look first, then ask again."
)


def main() -> int:
    """Entry point; folders come through ``WATCHFLOOR_STATE`` and its siblings, or the user's defaults."""
    os.umask(0o077)
    try:
        done = adopt(resolve())
    except (Refused, FolderError, OSError, ValueError) as exc:
        print(json.dumps({"refused": str(exc)}))
        return EXIT_REFUSED
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(done))
    return 0


if __name__ == "__main__":
    sys.exit(main())

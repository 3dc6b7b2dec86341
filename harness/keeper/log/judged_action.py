"""What may have its effect now: the open call, and exactly the action that was judged for it. Standard library only."""

from __future__ import annotations

import json

from harness.domain.actions.action import action_hash
from harness.domain.calls.call_lifecycle import Call
from harness.domain.text.fields import Wire
from harness.eventlog import blobs
from harness.eventlog.writer import LogError
from harness.keeper.log.appender import Appender
from harness.keeper.log.state import JudgedAction, KeeperState
from harness.keeper.loop.errors import OpError
from harness.protocol.paths import SessionFolder


class JudgedActions:
    """The actions of one session as its log holds them."""

    def __init__(self, journal: Appender, folder: SessionFolder, sid: str) -> None:
        self._journal = journal
        self._folder = folder
        self._sid = sid
        self._verified: tuple[Wire, str] = ({}, "")
        """The action of the last check, and its hash: what the log's fold holds is never changed in place."""

    def check(self, call_id: str) -> tuple[Call, Wire]:
        """The open call and its judged action as it was stored, when it may have its effect now. Raises OpError."""
        if self._journal.poisoned:
            raise OpError("poisoned", self._journal.poisoned, "check the disk, then restart the session's keeper")
        memory = self._journal.memory
        call = call_of(memory, call_id)
        if call is None or (judged := memory.judged.get(call_id)) is None:
            raise OpError("refused", f"call {call_id[:40]} is not open or was not judged")
        action = self._stored(call_id, judged)
        try:
            same = action is self._verified[0] and call.action_hash == self._verified[1]
            same = same or action_hash(action) == call.action_hash
        except (ValueError, TypeError) as exc:
            raise OpError("refused", f"the judged action of {call_id} has no hash: {exc}") from exc
        if same:
            self._verified = (action, call.action_hash)
        if not same or action.get("session") != self._sid or action.get("call") != call_id:
            raise OpError(
                "refused",
                f"the action stored for {call_id} is not the one that was judged for this call",
                "judge it again",
            )
        if not memory.calls.may_start(call, call.action_hash):
            raise OpError("refused", f"call {call_id} has no allow verdict or unused decision for its action")
        return call, action

    def _stored(self, call_id: str, judged: JudgedAction) -> Wire:
        if judged.action is not None:
            return judged.action
        if not judged.sha:
            raise OpError("refused", f"the judgement of {call_id} holds no action", "judge it again")
        try:
            action = json.loads(blobs.get(self._folder.blobs, judged.sha))
        except (LogError, OSError, ValueError) as exc:
            raise OpError("refused", f"the judged action of {call_id} cannot be read: {exc}", "judge it again") from exc
        if not isinstance(action, dict):
            raise OpError("refused", f"the judgement of {call_id} holds no action", "judge it again")
        return action


def call_of(memory: KeeperState, call_id: object) -> Call | None:
    """The open call of that id."""
    return memory.calls.open.get(call_id) if isinstance(call_id, str) else None

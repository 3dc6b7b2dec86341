"""What a call needs before it starts: the state before it kept, and a world that is the one it was allowed for.

Standard library only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from harness.events import tools
from harness.events.action import Action, Wire
from harness.events.calls import Call
from harness.events.effect import NO_UNDO
from harness.hands import precheck, spawn
from harness.session.errors import Answer, OpError

COMPARED = "snapshot"
"""The precondition that the vault compares, not `precheck`."""
_HINTS = {"no_space": "free some space, then ask again", "scarce": "ask again in a moment"}


@dataclass(slots=True)
class Preparing:
    """A call that waits for the snapshot before it."""

    call_id: str
    answer: Answer
    wire: Wire
    action: Action
    cancelled: bool = False
    dropped: bool = False
    ready: spawn.Spawn | None = None
    """Its process, built meanwhile; whoever takes it owns its descriptor."""

    def take(self) -> spawn.Spawn | None:
        """What was built."""
        ready = self.ready
        self.ready = None
        return ready

    def forget(self) -> None:
        """What was built and not taken is not wanted any more."""
        if (ready := self.take()) is not None:
            os.close(ready.action_fd)


def slow(action: Action) -> Action | None:
    """As much of an action as it takes to observe what costs reading files; None when nothing of it does."""
    pre = {name: value for name, value in action.world.items() if name not in (*precheck.QUICK, COMPARED)}
    return replace(action, input=None, input_blob=None, pre=pre) if pre else None


def _quick(action: Action) -> Action:
    return replace(action, pre={name: value for name, value in action.world.items() if name in precheck.QUICK})


def to_be_kept(action: Action) -> bool:
    """True when the state before it must be kept: it may change files, or a person was shown a state that must still be
    there.
    """
    return COMPARED in action.world or tools.may_change_files(action.tool, action.access)


def hindered(action: Action, kept: dict[str, Any] | None) -> dict[str, Any] | None:
    """The reply that names why a call must not start now: the state before it is not kept (``unprotected``), or the
    world is not the one it was allowed for (``stale``); None when nothing hinders it. Raises OpError ``no_space``.
    """
    found = kept or {}
    expected = action.world
    if kept is not None and not kept.get("ok") and to_be_kept(action):
        error = kept["error"]
        if error["code"] in _HINTS:
            message = f"the state before the call cannot be kept: {error['message']}"
            raise OpError(error["code"], message, _HINTS[error["code"]])
        if expected.get(COMPARED) is not None or NO_UNDO not in action.effects:
            return {"unprotected": str(error["message"])}
    seen: dict[str, Any] = found.get("seen") or {}
    if slow(action) is not None and not seen:
        why = found.get("error", {}).get("message", "no answer")
        return {"stale": [f"what it depends on could not be looked at: {why}"]}
    compared = {COMPARED: expected[COMPARED]} if COMPARED in expected else {}
    difference = list(found.get("difference", []))
    difference += precheck.difference(expected, seen | precheck.observe(_quick(action)) | compared)
    return {"stale": difference} if difference else None


def started(call: Call, effect: str, world: dict[str, Any], kept: dict[str, Any] | None) -> dict[str, Any]:
    """What ``tool.started`` says: the action by its hash, who allowed it, and the state that undo goes back to."""
    said: dict[str, Any] = {
        "call_id": call.call_id,
        "action_hash": call.action_hash,
        "effect": effect,
        "attempt": call.attempt + 1,
        "pre": world,
    }
    if call.allowed_by:
        said["decision_id"] = call.allowed_by
    if kept is not None and "snapshot" in kept:
        said["snapshot"] = kept["snapshot"]
        if worked := kept.get("worked"):
            said |= {"worked": worked, "worked_names": kept.get("worked_names", [])}
        if kept["left_out"]:
            said |= {"left_out": kept["left_out"], "left_out_names": kept["left_out_names"]}
    return said

"""What a call needs before it starts: the state before it kept, and a world that is the one it was allowed for.

Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from harness.domain.actions.action import Action
from harness.domain.actions.effect import NO_UNDO
from harness.domain.calls.call_lifecycle import Call
from harness.domain.text.fields import Wire
from harness.executor import preconditions, spawn
from harness.keeper.loop.errors import OpError
from harness.keeper.loop.requests import CallBegun
from harness.tools import registry
from harness.vault.vault_ops import Observed, StateTaken, VaultFailure

Answer = Callable[[CallBegun | OpError], None]
"""Where it is told that a call started, or why it did not."""
Before = StateTaken | Observed | VaultFailure
"""What the vault said of the world before a call."""
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
    pre = {name: value for name, value in action.world.items() if name not in (*preconditions.QUICK, COMPARED)}
    return replace(action, input=None, input_blob=None, pre=pre) if pre else None


def _quick(action: Action) -> Action:
    return replace(action, pre={name: value for name, value in action.world.items() if name in preconditions.QUICK})


def to_be_kept(action: Action) -> bool:
    """True when the state before it must be kept: it may change files, or a person was shown a state that must still be
    there.
    """
    return COMPARED in action.world or (
        registry.may_change_files(action.tool, action.access) and not spawn.only_reads(action)
    )


def hindered(action: Action, before: Before | None) -> CallBegun | None:
    """The reply that names why a call must not start now: the state before it is not kept (``unprotected``), or the
    world is not the one it was allowed for (``stale``); None when nothing blocks it. Raises OpError ``no_space``.
    """
    expected = action.world
    if isinstance(before, VaultFailure) and to_be_kept(action):
        if before.code in _HINTS:
            message = f"the state before the call cannot be kept: {before.message}"
            raise OpError(before.code, message, _HINTS[before.code])
        if expected.get(COMPARED) is not None or NO_UNDO not in action.effects:
            return CallBegun(unprotected=before.message)
    seen = (before.seen if before is not None else None) or {}
    if slow(action) is not None and not seen:
        why = before.message if isinstance(before, VaultFailure) else "no answer"
        return CallBegun(stale=(f"what it depends on could not be looked at: {why}",))
    compared = {COMPARED: expected[COMPARED]} if COMPARED in expected else {}
    difference = (before.difference if isinstance(before, StateTaken) else None) or ()
    difference += tuple(preconditions.difference(expected, seen | preconditions.observe(_quick(action)) | compared))
    return CallBegun(stale=difference) if difference else None


def started(call: Call, effect: str, world: Mapping[str, object], before: Before | None) -> dict[str, object]:
    """What ``tool.started`` says: the action by its hash, who allowed it, and the state that undo goes back to."""
    said: dict[str, object] = {
        "call_id": call.call_id,
        "action_hash": call.action_hash,
        "effect": effect,
        "attempt": call.attempt + 1,
        "pre": world,
    }
    if call.allowed_by:
        said["decision_id"] = call.allowed_by
    if isinstance(before, StateTaken):
        said["snapshot"] = before.snapshot
        if before.worked:
            said |= {"worked": before.worked, "worked_names": before.worked_names or ()}
        if before.left_out:
            said |= {"left_out": before.left_out, "left_out_names": before.left_out_names}
    return said

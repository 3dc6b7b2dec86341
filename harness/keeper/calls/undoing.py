"""An undo: the present state is kept, the intent is put on record, then the worktree is brought back. Standard library
only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harness.eventlog.writer import NoSpace, Poisoned
from harness.keeper.calls.vault_client import VaultLink
from harness.keeper.log.state import BegunUndo
from harness.keeper.loop.errors import OpError
from harness.keeper.loop.fault_points import Faults
from harness.keeper.loop.requests import UndoCall, UndoDone
from harness.protocol.connection.frames import members
from harness.vault.vault_ops import BringBack, StateBroughtBack, StateTaken, Take, VaultFailure

Write = Callable[[str, dict[str, object]], None]
Answer = Callable[[UndoDone | OpError], None]
"""Where the reply goes, or why there is none."""


class Undoing:
    """The one undo of a session that is being carried out; ``over`` is called when none is any more.

    ``write`` puts a record of the keeper's own into the log and raises OpError, NoSpace, Poisoned; ``try_write`` says
    so and goes on.
    """

    def __init__(
        self, vault: VaultLink, faults: Faults, write: Write, try_write: Write, over: Callable[[], None]
    ) -> None:
        self._vault = vault
        self._faults = faults
        self._write = write
        self._try_write = try_write
        self._over = over
        self.now = ""
        """Its id; empty while nothing is undone."""

    def begin(self, undo: UndoCall, answer: Answer) -> None:
        """Bring a kept state back; the present one is kept first."""
        self.now = undo.undo_id
        present = Take(self._vault.roots(), f"undo {self.now}", full=True)
        self._vault.ask(present, lambda kept: self._kept(undo, answer, kept))

    def resume(self, undo: BegunUndo) -> None:
        """Carry out the one that an earlier keeper did not finish."""
        self.now = undo.undo_id
        self._bring_back(undo, lambda _reply: None)

    def _kept(self, undo: UndoCall, answer: Answer, kept: StateTaken | VaultFailure) -> None:
        try:
            if isinstance(kept, VaultFailure):
                raise OpError(kept.code, f"the present state cannot be kept, so nothing was undone: {kept.message}")
            self._write("undo.started", members(undo) | {"before": kept.snapshot})
        except (OpError, NoSpace, Poisoned) as exc:
            self.now = ""
            answer(exc if isinstance(exc, OpError) else OpError("no_space", str(exc)))
            self._over()
            return
        self._bring_back(BegunUndo(undo.undo_id, undo.call_id, undo.snapshot, kept.snapshot), answer)

    def _bring_back(self, undo: BegunUndo, answer: Answer) -> None:
        self._faults.hit("keeper.undo_started")
        wanted = BringBack(self._vault.roots(), undo.snapshot, f"undo {undo.undo_id}", ("w", "g"))
        self._vault.ask(wanted, lambda reply: self._brought_back(undo, answer, reply))

    def _brought_back(self, undo: BegunUndo, answer: Answer, reply: StateBroughtBack | VaultFailure) -> None:
        done = UndoDone(undo.undo_id, undo.call_id, undo.before)
        if isinstance(reply, VaultFailure):
            done = replace(done, error=reply.message)
        else:
            done = replace(
                done,
                written=reply.written,
                removed=reply.removed,
                refused=reply.refused,
                refused_count=reply.refused_count,
            )
        self.now = ""
        record = members(done)
        del record["before"]  # it is in the record of the beginning
        self._try_write("undo.ended", record)
        answer(done)
        self._over()

"""Events of an undo."""

from __future__ import annotations

from harness.events.body import Body, By

OF_CHECKS = "b"
"""How the id of an undo begins that takes back what checks wrote which ran before the work; nothing of the work is lost
by it.
"""


class UndoStarted(Body, frozen=True, kw_only=True):
    """The worktree is about to become what it was in ``snapshot``, just before ``call_id`` (a call or an earlier undo);
    ``before`` is kept.
    """

    TYPE = "undo.started"
    undo_id: str
    call_id: str
    snapshot: str
    before: str
    by: By = By()

    @property
    def of_checks(self) -> bool:
        """True when it is no undo of the work."""
        return self.undo_id.startswith(OF_CHECKS)


class UndoEnded(Body, frozen=True, kw_only=True):
    """``written`` and ``removed`` count names; ``refused`` says what could not be brought back; ``error`` = nothing or
    not all was done.
    """

    TYPE = "undo.ended"
    undo_id: str
    call_id: str
    written: int = 0
    removed: int = 0
    refused: list[str] = []
    refused_count: int = 0
    error: str = ""

    @property
    def of_checks(self) -> bool:
        """True when it is no undo of the work."""
        return self.undo_id.startswith(OF_CHECKS)

"""Taking a session's work only as a person looked at it."""

from __future__ import annotations

from harness.supervisor.errors import OpError
from harness.workspace import private as private_dir
from harness.workspace.diff import diff
from harness.workspace.private import Worktree


def hold_to(tree: Worktree, name: str, seen: str, then: str) -> None:
    """Blocking. Raises OpError ``stale`` when the work is not what was ``seen`` (`Diff.seen`; empty: nobody looked),
    PublishFailed.
    """
    if not seen:
        return
    private_dir.publish(tree)  # commits that only the agent's own folder has would be taken, and no diff stood on them
    if seen != diff(tree).seen:
        raise OpError("stale", f"{name} has other work now than you looked at", f"read it again, then {then}")

"""Taking a session's work only as a person looked at it."""

from __future__ import annotations

from harness.supervisor.base.errors import OpError
from harness.workspace.merge import merge
from harness.workspace.private_git import private_gitdir
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.diff import diff
from harness.workspace.tree.scan import tip


class Reviewed:
    """Blocking. Knows what a commit that the person asked for made of the work they had looked at: it is the same work,
    so what failed after that commit can be tried again without reading it anew.
    """

    def __init__(self) -> None:
        self._committed: dict[str, tuple[str, str]] = {}
        """By worktree: what was seen, and how that is named in its commit."""

    def hold(self, tree: Worktree, name: str, seen: str, then: str) -> str:
        """How the work that was ``seen`` is named now (`Diff.seen`; empty: nobody looked).

        Raises OpError ``stale`` when the work is not that, PublishFailed.
        """
        if not seen:
            return ""
        # commits that only the agent's own folder has would be taken, and no diff shows them
        private_gitdir.publish(tree)
        now = diff(tree).seen
        if now != seen and self._committed.get(str(tree.root)) != (seen, now):
            raise OpError("stale", f"{name} has other work now than you looked at", f"read it again, then {then}")
        return now

    def commit(self, tree: Worktree, message: str, seen: str) -> str:
        """Commit what is in no commit, for a person who looked at ``seen``; how that is named then.

        Raises as `merging.commit_all`.
        """
        before = tip(tree)
        if merge.commit_all(tree, message) == before or not seen:
            return seen
        now = diff(tree).seen
        self._committed[str(tree.root)] = (seen, now)
        return now

"""Events of bringing a session's finished work into a branch of its repository."""

from __future__ import annotations

import msgspec

from harness.domain import outcomes
from harness.events.body import Body, By
from harness.events.plan.plan_events import ViolatedFile

RAN_FOR = "merge "
"""What `ToolProposed.ref` of a check begins with that runs on the result of a merge: no model can call itself so, for
the blank.
"""
FAST_FORWARD = "fast-forward"
MERGE = "merge"
SQUASH = "squash"
REBASE = "rebase"
MERGED = "merged"
CONFLICTS = "conflicts"
CHECKS_FAILED = "checks failed"
REFUSED = "refused"
"""The branch or the checkout became another one while the checks ran."""
BROKEN_OFF = "broken off"


class MergeStarted(Body, frozen=True, kw_only=True):
    """The result of a merge is made; nothing of the person's was touched yet.

    ``how``: fast-forward, merge, squash, rebase. ``into`` is a branch of ``repo``, which stood on ``onto``;
    ``commits`` of the session, up to ``head``, are in the result. ``decides`` names files that decide whether work is
    done and that the session changed.
    """

    TYPE = "merge.started"
    merge_id: str
    how: str
    into: str
    repo: str
    onto: str
    head: str
    result: str
    commits: int
    checks: int = 0
    """How many checks run on the result first."""
    decides: list[str] = []
    by: By = By()


class MergeChecked(Body, frozen=True, kw_only=True):
    """A check ran on the result of a merge, as call ``call_id``."""

    TYPE = "merge.checked"
    merge_id: str
    call_id: str
    command: str
    passed: bool
    why: str = ""
    before: str = ""
    """As in `CheckVerdict`."""

    @property
    def outcome(self) -> str:
        """How it stands against what it said before the work."""
        return outcomes.outcome(self.before, passed=self.passed)


class CheckedOn(msgspec.Struct, frozen=True):
    """A check on the result of a merge, and how that compares with its result before the work."""

    command: str
    outcome: str


class MergeEnded(Body, frozen=True, kw_only=True):
    """``outcome``: merged, conflicts, checks failed, refused, broken off; in all but the first nothing was moved.

    ``conflicts`` names the files that both sides changed; ``commit`` is what ``into`` stands on when it was merged, and
    ``head`` what of the session is in it. ``checked``: the checks that ran on the
    result.
    """

    TYPE = "merge.ended"
    merge_id: str
    outcome: str
    into: str
    how: str = ""
    onto: str = ""
    head: str = ""
    commit: str = ""
    conflicts: list[str] = []
    why: str = ""
    checked: list[CheckedOn] = []
    by: By = By()


class MergeHandedBack(Body, frozen=True, kw_only=True):
    """The agent is to bring ``into``, at commit ``onto``, into its work, because that could not be merged.

    ``files`` decide whether work is done, and ``into`` has them otherwise than the session began with: as they are
    there they count from now on, too.
    """

    TYPE = "merge.handed_back"
    into: str
    onto: str
    files: list[ViolatedFile] = []
    by: By = By()

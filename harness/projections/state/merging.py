"""Where the merge of a session stands, and whether its work is in a branch of the person's. Pure; the fold holds a
`MergeState`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from harness.events.body import BlobRef, Body
from harness.events.calls.call_events import ToolEnded, ToolProposed, ToolStarted
from harness.events.session.session_events import SessionContinued
from harness.events.work import merge_events as m

_NAMED = 3


class MergeLook(msgspec.Struct, frozen=True, kw_only=True):
    """Where a merge would go: the branch ``into`` that the checkout ``repo`` shows (empty for none), and how many
    ``commits`` it lacks. ``no`` and ``hint`` say why it cannot be tried, and what to do; empty when it can.
    """

    repo: str
    into: str
    commits: int
    no: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    """A check on the result of a merge; ``status`` is empty while it runs."""

    call_id: str
    command: str
    status: str = ""
    exit_code: int | None = None
    preview: str = ""
    output: BlobRef | None = None


@dataclass(frozen=True, slots=True)
class MergeState:
    """``open`` is the merge under way, ``ended`` the newest that is over since the session was last taken up, ``taken``
    the newest that ever merged.
    """

    open: m.MergeStarted | None = None
    ended: m.MergeEnded | None = None
    ran: Ran | None = None
    """The newest check of the open merge."""
    taken: m.MergeEnded | None = None

    @property
    def merged(self) -> str:
        """The branch that holds the work; empty while none does."""
        return self.ended.into if self.ended is not None and self.ended.outcome == m.MERGED else ""

    def words(self) -> str:
        """What a row says of it; empty when there is nothing to say."""
        if self.open is not None:
            return f"merging into {self.open.into}"
        if self.ended is None:
            return ""
        into = self.ended.into
        match self.ended.outcome:
            case m.MERGED:
                return f"merged into {into}"
            case m.CONFLICTS:
                return f"conflicts with {into} in {named(self.ended.conflicts)}"
            case m.CHECKS_FAILED:
                return f"not merged: checks fail together with {into}"
        return f"not merged into {into}: {self.ended.why}"


def named(files: list[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return ", ".join(files[:_NAMED]) + more


def after(known: MergeState, b: Body) -> MergeState:
    """What is known after one more record."""
    match b:
        case m.MergeStarted():
            return MergeState(b, taken=known.taken)
        case m.MergeEnded():
            return MergeState(None, b, taken=b if b.outcome == m.MERGED else known.taken)
        case SessionContinued():
            return MergeState(taken=known.taken) if known.ended is not None else known
        case ToolProposed() if known.open is not None and b.by_merge:
            return replace(known, ran=Ran(b.call_id, str((b.input or {}).get("command", ""))))
        case ToolEnded() if known.ran is not None and known.ran.call_id == b.call_id:
            ran = replace(known.ran, status=b.status, exit_code=b.exit_code, preview=b.preview, output=b.output)
            return replace(known, ran=ran)
    return known


def checks_result(known: MergeState, b: Body) -> bool:
    """True for what begins after a session's end because its merge, which is open, checks the result."""
    if known.ran is None:
        return False
    return isinstance(b, ToolProposed | ToolStarted) and b.call_id == known.ran.call_id

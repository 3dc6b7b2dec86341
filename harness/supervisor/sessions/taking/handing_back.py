"""What an agent is told when its work could not be merged. Pure."""

from __future__ import annotations

from harness.domain.text.display_safe import to_display
from harness.events import types as t
from harness.events.work import merge_events as m

_NAMED = 20
_LONGEST = 200
_BACK = {
    m.CONFLICTS: "both sides changed {what}",
    m.CHECKS_FAILED: "on the two together checks fail: {what}",
    m.REFUSED: "it moved meanwhile",
    m.BROKEN_OFF: "it moved meanwhile",
}


def able(ended: t.MergeEnded | None) -> bool:
    """True when the newest merge ended in what an agent can mend."""
    return ended is not None and ended.outcome in _BACK


def told(ended: t.MergeEnded, onto: str, words: str) -> str:
    """The message; ``onto`` is what the branch stands on now, ``words`` are the person's own."""
    what = _files(ended.conflicts) if ended.outcome == m.CONFLICTS else to_display(ended.why, limit=1000)
    into = to_display(ended.into, limit=_LONGEST)
    verb = "rebase" if ended.how == m.REBASE else "merge"
    why = _BACK.get(ended.outcome, "").replace("{what}", what)
    text = (
        f"Your work cannot go into the branch {into} as it is: {into} stands on {onto} now, and {why}. In your worktree"
        f" run `git {verb} {onto}`, settle every conflict so that what both sides want stays, and commit. Then see that"
        " everything that decides whether you are done passes on the result."
    )
    return f"{text}\n\n{words}" if words else text


def _files(names: list[str]) -> str:
    shown = ", ".join(to_display(name, limit=_LONGEST) for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown

"""What may be merged, and why not: decided from facts alone. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from harness.domain.text.formatting import counted
from harness.projections.state.merging import named

OWN = ("watchfloor/", "watchfloor-sessions/")
"""What the branches of sessions begin with: the first, or the next one where a repository has something in its way."""


class Refusal(NamedTuple):
    """Why nothing is merged: a stable ``code``, what is wrong, and what to do."""

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known before anything is made. Names of branches are without ``refs/heads/``."""

    sid: str
    branch: str
    """The session's branch; ``head`` is its commit."""
    head: str
    into: str
    """Where the work goes; empty when the checkout is on no branch."""
    onto: str
    """The commit ``into`` stands on; empty when there is no such branch."""
    repo: str
    """The person's checkout."""
    commits: int
    """Commits of the session that ``into`` has not."""
    uncommitted: tuple[str, ...] = ()
    """Changed and new files of the session's worktree that are in no commit."""
    dirty: tuple[str, ...] = ()
    """Changed files of the checkout, when ``into`` is what it shows."""
    under_way: str = ""
    """What git does already that stands in the way (a merge, a rebase), in words; ``busy`` is the folder where."""
    busy: str = ""
    elsewhere: str = ""
    """Another folder in which ``into`` is checked out; ``apart``: that checkout's git folder, which lies elsewhere and
    does not say where the files are.
    """
    apart: bool = False
    taken_back: bool = False
    """All that was merged of it before is undone there."""
    related: bool = True
    """They have a commit in common."""
    foreign: bool = False
    """``repo`` is another repository than the session's."""


def refusal(s: Situation) -> Refusal | None:
    """Why this cannot be merged; None when it can be tried."""
    if s.foreign:
        return Refusal(
            "other_repo", f"{s.repo} is another repository than the session's", "name a checkout of that one"
        )
    if s.under_way:
        return Refusal(
            "busy", f"{s.under_way} is under way in {s.busy}", "finish it or give it up there, then try again"
        )
    if not s.into:
        return Refusal(
            "no_branch",
            f"{s.repo} is on no branch",
            f"switch to one there, or name it: watchfloor merge --into BRANCH {s.sid}",
        )
    if not s.onto:
        return Refusal("not_found", f"{s.repo} has no branch {s.into}", f"make it: git -C {s.repo} branch {s.into}")
    if s.into.startswith(OWN) or s.into == s.branch:
        return Refusal("own_branch", f"{s.into} is a session's own branch", "merge into one of yours")
    if s.uncommitted:
        return Refusal(
            "uncommitted",
            f"{_files(s.uncommitted)} of the session {_are(s.uncommitted)} in no commit: {named(list(s.uncommitted))}",
            f"commit them to its branch first: watchfloor merge --commit {s.sid}; or have the agent do it: watchfloor"
            f' continue {s.sid} "commit your work"',
        )
    if not s.commits and s.taken_back:
        return Refusal(
            "nothing",
            f"{s.into} has every commit of {s.branch} already, and later commits took back what they changed",
            f"revert those: git -C {s.repo} revert COMMIT",
        )
    if not s.commits:
        return Refusal("nothing", f"{s.into} has every commit of {s.branch} already", "there is nothing to merge")
    if not s.related:
        return Refusal("unrelated", f"{s.branch} and {s.into} have no commit in common", "merge them by hand")
    if s.elsewhere and s.apart:
        return Refusal(
            "elsewhere",
            f"{s.into} is checked out in another folder, of which git names only the git folder {s.elsewhere}",
            f"merge there: watchfloor merge --repo FOLDER {s.sid}",
        )
    if s.elsewhere:
        return Refusal(
            "elsewhere",
            f"{s.into} is checked out in {s.elsewhere}",
            f"merge there: watchfloor merge --repo {s.elsewhere} {s.sid}",
        )
    if s.dirty:
        return Refusal(
            "dirty",
            f"{_files(s.dirty)} in {s.repo} {_are(s.dirty)} changed and not committed: {named(list(s.dirty))}",
            "commit or stash them there, then try again; nothing was touched",
        )
    return None


def _files(names: tuple[str, ...]) -> str:
    return counted(len(names), "file")


def _are(names: tuple[str, ...]) -> str:
    return "is" if len(names) == 1 else "are"

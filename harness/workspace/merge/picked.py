"""What of a session's work a branch has in commits of its own, so that none is brought there twice. Blocking."""

from __future__ import annotations

from dataclasses import dataclass

from harness.workspace.git.run import Git


@dataclass(frozen=True, slots=True)
class Taken:
    """Work that was merged before: ``head`` of the session, on what the branch had at ``onto`` (empty: nobody knows),
    became ``commit``, which need not hold it (squash).
    """

    head: str
    commit: str
    onto: str = ""


def count(git: Git, onto: str, head: str, taken: Taken | None) -> int:
    """How many commits of ``head`` have work that ``onto`` has not. Raises GitFailed."""
    return int(git.text("rev-list", "--count", *missing(git, onto, head, taken)))


def missing(git: Git, onto: str, head: str, taken: Taken | None) -> list[str]:
    """How `rev-list` names the commits whose work ``onto`` has not. Raises GitFailed."""
    before = held(git, onto, head, taken)
    return [head, f"^{onto}", *([f"^{before}"] if before else ())]


def held(git: Git, onto: str, head: str, taken: Taken | None) -> str:
    """The commit up to which ``onto`` has the session's work in commits of its own; empty when history says how far.

    Not when the session has brought those commits into its branch since: then history knows better.
    """
    if taken is None or any(git.commit(one) is None for one in (taken.head, taken.commit)):
        return ""

    def holds(newer: str, older: str) -> bool:
        return git.call("merge-base", "--is-ancestor", older, newer, ok=(0, 1))[0] == 0

    own = holds(head, taken.head) and not holds(head, taken.commit)
    return taken.head if own and holds(onto, taken.commit) and not holds(onto, taken.head) else ""

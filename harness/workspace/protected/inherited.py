"""What decides whether work is done, and was changed by another session before this one's start. Blocking.

A session counts as right what the commit has that it begins from, so a person who lets one begin from another's work
must hear of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from harness.checks.protected_files import Rules, chosen
from harness.projections.state.protected_files import some
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected import check_inputs


@dataclass(frozen=True, slots=True)
class Other:
    """Another session: its name, the commit that it began from, and its branch."""

    name: str
    base: str
    branch: str


def told(tree: Worktree, rules: Rules, others: Iterable[Other]) -> str:
    """In words, what of that lies in the start of this worktree; empty when nothing does. Raises GitFailed."""
    for other in others:
        if other.base != tree.base and _before(tree, other.base, tree.base) and _before(tree, tree.base, other.branch):
            changed = set(tree.git.names("diff", "--name-only", "-z", "--no-renames", other.base, tree.base))
            decides = check_inputs.guarded(replace(tree, base=other.base), rules) | chosen(changed, rules)
            if found := sorted(changed & decides):
                return (
                    f"it begins from work of session {other.name}, which changed what decides whether work is done:"
                    f" {some(found)}; that counts here as it is now"
                    f" (git diff {other.base[:12]} {tree.base[:12]} shows it)"
                )
    return ""


def _before(tree: Worktree, older: str, newer: str) -> bool:
    """Whether a commit lies in another's past; a name that is gone has none."""
    return tree.git.call("merge-base", "--is-ancestor", older, newer, ok=(0, 1, 128))[0] == 0

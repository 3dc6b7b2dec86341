"""What a push brings to each ref and takes away there, from the repository's own objects. Blocking.

No remote is asked: where its refs stand is in the action already.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.domain.actions.action import PushAction
from harness.domain.actions.destination import Refspec
from harness.domain.calls.card_facts import LAST_SEEN, CommitNote, FileCount, Outgoing
from harness.workspace.git.errors import GitFailed
from harness.workspace.git.run import Git
from harness.workspace.private_git.private_gitdir import Worktree

MOST_COMMITS = 20
MOST_FILES = 12
_MOST_BYTES = 256 * 1024
_TEXT = 300
_TIMEOUT_S = 10.0
_ABSENT = "absent"
_LOG = (
    "log",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-show-signature",
    "--diff-merges=first-parent",
    "--numstat",
    "--encoding=UTF-8",
    "--format=%x00%H %s",
    f"--max-count={MOST_COMMITS}",
)


def outgoing(tree: Worktree, action: PushAction) -> list[Outgoing]:
    """One entry a ref; what cannot be compared says so and never raises for it."""
    return [_one(tree, action.remote, spec, force=action.to.force) for spec in action.to.refspecs]


def _one(tree: Worktree, remote: str, spec: Refspec, *, force: bool) -> Outgoing:
    git = tree.git
    sha = spec.sha
    ref = spec.ref
    old = spec.old
    new = old == _ABSENT
    try:
        known = None if new else git.commit(old)
        if known is not None:
            commits, more = _commits(git, [sha, f"^{known}"])
            lost, lost_more = _commits(git, [known, f"^{sha}"])
            return Outgoing(ref, new, commits, more, lost, lost_more, refused=bool(lost) and not force)
        if seen := git.text("for-each-ref", "--format=%(objectname)", f"refs/remotes/{remote}/").split():
            without = [f"^{name}" for name in seen]
            against = f"{remote} {LAST_SEEN}"
        else:
            without = [f"^{tree.base}"]
            against = "where this session began; what is older is sent too if the remote lacks it"
        commits, more = _commits(git, [sha, *without])
    except GitFailed as exc:
        return Outgoing(ref, new, problem=str(exc)[:_TEXT])
    unknown = "" if new else f"it stands at {old[:12]} there, a commit that is not known here"
    return Outgoing(ref, new, commits, more, against=against, problem=unknown)


def _commits(git: Git, revisions: Sequence[str]) -> tuple[list[CommitNote], int]:
    """The newest of these commits, and how many there are besides. Raises GitFailed."""
    listed = "\n".join(revisions).encode() + b"\n"
    count = int(git.run("rev-list", "--count", "--stdin", stdin=listed, timeout=_TIMEOUT_S))
    if not count:
        return [], 0
    _, out = git.call(*_LOG, "--stdin", stdin=listed, timeout=_TIMEOUT_S, limit=_MOST_BYTES)
    whole = len(out) < _MOST_BYTES
    parts = out.decode("utf-8", "backslashreplace").split("\0")[1:]
    # the last one may be cut where reading stopped
    found = [_commit(part) for part in (parts if whole or len(parts) == 1 else parts[:-1])]
    return found, count - len(found)


def _commit(text: str) -> CommitNote:
    head, _, rest = text.partition("\n")
    sha, _, subject = head.partition(" ")
    rows = [row.split("\t", 2) for row in rest.split("\n") if row.count("\t") >= 2]
    files = [FileCount(path[:_TEXT], _number(added), _number(removed)) for added, removed, path in rows[:MOST_FILES]]
    return CommitNote(sha, subject[:_TEXT], files, max(0, len(rows) - MOST_FILES))


def _number(text: str) -> int:
    return int(text) if text.isdigit() else -1

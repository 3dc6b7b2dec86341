"""Which commits have their work elsewhere under another name: cherry-picked, rebased, or squashed into one. Blocking.

A commit's work is its change: what it takes away, adds and stands between, without line numbers, byte for byte (git's
own patch id passes over white space, which some languages mean). Where the surroundings differ, a merge decides: work
that changes nothing when it is merged into a commit is in that commit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from harness.workspace.git.errors import GitFailed
from harness.workspace.git.run import Git, version

_MOST = 500
"""Commits that are compared, on either side; of more, the newest of the others, and none of the session's."""
_MERGES = 40
"""Merges that are tried."""
_PATHS = 200
_MOST_BYTES = 64 << 20
_TIMEOUT_S = 20.0
_BEFORE_S = 86_400
"""Seconds that clocks may differ by: nobody has work before it was made."""
_HUNK = re.compile(rb"@@ [^@]* @@[^\n]*")
_PATCH = ("-p", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--full-index", "-U3")
_MERGE_TREE = (2, 38)


def only_here(git: Git, head: str, others: Sequence[str]) -> int:
    """How many commits of ``head`` that none of the commits ``others`` reaches have work that is in no commit of those
    either. What cannot be compared counts as only here. Raises GitFailed.

    ``git`` stores what merges make, so it is one of ours.
    """
    without = "".join(f"^{one}\n" for one in others).encode()
    own = git.run("rev-list", "--reverse", "--topo-order", "--stdin", head, stdin=without).decode().split()
    if not own or len(own) > _MOST:
        return len(own)
    try:
        return _Comparison(git, head, own, without).left()
    except GitFailed:  # too large, too slow, or objects that are not there
        return len(own)


class _Comparison:
    """``without``: the commits of others, as `rev-list` takes them away."""

    def __init__(self, git: Git, head: str, own: list[str], without: bytes) -> None:
        self._git = git
        self._head = head
        self._own = own
        self._without = without
        self._tried = 0

    def _list(self, *what: str) -> list[str]:
        """Of its own commits those that `rev-list` names."""
        return self._git.run("rev-list", *what, "--stdin", stdin=self._without).decode().split()

    def left(self) -> int:
        changes = dict(_changes(self._git, self._own))
        merges = {*self._list("--merges", self._head)}
        work = [one for one in self._own if one in changes or one in merges]
        if not changes:  # commits without any change are known by nothing but their words
            return len(self._own)
        known = self._known()
        patches = dict(_changes(self._git, known))
        there = {*patches.values()}
        left = [one for one in work if changes.get(one) not in there and not (one in merges and self._plain(one))]
        if left and (upto := self._squashed(there, [*patches])):
            held = {*self._list(upto)}
            left = [one for one in left if one not in held]
        return len(left)

    def _known(self) -> list[str]:
        """The commits of others that may have it: made since, and with a change of one of its files."""
        (base, *_) = self._own
        since = int(self._git.text("log", "-1", "--format=%ct", base)) - _BEFORE_S
        how = ("log", "-z", "--format=", "--name-only", "--no-renames", "--no-merges", "--stdin", self._head)
        listed = self._git.run(*how, stdin=self._without).decode("utf-8", "surrogateescape")
        paths = {path for path in listed.replace("\n", "\0").split("\0") if path}
        named = ["--", *sorted(paths)] if len(paths) <= _PATHS else ["--"]
        options = ("rev-list", f"--max-count={_MOST}", "--no-merges", f"--since={since}", "--stdin", f"^{self._head}")
        others = self._without.replace(b"^", b"")
        return self._git.run("--literal-pathspecs", *options, *named, stdin=others).decode().split()

    def _plain(self, merge: str) -> bool:
        """Whether a merge is what merging its parents gives, so that it has no work of its own."""
        parents = self._git.text("rev-list", "--parents", "-1", merge).split()[1:]
        return len(parents) == 2 and self._merged(*parents) == self._git.text("rev-parse", f"{merge}^{{tree}}")

    def _squashed(self, there: set[str], others: Sequence[str]) -> str:
        """The newest of its commits up to which all is in one of the others; empty when there is none."""
        line = self._list("--first-parent", self._head)
        begun = self._git.text("rev-parse", "--quiet", "--verify", f"{line[-1]}^", ok=(0, 1, 128))
        for upto in line[:_MERGES] if begun else ():
            if _id(self._git.run("diff", *_PATCH, begun, upto, timeout=_TIMEOUT_S)) in there:
                return upto
        for upto, known in ((one, other) for one in line for other in others):
            if self._tried >= _MERGES:
                break
            if self._merged(known, upto) == self._git.text("rev-parse", f"{known}^{{tree}}"):
                return upto
        return ""

    def _merged(self, ours: str, theirs: str) -> str:
        """The tree of a merge; empty when there is a conflict, or this git cannot say."""
        self._tried += 1
        if version() < _MERGE_TREE:
            return ""
        status, out = self._git.call(
            "merge-tree", "--write-tree", "--no-messages", ours, theirs, ok=(0, 1, 128), timeout=_TIMEOUT_S
        )
        return out.decode("ascii", "replace").strip() if status == 0 else ""


def _changes(git: Git, commits: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(commit, what names its change) of those that change anything and are no merges. Raises GitFailed."""
    if not commits:
        return
    asked = "".join(f"{one}\n" for one in commits).encode()
    how = ("log", "--no-walk=unsorted", "--stdin", "--no-merges", "--no-show-signature", "--format=%x00%H")
    _, out = git.call(*how, *_PATCH, stdin=asked, timeout=_TIMEOUT_S, limit=_MOST_BYTES)
    if len(out) >= _MOST_BYTES:
        raise GitFailed("log", 0, f"the changes have more than {_MOST_BYTES} bytes")
    marks = [*re.finditer(rb"(?:\A|(?<=\n))\x00([0-9a-f]{40,64})\n", out)]
    ends = [at.start() for at in marks[1:]] + [len(out)]
    for mark, end in zip(marks, ends, strict=True):
        if named := _id(out[mark.end() : end]):
            yield mark[1].decode(), named


def _id(patch: bytes) -> str:
    """A name of the change that a patch makes, wherever in its files; empty for none."""
    starts = [at.start() for at in re.finditer(rb"^diff --git ", patch, re.MULTILINE)]
    if not starts:
        return ""
    digest = hashlib.sha256()
    for begin, end in pairwise([*starts, len(patch)]):
        text = patch[begin:end].rstrip(b"\n")
        hunks = b"\n@@ " in text
        for line in text.split(b"\n"):
            if not (hunks and line.startswith(b"index ")):
                digest.update(_HUNK.sub(b"@@", line) + b"\n" if line.startswith(b"@@ ") else line + b"\n")
    return digest.hexdigest()

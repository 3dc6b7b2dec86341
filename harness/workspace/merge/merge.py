"""Making the result of a merge beside everything a person has: no branch moves, no checkout is touched. Blocking.

Git merges in a scratch repository of ours: no driver, filter or hook that a configuration names can take part, and what
attributes of either side ask for has no program behind it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.checks.protected_files import Rules, chosen
from harness.domain.text.display_safe import to_display
from harness.events.work import merge_events as m
from harness.workspace.clone import filters, submodules
from harness.workspace.git.errors import CannotKeep, GitTooOld, MovesSubmodule
from harness.workspace.git.merge_rules import Situation
from harness.workspace.git.run import Git, Repository, open_repository, version
from harness.workspace.git.scratch import Scratch, scratch
from harness.workspace.merge import checkout
from harness.workspace.merge.picked import Taken, count, held, missing
from harness.workspace.private_git import private_gitdir, withheld
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected import check_inputs, restore
from harness.workspace.tree import preserved
from harness.workspace.tree.scan import GITLINK, look, tip
from harness.workspace.tree.worktrees import AS_THEY_LIE, identity

HOLDS = "refs/watchfloor/merge/"
"""Refs that hold a result until a branch does, so that no ``gc`` takes it."""
_NEEDED = (2, 38)
_SUBJECT = 72
_MOST_TITLE = 2000
_NOTHING = "000000"
_MOST_LISTED = 200
_IN_A_NAME = dict.fromkeys(map(ord, "<>\n\0"), " ")


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """``how``: merge (moves forward where that is enough), squash, rebase. ``into`` empty: the branch that the checkout
    ``repo`` shows. ``message`` empty: one is made.
    """

    how: str
    repo: Path
    into: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class MergePlace:
    """A branch that work goes into: ``shown`` by the checkout ``root``, or by none of its folders."""

    common: Path
    git_dir: Path
    root: Path
    into: str
    onto: str
    shown: bool

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.into}"


@dataclass(frozen=True, slots=True)
class MergeResult:
    """A commit that holds both sides. ``decides`` are files that decide whether work is done and that differ."""

    how: str
    commit: str
    decides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """Both sides changed these ``files``; ``at`` names the commit that could not be made anew, when one by one."""

    files: tuple[str, ...]
    at: str = ""


def survey(
    tree: Worktree, sid: str, wish: MergeRequest, taken: Taken | None = None
) -> tuple[Situation, MergePlace | None]:
    """What is so now; the place only when the branch exists. Raises WorkspaceError, OSError."""
    if version() < _NEEDED:
        raise GitTooOld(
            f"merging needs git {_NEEDED[0]}.{_NEEDED[1]} or newer, and {'.'.join(map(str, version()))} is here"
        )
    private_gitdir.publish(tree)
    repository = open_repository(wish.repo)
    git = Git.of(repository.git_dir)
    current = checkout.branch_of(repository.git_dir)
    into = wish.into.removeprefix("refs/heads/") or current
    into = checkout.branch_behind(git, into) if into else ""
    head = tip(tree)
    onto = git.commit(f"refs/heads/{into}") if into and checkout.is_branch(git, into) else None
    same = repository.common == tree.common
    loose = uncommitted(tree, head)
    known = Situation(sid, tree.branch, head, into, onto or "", str(repository.root), 0, loose, foreign=not same)
    if same and not into:
        known = replace(known, under_way=checkout.under_way(repository.git_dir), busy=str(repository.root))
    if not same or onto is None:
        return known, None
    shown = into == current and not repository.bare
    place = MergePlace(repository.common, repository.git_dir, repository.root, into, onto, shown)
    gone = was_taken_back(tree, onto, head, taken)
    commits = count(git, onto, head, None if gone else taken)
    return replace(_compared(known, git, place, tree.private.parent), commits=commits, taken_back=gone), place


def _compared(known: Situation, git: Git, place: MergePlace, folder: Path) -> Situation:
    under_way = checkout.under_way(place.git_dir) if place.shown else ""
    busy = str(place.root)
    if not under_way and (at := checkout.rebased_in(git, place.into)):
        under_way = f"a rebase of {place.into}"
        busy = at
    elsewhere = "" if place.shown else checkout.shown_in(git, place.into)
    return replace(
        known,
        related=git.call("merge-base", known.head, place.onto, ok=(0, 1))[0] == 0,
        elsewhere=elsewhere,
        apart=bool(elsewhere) and Path(elsewhere).resolve() == place.common.resolve(),
        under_way=under_way,
        busy=busy,
        dirty=tuple(checkout.changed(place, place.onto, folder, aside=False)) if place.shown else (),
    )


def was_taken_back(tree: Worktree, onto: str, head: str, taken: Taken | None) -> bool:
    """True when all that was merged of this very ``head`` is undone there, by a revert or by hand: whoever merges it
    once more wants it once more. Not when a part still stands, or was changed since. Raises GitFailed.
    """
    if taken is None or not taken.onto or head != taken.head:
        return False
    with scratch(tree.common, tree.private.parent) as made:
        work = _Work(made, onto, head, "watchfloor", "", None)
        return work.undone(taken.onto, taken.commit)


def uncommitted(tree: Worktree, head: str) -> tuple[str, ...]:
    """Files of the worktree that are in no commit, by name. Raises WorkspaceError, OSError."""
    if not tree.root.is_dir():
        return ()
    with look(tree, head) as view:
        seen = view.walk()
        found = view.changes(seen)
        return tuple(sorted({*found.different, *found.gone, *seen.untracked, *seen.nested}))


# -- the result ------------------------------------------------------------------------------------


def make(
    tree: Worktree,
    place: MergePlace,
    head: str,
    wish: MergeRequest,
    name: str,
    goal: str,
    rules: Rules,
    taken: Taken | None = None,
) -> MergeResult | MergeConflict | None:
    """Bring ``head`` and what ``place`` stands on together, and hold the result by a ref; None when that would change
    no file. What was ``taken`` before is not brought a second time. Raises GitFailed, MovesSubmodule.
    """
    repository = open_repository(place.root)
    who, address = identity(repository)
    kept_there = None if was_taken_back(tree, place.onto, head, taken) else taken
    with scratch(tree.common, tree.private.parent) as made:
        work = _Work(made, place.onto, head, who, address, kept_there)
        forward = work.git.call("merge-base", "--is-ancestor", place.onto, head, ok=(0, 1))[0] == 0
        title = first_line(wish.message or goal or name)
        found: MergeResult | MergeConflict
        if forward and wish.how != m.SQUASH:
            found = MergeResult(m.FAST_FORWARD, head)
        elif wish.how == m.REBASE:
            found = work.rebased()
        elif wish.how == m.SQUASH:
            found = work.squashed(wish.message or f"{title}\n\n{_listed(work, tree.branch)}")
        else:
            found = work.merged(wish.message or f"Merge branch '{tree.branch}'\n\n{_paragraph(goal or name)}")
        if isinstance(found, MergeConflict):
            return found
        if work.equal(found.commit):
            return None
        if moved := work.submodules(found.commit, repository):
            raise MovesSubmodule(f"{moved}merge yourself: git -C {place.root} merge {tree.branch}")
        decides = tuple(sorted(chosen(work.changed(tree.base), rules, check_inputs.run_by(tree, rules))))
    Git.of(place.git_dir).run("update-ref", HOLDS + _held_as(tree), found.commit)
    return MergeResult(found.how, found.commit, decides)


def deciding(tree: Worktree, onto: str, rules: Rules) -> dict[str, str]:
    """Digests, as `originals.digest` makes them, of the files that decide whether work is done and that ``onto`` has
    otherwise than the session's base. Raises GitFailed.
    """
    git = Git.of(tree.common)
    fields = git.names("diff-tree", "-r", "-z", "--no-renames", "--raw", tree.base, onto)
    found: dict[str, str] = {}
    run = check_inputs.run_by(tree, rules)
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, oid, _ = about.split(" ")
        if not chosen({path}, rules, run) or mode == GITLINK:
            continue
        found[path] = restore.ABSENT if mode == _NOTHING else restore.digest_of(mode, git.run("cat-file", "blob", oid))
    return found


def lay_out(tree: Worktree, commit: str, root: Path) -> None:
    """Write the files of a result into the empty folder ``root``, as they lie in the commit. Raises GitFailed."""
    root.mkdir(mode=0o700)
    with scratch(tree.common, root.parent) as made:
        plain = (("core.autocrlf", "false"), ("core.protectHFS", "false"), ("core.protectNTFS", "false"))
        git = Git(made.git.git_dir, root, (*made.git.extra, *plain)).with_env(**dict(made.git.more_env))
        (git.git_dir / "info" / "attributes").write_text(AS_THEY_LIE, "ascii")
        git.run("read-tree", commit)
        git.run("checkout-index", "--all", "--quiet")
    repository = open_repository(tree.repo)
    submodules.fill(repository, commit, root, root.parent)
    filters.lay(repository, commit, root, root.parent, None)


def let_go(tree: Worktree) -> None:
    """Hold no result any more. Raises GitFailed."""
    Git.of(tree.common).call("update-ref", "-d", HOLDS + _held_as(tree), ok=(0, 1, 128))


def _held_as(tree: Worktree) -> str:
    return tree.branch.replace("/", "-")


class _Work:
    """Two commits brought together in a scratch repository; what is made lies in the repository's store."""

    def __init__(self, made: Scratch, onto: str, head: str, who: str, address: str, taken: Taken | None) -> None:
        self.onto = onto
        self.head = head
        git = made.storing
        self.git = Git(git.git_dir, git.work_tree, (*git.extra, ("merge.renames", "true"))).with_env(
            **dict(git.more_env),
            GIT_COMMITTER_NAME=who,
            GIT_COMMITTER_EMAIL=address,
            GIT_AUTHOR_NAME=who,
            GIT_AUTHOR_EMAIL=address,
        )
        self._base = held(self.git, onto, head, taken)
        self._new = missing(self.git, onto, head, taken)

    def merged(self, message: str) -> MergeResult | MergeConflict:
        tree = self._both()
        if isinstance(tree, MergeConflict):
            return tree
        return MergeResult(m.MERGE, self._commit(self.git, tree, message, self.onto, self.head))

    def squashed(self, message: str) -> MergeResult | MergeConflict:
        tree = self._both()
        if isinstance(tree, MergeConflict):
            return tree
        return MergeResult(m.SQUASH, self._commit(self.git, tree, message, self.onto))

    def rebased(self) -> MergeResult | MergeConflict:
        """Each commit of the session anew, oldest first; merges among them are left out, and what changes nothing."""
        at = self.onto
        for one in self._own("--no-merges"):
            tree = self._replayed(at, one)
            if isinstance(tree, MergeConflict):
                return tree
            if tree != self._files(at):
                at = self._again(one, tree, at)
        return MergeResult(m.REBASE, at)

    def equal(self, commit: str) -> bool:
        """True when a result that is no merge holds just the files that are there already."""
        own = self.git.call("merge-base", "--is-ancestor", self.head, commit, ok=(0, 1))[0] == 0
        return not own and self._files(commit) == self._files(self.onto)

    def undone(self, before: str, after: str) -> bool:
        """True when taking back what came between two commits, the newer of which ``onto`` has, would change
        nothing.
        """
        if any(self.git.commit(one) is None for one in (before, after)):
            return False
        if self.git.call("merge-base", "--is-ancestor", after, self.onto, ok=(0, 1))[0]:
            return False
        if after == self.onto or self._files(before) == self._files(after):
            return False
        return self._between(self._files(after), self._files(self.onto), self._files(before)) == self._files(self.onto)

    def subjects(self) -> list[str]:
        """The first lines of the session's commits, oldest first."""
        out = self.git.run("log", "--reverse", "--format=%s", *self._new).decode("utf-8", "replace")
        return [line for line in out.split("\n") if line]

    def submodules(self, commit: str, repository: Repository) -> str:
        """What ``commit`` does to the first submodule that it lacks, or has at a commit that the person's clone of it
        has not, and what has to be done first, in words; empty when there is none.
        """
        there: set[str] | None = None
        fields = self.git.names("diff-tree", "-r", "-z", "--no-renames", "--raw", self.onto, commit)
        for about, path in zip(fields[::2], fields[1::2], strict=False):
            before, after = about.lstrip(":").split(" ")[:2]
            if after == GITLINK:
                if there is None:
                    there = {one.path for one in submodules.find(repository, commit) if one.git_dir is not None}
                if path in there:
                    continue
                return (
                    f"{path} is a submodule that it has at another commit, which your clone has not, and nobody here"
                    " knows whether it is anywhere else; push it, then "
                )
            if before == GITLINK:
                return f"{path} is a submodule that it removes, and the files of submodules are yours; "
        return ""

    def changed(self, base: str) -> set[str]:
        """Files of ``base`` that the session changed or removed."""
        names = self.git.names(
            "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=MDT", base, self.head
        )
        return set(names)

    def _own(self, *more: str) -> list[str]:
        return self.git.text("rev-list", "--reverse", "--topo-order", *more, *self._new).split()

    def _files(self, commit: str) -> str:
        return self.git.text("rev-parse", f"{commit}^{{tree}}")

    def _both(self) -> str | MergeConflict:
        """The tree that holds both sides, compared with the last commit whose work both have."""
        if self._base:
            return self._between(self._files(self._base), self._files(self.onto), self._files(self.head))
        return self._tree(self.onto, self.head)

    def _between(self, below: str, ours: str, theirs: str) -> str | MergeConflict:
        """Two trees brought together that came from a third."""
        root = self._commit(self.git, below, "below")
        one = self._commit(self.git, ours, "ours", root)
        return self._tree(one, self._commit(self.git, theirs, "theirs", root))

    def _tree(self, ours: str, theirs: str) -> str | MergeConflict:
        status, out = self.git.call(
            "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs, ok=(0, 1)
        )
        first, *files = out.decode("utf-8", "surrogateescape").split("\0")
        if status == 0:
            return first.strip()
        return MergeConflict(tuple(dict.fromkeys(name for name in files if name)))

    def _replayed(self, at: str, one: str) -> str | MergeConflict:
        """The tree of ``one`` over ``at``: what it changed of its own parent, and nothing before that."""
        above = self.git.commit(f"{one}^")
        below = self._files(above) if above else self.git.text("mktree")
        tree = self._between(below, self._files(at), self._files(one))
        if isinstance(tree, MergeConflict):
            subject = self.git.run("log", "-1", "--format=%s", one).decode("utf-8", "replace")
            return MergeConflict(tree.files, f"{one[:12]} {subject.strip()}"[:_SUBJECT])
        return tree

    def _again(self, one: str, tree: str, parent: str) -> str:
        out = self.git.run("log", "-1", "--date=raw", "--format=%an%x00%ae%x00%ad%x00%B", one)
        name, mail, date, message = out.decode("utf-8", "surrogateescape").split("\0", 3)
        git = self.git.with_env(GIT_AUTHOR_NAME=name, GIT_AUTHOR_EMAIL=mail, GIT_AUTHOR_DATE=f"@{date}")
        return self._commit(git, tree, message, parent)

    @staticmethod
    def _commit(git: Git, tree: str, message: str, *parents: str) -> str:
        above = [part for parent in parents for part in ("-p", parent)]
        text = message.encode("utf-8", "surrogateescape").replace(b"\0", b"")
        return git.run("commit-tree", tree, *above, "-F", "-", stdin=text).decode().strip()


def _listed(work: _Work, branch: str) -> str:
    subjects: Sequence[str] = work.subjects()
    lines = [f"* {first_line(text)}" for text in subjects[:_MOST_LISTED]]
    if len(subjects) > _MOST_LISTED:
        lines.append(f"* and {len(subjects) - _MOST_LISTED} more")
    return f"{branch}:\n\n" + "\n".join(lines)


def first_line(text: str) -> str:
    """One line of text that anybody may have written, safe in any terminal; what is longer ends in an ellipsis."""
    whole = _first(text)
    return whole if len(whole) <= _SUBJECT else f"{whole[: _SUBJECT - 1]}…"


def _paragraph(text: str) -> str:
    """The whole first line of it, wrapped as in every commit."""
    return textwrap.fill(_first(text), _SUBJECT, break_long_words=False, break_on_hyphens=False)


def _first(text: str) -> str:
    return to_display(next((line.strip() for line in text.split("\n") if line.strip()), ""), limit=_MOST_TITLE)


# -- what is in no commit --------------------------------------------------------------------------


def commit_all(tree: Worktree, message: str) -> str:
    """Commit the changed and new files of the session's worktree on its own branch; returns the commit.

    Raises CannotKeep for what git takes into no commit, WorkspaceError, OSError.
    """
    private_gitdir.publish(tree)
    head = tip(tree)
    name, address = (text.translate(_IN_A_NAME) for text in identity(open_repository(tree.repo)))
    with look(tree, head) as view:
        seen = view.walk()
        found = view.changes(seen)
        if nested := next(iter(seen.nested), ""):
            raise CannotKeep(
                f"{nested}/ is a repository of its own, which no commit takes; move it out of the worktree"
            )
        files = {path: seen.tracked[path] for path in found.different} | seen.untracked
        links = tuple(f"{path}/" for path, entry in view.entries.items() if entry.mode == GITLINK)
        if inside := next((path for path in sorted(files) if path.startswith(links)), ""):
            raise CannotKeep(
                f"{inside} is in a submodule, and a commit of the repository takes no file of it; have the agent commit"
                f" it there, then the submodule, or take it over yourself from {tree.root}"
            )
        covered = filters.attributes(view.scratch.git, sorted(files)) if (tree.root / ".gitattributes").exists() else {}
        own = {filters.LFS, *filters.configured(tree.common)} if covered else set()
        if behind := next((path for path, name in covered.items() if name in own), ""):
            raise CannotKeep(
                f"{behind} goes through the filter {covered[behind]}, and would be committed as it lies there; have the"
                f' agent commit it, whose git has the filter: watchfloor continue ID "commit your work"'
            )
        load = preserved.Load(files, found.gone)
        if not load:
            return head
        made = preserved.written(view, load, first_line(message), f"{name} <{address}>")
    git = Git.of(tree.admin)
    git.run("update-ref", "-m", "watchfloor: work that was in no commit", f"refs/heads/{tree.branch}", made, head)
    git.run("read-tree", "--reset", made)
    withheld.flag(tree.admin, tree.denied)
    private_gitdir.publish(tree)
    return made

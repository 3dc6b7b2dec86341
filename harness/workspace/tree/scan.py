"""What lies in a session's worktree, compared with a commit. No git enters the worktree: we walk it, git sees single
copies.

A *nested repository* is a folder below the top that holds anything named ``.git``, whatever it is. Git keeps nothing of
such a folder, so all of it is work that exists nowhere else as far as anybody can prove. *Ignored folders*
(``node_modules/``, ``__pycache__``, a folder whose own ``.gitignore`` ignores itself, as caches have) hold what can be
made again; an ignored file anywhere else (``.env``) is work.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.executor.git_names import refused_by_git
from harness.workspace.clone import filters, submodule_git, submodules
from harness.workspace.git import commit_files, index_stamps
from harness.workspace.git.commit_files import Entry
from harness.workspace.git.errors import CannotKeep, GitFailed, TooMuchToRead
from harness.workspace.git.run import Git
from harness.workspace.git.scratch import MAX_RULES, Scratch, scratch
from harness.workspace.git.untrusted_dir import Ground, Item, Kind
from harness.workspace.private_git.private_gitdir import Worktree

MAX_ITEMS = 2_000_000
"""Names that a worktree may hold before we give up on it."""
MAX_COPY = 64 << 20
"""Bytes of a changed file up to which git compares it; a larger one counts as changed."""
MAX_HASH = 4 << 30
AUTHOR = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "Watchfloor"), ("EMAIL", "keep@watchfloor.invalid"))
}
_LONG_NAME = 200
"""Bytes of a name that a record may carry."""
GITLINK = "160000"
_LINK = "120000"
_MOST_MARK = 8192
_CACHES = ("__pycache__",)
_RULES = (".gitignore", ".gitattributes")


_FILES = ("100644", "100755")


class Changes(NamedTuple):
    """Files of a commit that are ``different`` (in content or kind) and that are ``gone``.

    ``uncompared`` of the first are over `MAX_COPY`.
    """

    different: set[str]
    gone: set[str]
    uncompared: set[str]


@dataclass(slots=True)
class Seen:
    """What the walk found, by relative path.

    ``odd`` are names that git takes into no commit (``.git`` and its disguises).
    """

    tracked: dict[str, Item] = field(default_factory=dict)
    untracked: dict[str, Item] = field(default_factory=dict)
    ignored: dict[str, Item] = field(default_factory=dict)
    nested: dict[str, dict[str, Item]] = field(default_factory=dict)
    odd: dict[str, Item] = field(default_factory=dict)
    reproducible: int = 0
    unreadable: list[str] = field(default_factory=list)


class View:
    """The worktree as it is during a ``with look(…)``, against one commit."""

    def __init__(self, tree: Worktree, commit: str, ground: Ground, made: Scratch) -> None:
        self.commit = commit
        self.ground = ground
        self.scratch = made
        self._tree = tree
        self.entries: Mapping[str, Entry] = commit_files.of(tree.common, commit)

    def walk(self, *, complete: bool = False) -> Seen:
        """Find every file. Ignored folders are entered only when ``complete``. Raises TooMuchToRead."""
        known = {path for path, entry in self.entries.items() if entry.mode != GITLINK}
        marks = submodule_git.marks(self._tree.private.parent, self._tree.admin)
        seen = _Walk(self.ground, self.scratch, known, complete, marks).run()
        if len(known) < len(self.entries):
            self._leave_submodules(seen)
        return seen

    def _leave_submodules(self, seen: Seen) -> None:
        """Files of submodules that lie there as we laid them are nobody's work."""
        links = tuple(f"{path}/" for path, entry in self.entries.items() if entry.mode == GITLINK)
        theirs = {path for found in (seen.untracked, seen.ignored) for path in found if path.startswith(links)}
        if not theirs:
            return
        laid = submodules.files(self._tree.repo, self.commit)
        for found in (seen.untracked, seen.ignored):
            for path in theirs & found.keys() & laid.keys():
                with contextlib.suppress(OSError):  # what cannot be read may be work
                    if self.oid(path, found[path]) == laid[path].oid:
                        del found[path]

    def changes(self, seen: Seen) -> Changes:
        """What became of the commit's files; our index then holds the worktree's state of them. Raises GitFailed."""
        suspects, gone = self._suspects(seen)
        return self._compared(seen, suspects, gone)

    def differences(self, seen: Seen) -> Changes:
        """What became of the commit's files, without our index: where none was written to, no git is asked.
        Raises GitFailed.
        """
        suspects, gone = self._suspects(seen)
        return self._compared(seen, suspects, gone) if suspects else Changes(set(), gone, set())

    def _suspects(self, seen: Seen) -> tuple[set[str], set[str]]:
        """Files of the commit whose bytes or kind are not the same, and those that are not there."""
        known = index_stamps.read(self._tree.admin / "index", len(self.commit) // 2)
        suspects = set[str]()
        gone = set[str]()
        for path, entry in self.entries.items():
            if entry.mode == GITLINK:
                continue
            item = seen.tracked.get(path)
            stamp = known.get(path)
            if item is None:
                if not index_stamps.left_out(path, known):
                    gone.add(path)
            elif not self._same(path, entry, item, stamp):
                suspects.add(path)
        return suspects, gone

    def _compared(self, seen: Seen, suspects: set[str], gone: set[str]) -> Changes:
        self.scratch.git.run("read-tree", self.commit)
        copied = {path for path in suspects if self._copy(path, seen.tracked[path])}
        self._take(copied | gone)
        found = self.scratch.git.names("diff-index", "--cached", "--name-only", "--no-renames", "-z", self.commit, "--")
        return Changes((set(found) - gone) | (suspects - copied), gone, suspects - copied)

    def _take(self, paths: set[str]) -> None:
        try:
            self.scratch.take(sorted(paths))
        except GitFailed:  # an attribute that does not fit the content: then the bytes count as they are
            for rules in self.scratch.tree.rglob(".gitattributes"):
                rules.unlink()
            self.scratch.take(sorted(paths))

    def brought_back(self, seen: Seen, base: str) -> set[str]:
        """Untracked files that ``base`` has and the commit has not; our index holds them, too, after `changes`.
        Raises GitFailed.
        """
        of_base = commit_files.of(self._tree.common, base)
        lost = (path for path in seen.untracked if path in of_base and path not in self.entries)
        found = {path for path in lost if self._copy(path, seen.untracked[path])}
        self._take(found)
        return found

    def staged(self) -> list[str]:
        """Files that somebody added to the worktree's own index from outside the sandbox and that are not so in the
        commit.
        """
        index = self._tree.admin / "index"
        if not index.is_file():
            return []
        with contextlib.suppress(GitFailed):
            git = self.scratch.git.with_env(GIT_INDEX_FILE=str(index))
            return git.names(
                "diff-index",
                "--cached",
                "--name-only",
                "--no-renames",
                "-z",
                "--ignore-submodules=all",
                self.commit,
                "--",
            )
        return []

    def staged_commit(self) -> str:
        """A commit of what `staged` speaks of, over the commit. Raises CannotKeep when a merge is unfinished there."""
        git = self.scratch.storing.with_env(GIT_INDEX_FILE=str(self._tree.admin / "index"), **AUTHOR)
        try:
            return git.text("commit-tree", git.text("write-tree"), "-p", self.commit, "-m", "What was staged")
        except GitFailed as exc:
            raise CannotKeep(
                f"what is staged in {self._tree.root} cannot be kept ({exc}); finish or give up the merge there, then"
                " try again"
            ) from exc

    def _same(self, path: str, entry: Entry, item: Item, stamp: index_stamps.Stamp | None) -> bool:
        info = item.stamp
        if info is None or (item.kind is Kind.LINK) != (entry.mode == _LINK):
            return False
        if item.kind is Kind.FILE and bool(info.st_mode & stat.S_IXUSR) != (entry.mode == "100755"):
            return False
        if stamp is not None and stamp.oid == entry.oid and stamp.fits(info):
            return True
        try:
            return self.oid(path, item) == entry.oid or self._cleaned(path, item, entry)
        except OSError:
            return False

    def _cleaned(self, path: str, item: Item, entry: Entry) -> bool:
        """Whether the file is what a filter makes the committed one of. Raises OSError."""
        ours = self._tree.private.parent
        if item.kind is not Kind.FILE or not (ours / filters.FOLDER).is_dir():
            return False
        with open(self.ground.file(path), "rb", buffering=0) as file:
            return filters.stands_for(ours, hashlib.file_digest(file, "sha256").hexdigest(), entry.oid)

    def oid(self, path: str, item: Item) -> str:
        """The object id that the file's bytes have as they are. Raises OSError."""
        digest = hashlib.sha256() if len(self.commit) == 64 else hashlib.sha1(usedforsecurity=False)
        if item.kind is Kind.LINK:
            target = self.ground.link(path)
            digest.update(b"blob %d\0" % len(target) + target)
            return digest.hexdigest()
        with open(self.ground.file(path), "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_HASH:
                raise OSError(errno.EFBIG, f"has more than {MAX_HASH} bytes", path)
            digest.update(b"blob %d\0" % size)
            left = size
            while left > 0 and (chunk := file.read(min(1 << 20, left))):
                digest.update(chunk)
                left -= len(chunk)
        return digest.hexdigest()

    def _copy(self, path: str, item: Item) -> bool:
        if item.kind is Kind.LINK:
            return self.scratch.copy_link(self.ground, path)
        return (self.scratch.tree / path).is_file() or self.scratch.copy(self.ground, path, MAX_COPY)


@contextmanager
def look(tree: Worktree, commit: str) -> Iterator[View]:
    """Look at the worktree (at an empty folder when it is gone) against ``commit``. Raises OSError, GitFailed."""
    with (
        scratch(tree.common, tree.private.parent) as made,
        Ground(tree.root if tree.root.is_dir() else made.tree) as ground,
    ):
        yield View(tree, commit, ground, made)


def tip(tree: Worktree) -> str:
    """The commit that the worktree stands on, as far as it is published."""
    return Git(tree.common).commit(f"refs/heads/{tree.branch}") or tree.base


def newest_commits(tree: Worktree, most: int) -> list[str]:
    """The newest commits of its branch, as far as they are published: short id and subject. Raises GitFailed."""
    log = Git.of(tree.common).run("log", f"-n{most}", "--no-decorate", "--format=%h %<(200,trunc)%s", tip(tree))
    return [text.rstrip() for text in log.decode("utf-8", "replace").split("\n") if text.strip()]


def commits_since(tree: Worktree, before: str, head: str, most: int) -> tuple[list[tuple[str, str]], int]:
    """(short id, subject) of the newest ``most`` commits that ``head`` has and ``before`` has not, oldest first, and
    how many more there are. Raises GitFailed.
    """
    git = Git.of(tree.common)
    log = git.run("log", f"-n{most}", "--no-decorate", "--format=%h %<(200,trunc)%s", head, f"^{before}")
    pairs = [text.rstrip().partition(" ") for text in log.decode("utf-8", "replace").split("\n") if text.strip()]
    count = int(git.run("rev-list", "--count", head, f"^{before}")) if len(pairs) == most else len(pairs)
    return [(short, subject) for short, _, subject in reversed(pairs)], count - len(pairs)


def files_between(tree: Worktree, before: str, head: str, most: int) -> list[str]:
    """The first ``most`` files that two commits have otherwise. Raises GitFailed."""
    names = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--end-of-options", before, head)
    raw = Git.of(tree.common).run(*names).split(b"\0")
    return [name.decode("utf-8", "backslashreplace") for name in raw if 0 < len(name) <= _LONG_NAME][:most]


def paths(tree: Worktree) -> list[str]:
    """Files of the worktree's base, by name. Raises GitFailed."""
    return sorted(path for path, entry in commit_files.of(tree.common, tree.base).items() if entry.mode in _FILES)


def paths_named(tree: Worktree, names: Collection[str], *, links: bool = False) -> list[str]:
    """Files (and symbolic ``links``) of the worktree's base that have one of these names, in any folder. Raises
    GitFailed.
    """
    found = commit_files.of(tree.common, tree.base)
    modes = (*_FILES, _LINK) if links else _FILES
    return sorted(path for path, entry in found.items() if path.rpartition("/")[2] in names and entry.mode in modes)


class _Walk:
    """Level by level, so that git is asked about ignored names once for each level that has unknown ones."""

    def __init__(
        self, ground: Ground, made: Scratch, known: Collection[str], complete: bool, marks: Mapping[str, bytes]
    ) -> None:
        self._ground = ground
        self._scratch = made
        self._known = known
        self._complete = complete
        self._marks = marks
        self._seen = Seen()
        self._folders = folders_of(known)
        self._left = MAX_ITEMS
        self._made_again: set[str] = set()

    def run(self) -> Seen:
        level = [("", "")]
        while level:
            level = self._level(level)
        return self._seen

    def _level(self, level: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Take in these (folder, nested repository it is in) and return the folders below them."""
        below: list[tuple[str, str]] = []
        files = dict[str, Item]()
        folders = dict[str, Item]()
        for folder, nested in level:
            for path, item, inside in self._items(folder, nested):
                if inside is not None:
                    self._nested(path, item, inside, below)
                elif folder in self._made_again:
                    self._reproducible(path, item, below)
                elif item.kind is Kind.FOLDER:
                    if path in self._folders or path in self._known:
                        below.append((path, ""))
                    else:
                        folders[f"{path}/"] = item
                elif path in self._known:
                    self._seen.tracked[path] = item
                else:
                    files[path] = item
        ignored = self._scratch.ignored([*sorted(files), *sorted(folders)])
        own = {os.path.dirname(path) for path in ignored if item_name(path) == ".gitignore"} - self._folders - {""}
        for path, item in files.items():
            self._file(path, item, path in ignored, own)
        for name in folders:
            path = name.rstrip("/")
            if name in ignored or item_name(path) in _CACHES or os.path.dirname(path) in own:
                self._made_again.add(path)
                if not self._complete:
                    continue
            below.append((path, ""))
        return below

    def _items(self, folder: str, nested: str) -> Iterator[tuple[str, Item, str | None]]:
        """(path, item, nested repository or None) of what git could hold; the rest is noted as odd."""
        try:
            items = self._ground.items(folder, stamps=True)
        except OSError as exc:
            if exc.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                self._seen.unreadable.append(f"{folder}/")
            return
        self._left -= len(items)
        if self._left < 0:
            raise TooMuchToRead(
                f"the worktree holds more than {MAX_ITEMS} names; remove what is not needed there, then try again"
            )
        if folder in self._marks and not nested and self._marked(folder):
            items = [item for item in items if item.name != ".git"]
        if folder and not nested and any(item.name == ".git" for item in items):
            nested = folder
        if nested:
            self._seen.nested.setdefault(nested, {})
        elif folder not in self._made_again:
            self._rules(folder, items)
        for item in items:
            path = f"{folder}/{item.name}" if folder else item.name
            if refused_by_git(item.name) or (item.kind is Kind.LINK and item.name.lower() == ".gitmodules"):
                if path != ".git" or item.kind is Kind.FOLDER:
                    self._seen.odd[path] = item
            elif item.kind is not Kind.OTHER:
                yield path, item, nested or None

    def _marked(self, folder: str) -> bool:
        """Whether it is a submodule whose git is the one that we gave it."""
        try:
            return self._ground.read(f"{folder}/.git", _MOST_MARK) == self._marks[folder]
        except OSError:
            return False

    def _rules(self, folder: str, items: list[Item]) -> None:
        for item in items:
            if item.name in _RULES and item.kind is Kind.FILE:
                path = f"{folder}/{item.name}" if folder else item.name
                if not self._scratch.copy(self._ground, path, MAX_RULES):
                    (self._scratch.tree / path).unlink(missing_ok=True)

    def _nested(self, path: str, item: Item, inside: str, below: list[tuple[str, str]]) -> None:
        if item.kind is Kind.FOLDER:
            below.append((path, inside))
            return
        if path in self._known:
            self._seen.tracked[path] = item
        else:
            self._seen.nested[inside][path] = item

    def _reproducible(self, path: str, item: Item, below: list[tuple[str, str]]) -> None:
        if item.kind is Kind.FOLDER:
            self._made_again.add(path)
            below.append((path, ""))
        else:
            self._seen.reproducible += 1

    def _file(self, path: str, item: Item, ignored: bool, own: Collection[str]) -> None:
        if not ignored:
            self._seen.untracked[path] = item
        elif os.path.dirname(path) in own:
            self._seen.reproducible += 1
        else:
            self._seen.ignored[path] = item


def item_name(path: str) -> str:
    """The last part of a relative path."""
    return path.rpartition("/")[2]


def folders_of(paths: Collection[str]) -> set[str]:
    """Every folder that is above one of the paths, the top excepted."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found

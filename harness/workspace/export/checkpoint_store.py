"""Checkpoints of a session: commits in a git repository of ours in the session's folder, which no sandbox shows.

All sessions on a repository read its objects, and a checkpoint holds what nobody committed, so none of it is written
there. What the commit under a checkpoint has is borrowed from the repository, which holds that commit by a ref; all
else lies in the store, also when the repository has it by chance: what chance holds goes with the next `gc`.

What goes into a commit comes as a stream from the vault (`harness.vault.export`): git opens no file of the worktree.
Each commit stands on what the branch stood on, never on the checkpoint before, so that one can go without the others.
Whoever dies in between leaves at most a pack that nothing needs and a ref that the next one of that number takes.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from harness.linux import durable
from harness.workspace.git import commit_files
from harness.workspace.git.errors import CannotKeep
from harness.workspace.git.run import Git
from harness.workspace.git.scratch import Scratch, lay_out, quoted, real_objects, scratch
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.preserved import in_stream

REFS = "refs/watchfloor/checkpoints/"
"""Of the store."""
UNDER = "refs/watchfloor/under/"
"""Of the repository: the commits, all of them once on a branch, that checkpoints stand on."""
_WHO = "Watchfloor <keep@watchfloor.invalid>"
_MADE = "refs/heads/made"
"""The name of a new commit in a scratch repository of ours, until its ref holds it."""
_PLAIN = re.compile(r"[^\x20-\x7e]+")
_SETTINGS = (("fastimport.unpackLimit", "1"), ("core.protectHFS", "false"), ("core.protectNTFS", "false"))
_PACKS = 16
"""Packs that a store may have, however few checkpoints it holds, before those that stay are put into one."""


def head(parent: str, message: str) -> str:
    """The lines before the changes of a stream that makes a commit over ``parent``; `Store.keep` says where it goes."""
    text = _PLAIN.sub("?", message)[:200] + "\n"
    return f"commit {_MADE}\ncommitter {_WHO} {int(time.time())} +0000\ndata {len(text)}\n{text}\nfrom {parent}\n"


@dataclass(frozen=True, slots=True)
class Store:
    """The checkpoints of session ``sid`` in its ``folder``; one thread at a time writes to it."""

    sid: str
    folder: Path

    @property
    def objects(self) -> Path:
        """What only the checkpoints hold; whoever reads them borrows from the repository, too."""
        return self.folder / "objects"

    def ref(self, number: int) -> str:
        """The ref of a checkpoint."""
        return f"{REFS}{self.sid}/{number}"

    def ground(self, common: Path, commit: str) -> str:
        """The line of a stream that begins with the files of a checkpoint; empty when it, or what it stands on, is no
        longer there.
        """
        status, out = self._both(common).call(
            "rev-parse", "--quiet", "--end-of-options", f"{commit}^{{tree}}", f"{commit}^^{{tree}}", ok=(0, 1, 128)
        )
        return f'M 040000 {out.split()[-2].decode()} ""\n' if status == 0 else ""

    def keep(self, tree: Worktree, number: int, parent: str, stream: Path) -> str:
        """Make the commit over ``parent`` that a whole stream describes and hold it as ``number``; returns the commit.

        Repeating it replaces what an attempt that died left. Raises GitFailed, CannotKeep, OSError.
        """
        self._prepare(tree.common, parent)
        Git(tree.common).run("update-ref", "-m", "watchfloor: a checkpoint stands on it", self._under(number), parent)
        with scratch(tree.common, tree.private.parent, self.objects) as made:
            git = replace(made.git, extra=(*made.git.extra, *_SETTINGS))
            with stream.open("rb") as file:
                git.run("fast-import", "--quiet", "--done", "--force", stdin=file.fileno())
            _complete(git, tree, parent)
            commit = git.commit(_MADE)
            if commit is None:
                raise CannotKeep(f"git made no commit for checkpoint {number}")
            self._take(made, [commit])
            self._hold(number, commit)
        return commit

    def drop(self, common: Path | None, keep: Collection[int] = ()) -> int:
        """Let go of every checkpoint but those numbers; returns how many. ``common`` is None when the repository is
        gone. Raises GitFailed.
        """
        stays = {prefix + str(number) for number in keep for prefix in (f"{REFS}{self.sid}/", f"{UNDER}{self.sid}/")}
        if common is not None:
            repository = Git(common)
            _delete(repository, [name for name in _refs(repository, f"{UNDER}{self.sid}/") if name not in stays])
        own = [name for name in self.standing() if name not in stays]
        _delete(Git(self.folder), own)
        return len(own)

    def tidy(self, tree: Worktree) -> None:
        """Put what the checkpoints need into one pack once there are many, and delete the packs of those that went.

        Raises GitFailed, OSError.
        """
        packs = sorted(self.objects.glob("pack/*.pack"))
        standing = self.standing()
        if len(packs) <= max(_PACKS, 2 * len(standing)):
            return
        git = Git(self.folder)
        with scratch(tree.common, tree.private.parent, self.objects) as made:
            wanted = _needed(made, [commit for name in standing if (commit := git.commit(name))])
            pack = self._pack(made, wanted) if wanted else None
        for old in packs:
            if old != pack:
                old.with_suffix(".idx").unlink(missing_ok=True)  # git looks for a pack by its index
                old.with_suffix(".rev").unlink(missing_ok=True)
                old.unlink()

    def standing(self) -> list[str]:
        """The refs of the checkpoints in the store. Raises GitFailed."""
        return _refs(Git(self.folder), f"{REFS}{self.sid}/") if self._made else []

    @property
    def _made(self) -> bool:
        return (self.folder / "HEAD").is_file()

    def _under(self, number: int | str) -> str:
        return f"{UNDER}{self.sid}/{number}"

    def _both(self, common: Path) -> Git:
        return Git(common).with_env(GIT_ALTERNATE_OBJECT_DIRECTORIES=quoted(self.objects))

    def _prepare(self, common: Path, commit: str) -> None:
        """Make the store, or finish one whose making died; a person's git finds what it borrows."""
        if not self._made:
            lay_out(self.folder, "sha256" if len(commit) == 64 else "sha1", bare=True)
        borrowed = self.objects / "info" / "alternates"
        text = os.fsencode(f"{real_objects(common)}\n")
        if not borrowed.is_file() or borrowed.read_bytes() != text:
            durable.swap_file(borrowed, text)

    def _take(self, made: Scratch, commits: Iterable[str]) -> None:
        """Bring what these commits hold beyond their parents, and the store does not, into the store."""
        alone = made.tree.parent / "alone"
        alone.mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (alone / "pack").symlink_to(self.objects / "pack")
        inner = made.git.with_env(GIT_OBJECT_DIRECTORY=str(alone), GIT_ALTERNATE_OBJECT_DIRECTORIES="")
        told = inner.run("cat-file", "--batch-check", stdin=_needed(made, commits)).splitlines()
        if lacking := [line.removesuffix(b" missing") for line in told if line.endswith(b" missing")]:
            self._pack(made, b"\n".join(lacking) + b"\n", "--window=0")

    def _pack(self, made: Scratch, wanted: bytes, *options: str) -> Path:
        """Put these objects into the store as one pack; complete, under its name, or not there."""
        at = made.tree.parent / "pack"
        name = made.git.run("pack-objects", "--quiet", *options, str(at), stdin=wanted).decode().strip()
        for ending in ("pack", "rev", "idx"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{at}-{name}.{ending}", self.objects / "pack" / f"pack-{name}.{ending}")
        durable.sync_folder(self.objects / "pack")
        return self.objects / "pack" / f"pack-{name}.pack"

    def _hold(self, number: int | str, commit: str) -> None:
        """A ref as git writes it: its own lock would outlive a git that was killed, and nobody else writes here."""
        path = self.folder / REFS / self.sid / str(number)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.replace_file(path, f"{commit}\n".encode("ascii"))


def _complete(git: Git, tree: Worktree, parent: str) -> None:
    """Give a checkpoint the files that are kept from its session, as its parent has them: they are not in the worktree,
    and nobody deleted them.
    """
    commit = git.commit(_MADE)
    denied = {path: one for path, one in commit_files.of(tree.common, parent).items() if tree.denied.path(path)}
    if not denied or commit is None:
        return
    there = {*git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)}
    message = git.text("log", "-1", "--format=%s", commit)
    text = head(parent, message).encode() + f'M 040000 {git.text("rev-parse", f"{commit}^{{tree}}")} ""\n'.encode()
    for path, one in denied.items():
        if path not in there:
            text += f"M {one.mode} {one.oid} ".encode() + in_stream(path) + b"\n"
    git.run("fast-import", "--quiet", "--done", "--force", stdin=text + b"\ndone\n")


def _needed(made: Scratch, commits: Iterable[str]) -> bytes:
    """The objects of each of these commits that its own parent does not hold, one a line: those of another's parent
    may go with that other. Raises GitFailed when one is missing.
    """
    asked = ("rev-list", "--objects", "--no-object-names")
    found = {line for commit in commits for line in made.git.run(*asked, commit, f"^{commit}^").splitlines()}
    return b"".join(line + b"\n" for line in found)


def _refs(git: Git, prefix: str) -> list[str]:
    return git.text("for-each-ref", "--format=%(refname)", prefix).split()


def _delete(git: Git, names: Collection[str]) -> None:
    if names:
        git.run("update-ref", "--stdin", stdin="".join(f"delete {name}\n" for name in names).encode("ascii"))

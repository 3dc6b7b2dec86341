"""Keeping everything a worktree holds as one commit, byte for byte as it lies there.

The commit is written by ``git fast-import`` from a stream that we make: git opens no file of the worktree, converts
nothing and reads no configuration but ours. What git takes into no commit (``.git`` of a nested repository) becomes a
tar archive beside its place.
"""

from __future__ import annotations

import os
import stat
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from harness.workspace.git.errors import CannotKeep, GitFailed
from harness.workspace.git.run import Git
from harness.workspace.git.untrusted_dir import Ground, Item, Kind
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.scan import View

REFS = "refs/watchfloor/kept/"
ARCHIVE = ".watchfloor.tar"
MAX_BYTES = 4 << 30
"""Bytes that are kept at most; above that keeping is refused and nothing is removed."""
_WHO = "Watchfloor <keep@watchfloor.invalid>"
_TRIES = 8
_CHUNK = 1 << 20


@dataclass(slots=True)
class Load:
    """What is to be kept over a commit, all by relative path.

    ``files`` lie on the ground, ``archives`` are tar files of ours.
    """

    files: dict[str, Item] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    archives: dict[str, Path] = field(default_factory=dict)
    parents: list[str] = field(default_factory=list)
    """Further commits that the kept one holds on to."""

    def __bool__(self) -> bool:
        return bool(self.files or self.gone or self.archives or self.parents)


def keep(tree: Worktree, sid: str, view: View, load: Load) -> str:
    """Commit ``load`` over the view's commit to a ref of its own in the repository; returns the ref. Nothing is lost
    when it fails.

    A ref of an earlier attempt is never replaced; one that keeps the same, which a fall left behind, is returned.
    Raises CannotKeep, GitFailed.
    """
    size = sum(item.stamp.st_size for item in load.files.values() if item.stamp) + sum(
        path.stat().st_size for path in load.archives.values()
    )
    if size > MAX_BYTES:
        raise CannotKeep(
            f"{_amount(size)} would have to be kept, more than {_amount(MAX_BYTES)}; remove or move what is not needed:"
            f" {_largest(load)}"
        )
    repository = Git(tree.common)
    ref = next(name for name in _names(sid) if repository.commit(name) is None)
    for left in reversed(range(_TRIES)):
        commit = written(view, load, f"Unsaved work of session {sid}") if load else view.commit
        if same := _alike(repository, sid, commit):
            return same
        repository.run("update-ref", "-m", "watchfloor: kept work of a session", ref, commit, "0" * len(commit))
        try:  # a `gc --prune=now` may have taken the new objects just before the ref held them
            repository.run("rev-list", "--objects", "--quiet", commit, "--not", view.commit)
            return ref
        except GitFailed:
            repository.run("update-ref", "-d", ref, commit)
            if not left:
                raise
    raise AssertionError("unreachable")


def archive(ground: Ground, path: str, item: Item, into: Path) -> None:
    """A tar archive of ``path`` (a folder or a file), named as in its own folder; links stay links, pipes and devices
    are left out.

    Raises CannotKeep when something cannot be read or it is larger than may be kept.
    """
    base = path.rpartition("/")[0]
    left = MAX_BYTES
    with tarfile.open(into, "w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape") as tar:
        for name, found in _all(ground, path, item):
            info = tarfile.TarInfo(name.removeprefix(f"{base}/") if base else name)
            try:
                left -= _add(tar, ground, name, found, info, left)
            except OSError as exc:
                raise CannotKeep(
                    f"{name} cannot be kept: {exc.strerror or exc}; remove or move it, then try again"
                ) from exc


def _add(tar: tarfile.TarFile, ground: Ground, name: str, item: Item, info: tarfile.TarInfo, left: int) -> int:
    """Add one thing; returns its bytes."""
    if item.kind is Kind.FOLDER:
        info.type = tarfile.DIRTYPE
        info.mode = 0o700
        tar.addfile(info)
    elif item.kind is Kind.LINK:
        info.type = tarfile.SYMTYPE
        info.linkname = os.fsdecode(ground.link(name))
        tar.addfile(info)
    elif item.kind is Kind.FILE:
        with open(ground.file(name), "rb") as file:
            about = os.fstat(file.fileno())
            if about.st_size > left:
                raise OSError(f"more than {_amount(MAX_BYTES)} in all")
            info.size = about.st_size
            info.mode = stat.S_IMODE(about.st_mode)
            info.mtime = about.st_mtime
            tar.addfile(info, file)
            return info.size
    return 0


def _all(ground: Ground, path: str, item: Item) -> Iterator[tuple[str, Item]]:
    pending = [(path, item)]
    while pending:
        name, found = pending.pop()
        yield name, found
        if found.kind is Kind.FOLDER:
            try:
                below = ground.items(name)
            except OSError as exc:
                raise CannotKeep(f"{name} cannot be kept: {exc.strerror}; remove or move it, then try again") from exc
            pending += [(f"{name}/{i.name}", i) for i in reversed(below)]


def archive_name(path: str, taken: set[str]) -> str:
    """Where the archive of ``path`` lies in the commit: beside it, under a name that git takes and that is free."""
    folder, _, name = path.rpartition("/")
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-~") else "_" for c in name)
    wanted = (f"{folder}/" if folder else "") + f"{plain}{ARCHIVE}"
    number = 1
    found = wanted
    while found in taken:
        number += 1
        found = f"{wanted.removesuffix('.tar')}-{number}.tar"
    return found


def _names(sid: str) -> Iterator[str]:
    yield REFS + sid
    for number in range(2, 1000):
        yield f"{REFS}{sid}-{number}"


def _alike(git: Git, sid: str, commit: str) -> str:
    """The ref of the session's kept work with the same files over the same commits; empty when there is none."""
    said = ("show", "--no-patch", "--format=%T %P %an %ae %B")
    content = git.text(*said, commit)
    return next((ref for ref in standing(git, sid) if git.text(*said, ref) == content), "")


def standing(git: Git, sid: str) -> list[str]:
    """The refs of a session's kept work. Raises GitFailed."""
    return git.text("for-each-ref", "--format=%(refname)", REFS + sid, f"{REFS}{sid}-*").split()


def written(view: View, load: Load, message: str, who: str = _WHO) -> str:
    """Write the objects into the repository's store and return the commit, by ``who`` (name and address); its name in
    our own scratch repository is nobody's. Raises CannotKeep, GitFailed.
    """
    git = view.scratch.storing
    ref = f"refs/heads/{os.urandom(8).hex()}"
    git = Git(git.git_dir, git.work_tree, (*git.extra, ("fastimport.unpackLimit", "1"))).with_env(**dict(git.more_env))
    read, write = os.pipe()
    failed: list[Exception] = []

    def feed() -> None:
        try:
            with open(write, "wb") as out:
                _stream(out, view, load, ref, message, who)
        except BrokenPipeError:
            pass  # git ended first and says why
        except Exception as exc:  # handed to the caller below: without its last line git takes nothing of the stream
            failed.append(exc)

    feeder = threading.Thread(target=feed, name="keep", daemon=True)
    feeder.start()
    said: GitFailed | None = None
    try:
        git.run("fast-import", "--quiet", "--done", stdin=read)
    except GitFailed as exc:
        said = exc
    finally:
        os.close(read)
        feeder.join()
    if failed:
        raise failed[0]
    if said is not None:
        raise said
    commit = git.commit(ref)
    if commit is None:
        raise CannotKeep("git made no commit of the work; nothing was removed")
    return commit


def _stream(out: IO[bytes], view: View, load: Load, ref: str, words: str, who: str) -> None:
    message = f"{words}\n".encode("utf-8", "replace")
    if load.archives:
        message += (
            f"\nWhat git takes into no commit lies in *{ARCHIVE}: tar -xf in its folder brings it back.\n".encode()
        )
    out.write(
        b"commit %s\ncommitter %s %d +0000\ndata %d\n%s\n"
        % (ref.encode(), who.encode(), time.time(), len(message), message)
    )
    out.write(b"from %s\n" % view.commit.encode())
    for parent in load.parents:
        out.write(b"merge %s\n" % parent.encode())
    for path in sorted(load.gone):
        out.write(b"D %s\n" % in_stream(path))
    for path, item in sorted(load.files.items()):
        _file(out, view.ground, path, item)
    for path, source in sorted(load.archives.items()):
        with open(source, "rb") as file:
            _blob(out, b"100644", path, file)
    out.write(b"\ndone\n")


def _file(out: IO[bytes], ground: Ground, path: str, item: Item) -> None:
    try:
        if item.kind is Kind.LINK:
            target = ground.link(path)
            out.write(b"M 120000 inline %s\ndata %d\n%s\n" % (in_stream(path), len(target), target))
            return
        file = open(ground.file(path), "rb")  # noqa: SIM115 -- closed below; an error is about this path
    except OSError as exc:
        raise CannotKeep(f"{path} cannot be kept: {exc.strerror or exc}; nothing was removed") from exc
    with file:
        mode = b"100755" if os.fstat(file.fileno()).st_mode & stat.S_IXUSR else b"100644"
        _blob(out, mode, path, file)


def _blob(out: IO[bytes], mode: bytes, path: str, file: IO[bytes]) -> None:
    left = os.fstat(file.fileno()).st_size
    if left > MAX_BYTES:
        raise CannotKeep(f"{path} has {_amount(left)}, more than can be kept; remove or move it, then try again")
    out.write(b"M %s inline %s\ndata %d\n" % (mode, in_stream(path), left))
    while left > 0:
        chunk = file.read(min(_CHUNK, left))
        if not chunk:
            raise CannotKeep(f"{path} became shorter while it was kept; nothing was removed, try again")
        out.write(chunk)
        left -= len(chunk)
    out.write(b"\n")


def in_stream(path: str) -> bytes:
    """A path as a stream for ``git fast-import`` has any."""
    return b'"' + os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def _largest(load: Load) -> str:
    sizes = {path: item.stamp.st_size for path, item in load.files.items() if item.stamp}
    sizes |= {path: source.stat().st_size for path, source in load.archives.items()}
    return ", ".join(f"{path} ({_amount(sizes[path])})" for path in sorted(sizes, key=lambda p: -sizes[p])[:3])


def _amount(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.1f} MiB"

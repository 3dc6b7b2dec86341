"""Bringing a kept state back into folders: only what differs, beneath the roots, through no link. Standard library
only.

Nothing whose content is not kept is ever removed or overwritten; it is named instead.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from harness.vault import entries
from harness.vault.entries import LEFT_OUT, Change, Entry, State
from harness.vault.scan import OpenRoot
from harness.vault.trees import Trees

_SPARE = b".watchfloor-undo-"
_ONE_BY_ONE = 200
"""Up to so many changes each file is synced by itself; more cost less with one sync of everything."""


@dataclass(slots=True)
class Restored:
    """What was done. ``refused`` are names that could not be brought back, with the reason."""

    written: int = 0
    removed: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)

    def refuse(self, path: bytes, why: str) -> None:
        self.refused.append((entries.names([path], 1)[0], why))


class _Place:
    """The folder a name stands in, opened and writable for as long as it is needed."""

    def __init__(self, root: OpenRoot, relative: bytes) -> None:
        parent, _, self.name = relative.rpartition(b"/")
        self.fd = root.folder(parent)
        self._mode = stat.S_IMODE(os.fstat(self.fd).st_mode)
        self._widened = self._mode & 0o300 != 0o300
        if self._widened:
            os.fchmod(self.fd, self._mode | 0o300)

    def close(self) -> None:
        if self._widened:
            os.fchmod(self.fd, self._mode)
        os.close(self.fd)


def restore(trees: Trees, wanted: State, content: Callable[[bytes], bytes], exact: frozenset[bytes]) -> Restored:
    """Turn ``trees.state`` (as it is now) into ``wanted``. ``content(digest)`` gives what is kept."""
    done = Restored()
    now = trees.state
    changes = [c for c in entries.differences(now, wanted) if c.how != "vanished" or c.path[:1] in exact]
    gone = [c.path for c in changes if c.how in ("vanished", "kind") and not _is_root(c.path)]
    for path in sorted(gone, key=lambda p: (p.count(b"/"), p), reverse=True):
        _remove(trees, path, Entry.of(now[path]), done, counts=path not in wanted)
    folders = [c.path for c in changes if c.path in wanted and Entry.of(wanted[c.path]).is_folder]
    for path in sorted(folders, key=lambda p: (p.count(b"/"), p)):
        if not _is_root(path):
            _folder(trees, path, done)
    for change in changes:
        if (value := wanted.get(change.path)) is not None and not Entry.of(value).is_folder:
            _thing(trees, change, Entry.of(value), content, done, sync=len(changes) <= _ONE_BY_ONE)
    _modes(trees, [(p, Entry.of(wanted[p])) for p in sorted(folders, reverse=True)], done)
    if len(changes) > _ONE_BY_ONE:
        os.sync()
    return done


def _remove(trees: Trees, path: bytes, entry: Entry, done: Restored, *, counts: bool) -> None:
    if entry.digest == LEFT_OUT:
        done.refuse(path, "its content is not kept, so it stays")
        return
    try:
        with _at(trees, path) as place:
            if entry.is_folder:
                os.rmdir(place.name, dir_fd=place.fd)
            else:
                os.unlink(place.name, dir_fd=place.fd)
    except FileNotFoundError:
        return
    except OSError as exc:
        done.refuse(path, f"it cannot be removed: {exc.strerror}")
        return
    done.removed += counts


def _folder(trees: Trees, path: bytes, done: Restored) -> None:
    try:
        with _at(trees, path) as place, contextlib.suppress(FileExistsError):
            os.mkdir(place.name, 0o700, dir_fd=place.fd)
            done.written += 1
    except OSError as exc:
        done.refuse(path, f"the folder cannot be made: {exc.strerror}")


def _thing(
    trees: Trees, change: Change, entry: Entry, content: Callable[[bytes], bytes], done: Restored, *, sync: bool
) -> None:
    path = change.path
    if entry.digest == LEFT_OUT:
        done.refuse(path, "its content was not kept")
        return
    try:
        with _at(trees, path) as place:
            if stat.S_ISREG(entry.mode) and change.how == "mode" and _has_one_name(place):
                os.chmod(place.name, stat.S_IMODE(entry.mode), dir_fd=place.fd)
            elif stat.S_ISREG(entry.mode):
                _file(place, entry, content(entry.digest), sync=sync)
            elif stat.S_ISLNK(entry.mode):
                _link(place, content(entry.digest))
            elif stat.S_ISFIFO(entry.mode):
                _pipe(place, entry)
            else:
                done.refuse(path, "a socket or device is not made again")
                return
    except OSError as exc:
        done.refuse(path, f"it cannot be written: {exc.strerror}")
        return
    done.written += 1


def _has_one_name(place: _Place) -> bool:
    """False for a file whose permissions are those of another name too, which may want to keep them."""
    return os.stat(place.name, dir_fd=place.fd, follow_symlinks=False).st_nlink == 1


def _file(place: _Place, entry: Entry, data: bytes, *, sync: bool) -> None:
    spare = _SPARE + os.urandom(6).hex().encode()
    fd = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=place.fd)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fchmod(fd, stat.S_IMODE(entry.mode))
            os.utime(fd, ns=(entry.mtime_ns, entry.mtime_ns))
            if sync:
                os.fdatasync(fd)
        finally:
            os.close(fd)
        os.replace(spare, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spare, dir_fd=place.fd)
        raise


def _link(place: _Place, target: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place.name, dir_fd=place.fd)
    os.symlink(target, place.name, dir_fd=place.fd)


def _pipe(place: _Place, entry: Entry) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place.name, dir_fd=place.fd)
    os.mkfifo(place.name, stat.S_IMODE(entry.mode), dir_fd=place.fd)
    os.chmod(place.name, stat.S_IMODE(entry.mode), dir_fd=place.fd)


def _modes(trees: Trees, folders: Iterable[tuple[bytes, Entry]], done: Restored) -> None:
    """Modes of folders come last and from below, since a closed folder cannot be written into."""
    for path, entry in folders:
        try:
            if _is_root(path):
                trees.root_of(path)[0].set_mode(stat.S_IMODE(entry.mode))
                continue
            with _at(trees, path) as place:
                os.chmod(place.name, stat.S_IMODE(entry.mode), dir_fd=place.fd)
        except OSError as exc:
            done.refuse(path, f"its permissions cannot be set: {exc.strerror}")


def _is_root(path: bytes) -> bool:
    return path.endswith(b"/")


@contextlib.contextmanager
def _at(trees: Trees, path: bytes) -> Iterator[_Place]:
    root, relative = trees.root_of(path)
    place = _Place(root, relative)
    try:
        yield place
    finally:
        place.close()

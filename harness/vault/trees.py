"""The present state of a session's folders: kept up to date by hints, or looked at in full. Standard library only."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable

from harness.vault import entries, mappings, scan
from harness.vault.entries import INODE, LEFT_OUT, NO_CONTENT, STAMP, Delta, State
from harness.vault.limits import VaultLimits
from harness.vault.scan import OpenRoot, Root, TreeTooLarge
from harness.vault.watch import Place, Seen, Watcher

SETTLING_NS = 30_000_000
"""A stamp this young may hide a second change within the clock's tick: it is not believed the next time."""
_TICK_NS = 1_000_000
MAPPED_NS = 120_000_000_000
"""For how long after a change a process that mapped the file may go on writing without another ctime: until its pages
are written back.
"""
_NEVER_NS = 1 << 63
_MANY = 4
_NAMELESS = re.compile(rb"#([0-9]{1,20})")
"""What the kernel calls a file that was made without a name, also once it has one: by its inode."""


class Trees:
    """Folders of one session and the state they were last seen in. ``put(content) -> digest`` stores what is new."""

    def __init__(
        self,
        roots: Iterable[Root],
        state: State,
        limits: VaultLimits,
        put: Callable[[bytes], bytes],
        looked_ns: int = _NEVER_NS,
    ) -> None:
        """``looked_ns`` is when the state was seen. Raises OSError when the first folder (the worktree) cannot be
        opened; another that is missing is left out.
        """
        self._limits = limits
        self._put = put
        self.state = state
        self._roots: list[OpenRoot] = []
        self._doubtful: set[bytes] = set()
        self._looked_ns = looked_ns
        self._again_ns = _NEVER_NS
        self._watcher: Watcher | None = None
        self._kept_bytes = sum(map(_kept, state.values()))
        for number, root in enumerate(roots):
            try:
                self._roots.append(OpenRoot(root))
            except OSError:
                if number == 0:
                    raise

    def close(self) -> None:
        for root in self._roots:
            root.close()
        if self._watcher is not None:
            self._watcher.close()

    def still_there(self) -> bool:
        """False when a folder was replaced by another since it was opened."""
        for root in self._roots:
            try:
                info = os.stat(root.root.path, follow_symlinks=False)
                mine = os.fstat(root.fd)
            except OSError:
                return False
            if (info.st_dev, info.st_ino) != (mine.st_dev, mine.st_ino):
                return False
        return True

    def root_of(self, path: bytes) -> tuple[OpenRoot, bytes]:
        """The root and the path beneath it of a name in a state. Raises KeyError."""
        letter, _, relative = path.partition(b"/")
        return next((r, relative) for r in self._roots if r.root.letter == letter)

    # -- looking -----------------------------------------------------------------------------------

    def changes(self, *, full: bool, again_ns: int = _NEVER_NS, writers: tuple[int, ...] = ()) -> Delta:
        """What is another thing than in ``state`` (which stays as it is). ``full`` looks at every name; then every file
        is read again that was changed after ``again_ns`` (since the epoch), or so shortly before the last look that a
        mapping may have been written through since. What ``writers`` and those below them have mapped is read again in
        any case. Raises OSError, TreeTooLarge.
        """
        began = time.time_ns()
        self._again_ns = min(again_ns, self._looked_ns - MAPPED_NS)
        seen = Seen(all=True) if self._watcher is None or full else self._watcher.read()
        touched = sum(map(len, seen.names.values())) + len(seen.folders)
        mapped = mappings.shared(writers)
        everything = seen.all or mapped is None or touched * _MANY > len(self.state) + 1000
        found = self._all() if everything else self._some(seen)
        self._let_go(seen.closed, mapped or set(), found)
        grown = sum(1 if name not in self.state else -(info is None) for name, info in found.items())
        if len(self.state) + grown > self._limits.names:
            raise TreeTooLarge(f"{self._roots[0].root.path} holds more than {self._limits.names} names")
        delta = self._read(found, began)
        self._looked_ns = began
        return delta

    def _let_go(
        self, closed: dict[Place, set[bytes]], mapped: set[int], found: dict[bytes, os.stat_result | None]
    ) -> None:
        """Files that were open for writing until now, and those that are mapped (by their inodes), are read, also when
        their stamps are the same: what is written through a mapping changes those only now and then.
        """
        again = set(mapped)
        for (number, folder), names in closed.items():
            root = self._roots[number]
            for path, info in scan.look(root, {folder: names}):
                name = root.root.letter + b"/" + path
                if info is not None and name in self.state and stat.S_ISREG(info.st_mode):
                    found.setdefault(name, info)
                elif info is None and (born := _NAMELESS.fullmatch(path.rpartition(b"/")[2])) is not None:
                    again.add(int(born[1]))
        for name, info in self._twins(again, found):
            found.setdefault(name, info)

    def _all(self) -> dict[bytes, os.stat_result | None]:
        """Stamps that differ, by a look at everything; watches are set anew on the way."""
        if self._watcher is not None:
            self._watcher.close()
        try:
            self._watcher = Watcher()
        except OSError:
            self._watcher = None
        found: dict[bytes, os.stat_result | None] = {}
        missing = set(self.state)
        for number in range(len(self._roots)):
            self._below(number, b"", found, missing)
        if self._watcher is not None and self._watcher.lost:
            self._watcher.close()
            self._watcher = None
        found.update(dict.fromkeys(missing))
        return found

    def _below(self, number: int, start: bytes, found: dict[bytes, os.stat_result | None], missing: set[bytes]) -> None:
        root = self._roots[number]
        watcher = self._watcher
        state = self.state
        pack = STAMP.pack
        prefix = root.root.letter + b"/"
        width = STAMP.size
        again_ns = self._again_ns

        def entered(path: bytes, fd: int) -> None:
            if watcher is not None:
                watcher.add(number, path, fd)

        for path, info in scan.walk(root, start, limit=self._limits.names, on_folder=entered):
            name = prefix + path
            missing.discard(name)
            if info is None:
                continue
            known = state.get(name)
            again = info.st_ctime_ns > again_ns and stat.S_ISREG(info.st_mode)
            if (
                known is None
                or again
                or known[:width] != pack(info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
            ):
                found[name] = info

    def _some(self, seen: Seen) -> dict[bytes, os.stat_result | None]:
        """Stamps that differ among the names that were touched."""
        wanted: dict[Place, set[bytes]] = seen.names
        for name in self._doubtful:
            letter, _, path = name.partition(b"/")
            number = next(i for i, r in enumerate(self._roots) if r.root.letter == letter)
            folder, _, last = path.rpartition(b"/")
            wanted.setdefault((number, folder), set()).add(last)
        found: dict[bytes, os.stat_result | None] = {}
        for number, root in enumerate(self._roots):
            prefix = root.root.letter + b"/"
            here = {folder: names for (n, folder), names in wanted.items() if n == number}
            for path, info in scan.look(root, here):
                if path in root.root.hidden:
                    continue
                known = self.state.get(prefix + path)
                if info is None:
                    if known is not None:
                        found[prefix + path] = None
                elif known is None or known[: STAMP.size] != entries.stamp(info):
                    found[prefix + path] = info
        if seen.folders:
            self._moved(seen.folders, found)
        return self._links(found)

    def _moved(self, folders: set[Place], found: dict[bytes, os.stat_result | None]) -> None:
        """Folders that appeared, vanished or moved: everything known below them is looked for again."""
        tops = {self._roots[n].root.letter + b"/" + path for n, path in folders}
        missing = {name for name in self.state if any(above in tops for above in _above(name))}
        for number, path in sorted(folders):
            self._below(number, path, found, missing)
        found.update({name: None for name in missing if name not in found or found[name] is None})

    def _links(self, found: dict[bytes, os.stat_result | None]) -> dict[bytes, os.stat_result | None]:
        """A file with several names changes under all of them, and the kernel tells of one, which may bear another file
        by now.
        """
        inodes = {
            info.st_ino
            for info in found.values()
            if info is not None and info.st_nlink > 1 and stat.S_ISREG(info.st_mode)
        }
        for name, info in found.items():
            if (known := self.state.get(name)) is not None:
                mode, inode, *_ = STAMP.unpack_from(known)
                if stat.S_ISREG(mode) and (info is None or info.st_ino != inode):
                    inodes.add(inode)
        return found | dict(self._twins(inodes, found))

    def _twins(
        self, inodes: set[int], found: dict[bytes, os.stat_result | None]
    ) -> list[tuple[bytes, os.stat_result | None]]:
        """What lstat says of the other names of these files."""
        if not inodes:
            return []
        twins: dict[Place, set[bytes]] = {}
        packed = {inode.to_bytes(8, "little") for inode in inodes}
        for name, value in self.state.items():
            if value[INODE] in packed and name not in found:
                letter, _, path = name.partition(b"/")
                number = next(i for i, r in enumerate(self._roots) if r.root.letter == letter)
                folder, _, last = path.rpartition(b"/")
                twins.setdefault((number, folder), set()).add(last)
        seen = []
        for (number, folder), names in twins.items():
            root = self._roots[number]
            seen += [(root.root.letter + b"/" + path, info) for path, info in scan.look(root, {folder: names})]
        return seen

    # -- reading -----------------------------------------------------------------------------------

    def _read(self, found: dict[bytes, os.stat_result | None], began: int) -> Delta:
        """Values of what was found, content stored; names whose thing is the same after all only get their new
        stamp.
        """
        delta: Delta = {}
        self._doubtful.clear()
        small_first = sorted(found.items(), key=lambda item: (item[1].st_size if item[1] is not None else 0, item[0]))
        for name, info in small_first:
            known = self.state.get(name)
            if info is None:
                if known is not None:
                    delta[name] = None
                    self._kept_bytes -= _kept(known)
                continue
            digest = self._digest(name, info, known)
            if digest == LEFT_OUT:
                info, sure = self._settled(name, info)
            else:
                sure = info.st_ctime_ns <= began - SETTLING_NS
            value = entries.stamp(info) + digest
            if not sure:
                self._doubtful.add(name)
                value = entries.untrusted(value)
            self._kept_bytes += _kept(value) - (_kept(known) if known is not None else 0)
            if known is not None and entries.same(known, value):
                self.state[name] = value
            else:
                delta[name] = value
        return delta

    def _settled(self, name: bytes, info: os.stat_result) -> tuple[os.stat_result, bool]:
        """What lstat says of a thing whose content is not kept once that is old enough to be believed; False when it
        goes on changing.
        """
        left = SETTLING_NS - (time.time_ns() - info.st_ctime_ns)
        if left < 0:
            return info, True
        time.sleep(min(left + _TICK_NS, 2 * SETTLING_NS) / 1e9)
        root, path = self.root_of(name)
        try:
            again = root.stat(path)
        except OSError:
            return info, False
        return (
            again,
            stat.S_IFMT(again.st_mode) == stat.S_IFMT(info.st_mode)
            and time.time_ns() - again.st_ctime_ns > SETTLING_NS,
        )

    def _digest(self, name: bytes, info: os.stat_result, known: bytes | None) -> bytes:
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
            return NO_CONTENT
        before = _kept(known) if known is not None else 0
        if info.st_size > self._limits.file_bytes or self._kept_bytes - before + info.st_size > self._limits.tree_bytes:
            return LEFT_OUT
        root, path = self.root_of(name)
        try:
            content = root.read(path, entries.stamp(info), self._limits.file_bytes)
        except OSError:
            return LEFT_OUT
        if content is None:
            return LEFT_OUT
        return self._put(content)


def _kept(value: bytes) -> int:
    """Bytes of content that are kept for a value."""
    return 0 if value[STAMP.size :] in (NO_CONTENT, LEFT_OUT) else int(STAMP.unpack_from(value)[2])


def _above(name: bytes) -> Iterable[bytes]:
    at = name.find(b"/")
    while (at := name.find(b"/", at + 1)) >= 0:
        yield name[:at]

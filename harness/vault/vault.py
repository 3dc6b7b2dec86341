"""One session's vault: take a snapshot, tell what changed since one, bring one back. Blocking; standard library only.

Every operation leaves the packs either as they were or with one more whole snapshot. Bringing a state back takes a
snapshot first, so that an undo can be undone, and can be repeated after it was interrupted anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.vault import entries, export
from harness.vault.entries import LEFT_OUT, STAMP, Change, Delta, State
from harness.vault.export import Exported
from harness.vault.limits import VaultLimits
from harness.vault.packs import Mark, Packs
from harness.vault.restore import Restored, restore
from harness.vault.scan import Root
from harness.vault.trees import MAPPED_NS, Trees

LISTED = 20
_LONG = 200
"""Bytes of a name that a record of every call may carry."""


class Expired(Exception):
    """The snapshot is no longer kept (or never was)."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot of the present state.

    ``changed`` counts the names that differ from the one before; 0 = it is the one before.
    """

    id: str
    changed: int
    left_out: int
    left_out_names: tuple[str, ...]


class Vault:
    """The vault of one session; ``letters`` say which roots an undo makes exactly as they were (others only get back
    what they lack).
    """

    def __init__(self, folder: Path, limits: VaultLimits | None = None) -> None:
        """Raises OSError, DamagedPack."""
        self._packs = Packs(folder)
        self._limits = limits or VaultLimits()
        self._roots: tuple[Root, ...] = ()
        self._trees: Trees | None = None

    def close(self) -> None:
        self._forget()
        self._packs.close()

    def _forget(self) -> None:
        if self._trees is not None:
            self._trees.close()
            self._trees = None

    def _open(self, roots: Iterable[Root]) -> Trees:
        wanted = tuple(roots)
        if self._trees is not None and (self._roots != wanted or not self._trees.still_there()):
            self._forget()
        if self._trees is None:
            state = self._packs.state() if self._packs.marks else State()
            self._trees = Trees(wanted, state, self._limits, self._packs.put, *map(_seen_ns, self._packs.marks[-1:]))
            self._roots = wanted
        return self._trees

    # -- taking ------------------------------------------------------------------------------------

    def take(
        self, roots: Iterable[Root], label: str, *, full: bool = False, since: str = "", writers: tuple[int, ...] = ()
    ) -> Taken:
        """Keep the present state. ``full`` looks at every name instead of believing hints; what ``writers``, processes
        that live from call to call, and those below them have mapped is read again, and with what it is to be compared
        with (``since``) what may have been written through a mapping since then. Raises OSError, TreeTooLarge,
        DamagedPack.
        """
        trees = self._open(roots)
        mark = self._packs.find(since) if since else None
        again = {"again_ns": _seen_ns(mark) - MAPPED_NS} if mark is not None else {}
        try:
            delta = trees.changes(full=full, writers=writers, **again)
            mark = self._keep(trees, delta, label)
        except BaseException:
            self._forget()
            self._packs.abandon()
            raise
        left_out = (
            [name for name, value in trees.state.items() if value[STAMP.size :] == LEFT_OUT] if mark.left_out else []
        )
        return Taken(mark.id, mark.changed if delta else 0, mark.left_out, tuple(entries.names(left_out, LISTED)))

    def _keep(self, trees: Trees, delta: Delta, label: str) -> Mark:
        marks = self._packs.marks
        if not delta and marks:
            return marks[-1]
        before = marks[-1] if marks else None
        left_out = before.left_out if before is not None else 0
        for name, value in delta.items():
            left_out += (value is not None and value[STAMP.size :] == LEFT_OUT) - _was_left_out(trees.state, name)
        mark = Mark(
            number=before.number + 1 if before is not None else 1,
            chain=entries.chain(before.chain if before is not None else b"", entries.encode(delta)),
            label=label[:200],
            ts=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            changed=len(delta),
            left_out=left_out,
            whole=before is None,
            work=0 if before is None else len(_work(delta)),
        )
        mark = self._packs.finish(delta, mark)
        entries.apply(trees.state, delta)
        return mark

    def tidy(self, *, overdue: bool = False) -> bool:
        """Drop history over the budget; True when something was done. Call it when nobody waits; ``overdue`` does only
        what cannot wait for that any longer. Raises OSError, DamagedPack.
        """
        if not self._packs.marks:
            return False
        first = next(m for m in self._packs.marks if m.whole and m.pack == self._packs.marks[-1].pack)
        live = first.table_at  # what the pack began with
        if self._packs.size <= live + self._limits.history_bytes // (1 if overdue else 2):
            return False
        self._packs.turn_over(self._trees.state if self._trees is not None else self._packs.state())
        return True

    def worked_since(self, snapshot: str) -> tuple[int, list[str]]:
        """How many names were worked on since that snapshot, up to the newest, and the first files of them; nothing
        when it is no longer known. Raises DamagedPack.
        """
        mark = self._packs.find(snapshot)
        later = [one for one in self._packs.marks if one.work and mark is not None and one.number > mark.number]
        found = {name for one in later for name in _work(self._packs.table(one)) if name.startswith(b"w/")}
        named = entries.names((name for name in found if len(name) <= _LONG), LISTED)
        return sum(one.work for one in later), named

    # -- telling -----------------------------------------------------------------------------------

    def since(self, snapshot: str) -> list[Change]:
        """What is another thing now (as of the newest snapshot) than it was then. Raises Expired, DamagedPack."""
        mark = self._find(snapshot)
        newest = self._packs.marks[-1]
        if mark.number == newest.number:
            return []
        touched: set[bytes] = set()
        for later in self._packs.marks:
            if later.number > mark.number:
                touched |= self._packs.table(later).keys()
        old = self._packs.state(mark.number)
        new = self._packs.state()
        return entries.differences({n: old[n] for n in touched if n in old}, {n: new[n] for n in touched if n in new})

    def export(
        self, roots: Iterable[Root], label: str, frame: export.Frame, out: Path, *, writers: tuple[int, ...] = ()
    ) -> tuple[Taken, Exported]:
        """Keep the present state, and write to ``out`` what a commit of it takes. Raises OSError, TreeTooLarge,
        DamagedPack.
        """
        taken = self.take(roots, label, writers=writers)
        since = self._packs.find(frame.since) if frame.since else None
        old = self._packs.state(since.number) if since is not None else None
        return taken, export.write(out, frame, old, self._packs.state(), self._packs.content)

    def marks(self) -> list[Mark]:
        """Every snapshot that is kept, oldest first."""
        return list(self._packs.marks)

    @property
    def stored(self) -> int:
        """Bytes on disk."""
        return self._packs.stored

    def _find(self, snapshot: str) -> Mark:
        mark = self._packs.find(snapshot)
        if mark is None:
            raise Expired(
                f"snapshot {snapshot[:60]} is no longer kept; older states were dropped to stay within the budget"
            )
        return mark

    # -- bringing back -----------------------------------------------------------------------------

    def bring_back(
        self, roots: Iterable[Root], snapshot: str, label: str, exact: frozenset[bytes]
    ) -> tuple[Taken, Restored]:
        """Make the folders what they were; the snapshot taken just before, and what was done. ``exact`` = letters of
        roots from which names that were not there then are removed. Raises Expired, OSError, TreeTooLarge, DamagedPack.
        """
        mark = self._find(snapshot)
        wanted = tuple(roots)
        before = self.take(wanted, label, full=True)
        trees = self._open(wanted)
        done = restore(trees, self._packs.state(mark.number), self._packs.content, exact)
        self._forget()
        self.take(wanted, f"after {label}", full=True)
        return before, done


def _seen_ns(mark: Mark) -> int:
    """When its state was there, since the epoch."""
    return int(datetime.fromisoformat(mark.ts).timestamp() * 1e9)


def _work(delta: Delta) -> list[bytes]:
    """The names in it that somebody worked on."""
    return [name for name, value in delta.items() if entries.is_work(name) and not _only_a_folder(value)]


def _only_a_folder(value: bytes | None) -> bool:
    return value is not None and entries.Entry.of(value).is_folder


def _was_left_out(state: State, name: bytes) -> bool:
    value = state.get(name)
    return value is not None and value[STAMP.size :] == LEFT_OUT

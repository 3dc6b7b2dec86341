"""What a log says of checkpoints: those that stand, what happened since the newest, and what is due. Pure.

The fold holds a `Checkpoints`; the supervisor makes the next one when `due` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from harness.events import types as t

_MOST_NAMED = 3
_RANK = ("phase", "entry", "check", "ended")
"""Which milestone gives a checkpoint its name, when several came together."""
_BY_HAND = ("hand", "restore", "undo")
"""What may hold a person's own work that nothing else keeps."""


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """One that stands."""

    id: str
    label: str
    why: str
    ts: str
    through_seq: int
    snapshot: str
    commit: str
    head: str
    passing: tuple[str, ...] | None = None
    changed: int = 0
    left_out: int = 0

    @property
    def number(self) -> int:
        """Its number, which its ref bears; 0 for an id that is none of ours."""
        digits = self.id[1:10]
        return int(digits) if digits.isdecimal() else 0


class Milestone(msgspec.Struct, frozen=True):
    """Something worth a checkpoint: its kind, and what of it (an entry, a command)."""

    seq: int
    why: str
    what: str


class Checkpoints(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the checkpoints of a session stand."""

    kept: tuple[Checkpoint, ...] = ()
    """Oldest first."""
    count: int = 0
    """So many were ever made."""
    milestones: tuple[Milestone, ...] = ()
    planned: tuple[str, ...] = ()
    """Checks that decide entries of a plan: there the entry is the milestone."""
    phases: dict[str, str] = {}
    """The named phase of each entry that has one."""
    passing: frozenset[str] = frozenset()
    """Entries that pass."""
    changed_seq: int = -1
    """The newest record after which the worktree may be another one than at the newest checkpoint; -1 = it is not."""
    changed_ts: str = ""
    """Since when."""
    bringing: tuple[str, str] | None = None
    """(checkpoint, undo) that the worktree was brought back by, while that is not on record as a restoring."""
    restored: str = ""
    """The undo of the newest restoring that is on record."""
    children: tuple[str, ...] = ()
    """Sessions that began from one of these."""

    @property
    def next_id(self) -> str:
        return f"k{self.count + 1}"

    def find(self, name: str) -> Checkpoint | None:
        """The one of that id, or of that bare number; the newest for an empty name."""
        if not name:
            return self.kept[-1] if self.kept else None
        return next((one for one in self.kept if name in (one.id, one.id[1:])), None)


class Due(msgspec.Struct, frozen=True):
    """A checkpoint that has to be made now."""

    why: str
    label: str


def due(s: Checkpoints, now: str, minutes: int) -> Due | None:
    """What the log alone asks for: a milestone was reached, or files are changing for so many ``minutes`` (0 = never
    for that). None while nothing changed since the newest one.
    """
    if s.changed_seq < 0:
        return None
    for why in _RANK:
        if reached := [m.what for m in s.milestones if m.why == why]:
            return Due(why, _label(why, list(dict.fromkeys(reached))))
    if minutes and _seconds(s.changed_ts, now) >= minutes * 60:
        return Due("time", f"{minutes} minutes of change")
    return None


def surplus(s: Checkpoints, keep: int, spare: str = "") -> tuple[Checkpoint, ...]:
    """Those that go when only ``keep`` may stay: the oldest, those that a person's doing made last, ``spare`` and the
    newest never.
    """
    over = len(s.kept) - keep
    if over <= 0:
        return ()
    order = sorted((one for one in s.kept[:-1] if one.id != spare), key=lambda one: (one.why in _BY_HAND, one.number))
    return tuple(sorted(order[:over], key=lambda one: one.number))


def after(s: Checkpoints, r: t.Record) -> Checkpoints:
    """The state after one more record."""
    handler = _HANDLERS.get(type(r.body))
    return s if handler is None else handler(s, r, r.body)


def words(why: str, label: str) -> str:
    """What a checkpoint was made for, in words: its label, or what its kind says."""
    return label or {"hand": "by hand", "stop": "as it was stopped", "fork": "as another session began from it"}.get(
        why, why
    )


def _label(why: str, what: list[str]) -> str:
    more = len(what) - _MOST_NAMED
    named = ", ".join(what[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    if why == "phase":
        return f"phase {named} ended"
    if why == "ended":
        return "as its processes were ended"
    if why == "entry":
        return f"{'entries' if len(what) > 1 else 'entry'} {named} passed"
    return f"{'checks' if len(what) > 1 else 'check'} passed: {named}"[:200]


def _seconds(since: str, until: str) -> float:
    try:
        return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def _begun(s: Checkpoints, r: t.Record, b: t.SessionCreated) -> Checkpoints:
    """What it took over from another session is where it begins, and no change."""
    return msgspec.structs.replace(s, milestones=(), changed_seq=-1, changed_ts="")


def _changed(s: Checkpoints, r: t.Record) -> Checkpoints:
    return msgspec.structs.replace(s, changed_seq=r.seq, changed_ts=s.changed_ts or r.ts)


def _started(s: Checkpoints, r: t.Record, b: t.ToolStarted) -> Checkpoints:
    return _changed(s, r) if b.snapshot else s


def _ended(s: Checkpoints, r: t.Record, b: t.KeeperStarted) -> Checkpoints:
    """The keeper before it was told to end, or fell: what it left is kept before anything goes on."""
    return _reached(s, r, "ended", "") if s.changed_seq >= 0 else s


def _passed(s: Checkpoints, r: t.Record, b: t.CheckVerdict) -> Checkpoints:
    return _reached(s, r, "check", b.command) if b.passed and b.command not in s.planned else s


def _planned(s: Checkpoints, r: t.Record, b: t.PlanLoaded) -> Checkpoints:
    return msgspec.structs.replace(
        s,
        planned=tuple(command for entry in b.entries for command in entry.checks),
        phases={entry.id: entry.phase for entry in b.entries if entry.phase},
        passing=frozenset(entry.id for entry in b.entries if entry.passes),
    )


def _flipped(s: Checkpoints, r: t.Record, b: t.PlanFlipped) -> Checkpoints:
    passing = s.passing | {b.entry} if b.passes else s.passing - {b.entry}
    now = msgspec.structs.replace(_changed(s, r), passing=passing)
    phase = s.phases.get(b.entry, "")
    if not b.passes:
        gone = {("entry", b.entry), ("phase", phase)}
        left = tuple(m for m in s.milestones if (m.why, m.what) not in gone)
        return msgspec.structs.replace(now, milestones=left)
    now = _reached(now, r, "entry", b.entry)
    over = bool(phase) and all(entry in passing for entry, other in s.phases.items() if other == phase)
    return _reached(now, r, "phase", phase) if over else now


def _reached(s: Checkpoints, r: t.Record, why: str, what: str) -> Checkpoints:
    return msgspec.structs.replace(s, milestones=(*s.milestones, Milestone(r.seq, why, what)))


def _created(s: Checkpoints, r: t.Record, b: t.CheckpointCreated) -> Checkpoints:
    one = Checkpoint(
        b.checkpoint_id,
        b.label,
        b.why,
        r.ts,
        b.through_seq,
        b.snapshot,
        b.commit,
        b.head,
        None if b.passing is None else tuple(b.passing),
        b.changed,
        b.left_out,
    )
    stale = s.changed_seq > b.through_seq
    return msgspec.structs.replace(
        s,
        kept=(*s.kept, one),
        count=max(s.count + 1, one.number),
        milestones=tuple(m for m in s.milestones if m.seq > b.through_seq),
        changed_seq=s.changed_seq if stale else -1,
        changed_ts=r.ts if stale else "",
    )


def _dropped(s: Checkpoints, r: t.Record, b: t.CheckpointDropped) -> Checkpoints:
    return msgspec.structs.replace(s, kept=tuple(one for one in s.kept if one.id not in b.checkpoint_ids))


def _undone(s: Checkpoints, r: t.Record, b: t.UndoEnded) -> Checkpoints:
    if b.of_checks:
        return s
    now = msgspec.structs.replace(_changed(s, r), milestones=())
    if b.error or all(one.id != b.call_id for one in s.kept):
        return now
    return msgspec.structs.replace(now, bringing=(b.call_id, b.undo_id))


def _restored(s: Checkpoints, r: t.Record, b: t.CheckpointRestored) -> Checkpoints:
    return msgspec.structs.replace(s, bringing=None, restored=b.undo_id)


def _forked(s: Checkpoints, r: t.Record, b: t.SessionForked) -> Checkpoints:
    return msgspec.structs.replace(s, children=(*s.children, b.child))


_HANDLERS: Mapping[type[t.Body], Callable[[Checkpoints, t.Record, Any], Checkpoints]] = {
    t.SessionCreated: _begun,
    t.KeeperStarted: _ended,
    t.ToolStarted: _started,
    t.CheckVerdict: _passed,
    t.PlanLoaded: _planned,
    t.PlanFlipped: _flipped,
    t.UndoEnded: _undone,
    t.CheckpointCreated: _created,
    t.CheckpointDropped: _dropped,
    t.CheckpointRestored: _restored,
    t.SessionForked: _forked,
}

"""Checkpoints as clients see them. Labels are untrusted: whoever shows them passes the display function."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from harness.projections.state.checkpoints import Checkpoint, Checkpoints


class CheckpointView(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint; ``passing`` names the entries of the plan that passed, ``passed`` counts them."""

    id: str
    label: str
    why: str
    ts: str
    through_seq: int
    snapshot: str
    commit: str
    head: str
    passing: tuple[str, ...] | UnsetType = UNSET
    passed: int | None
    changed: int
    left_out: int


class CheckpointList(msgspec.Struct, frozen=True, kw_only=True):
    """A session's checkpoints, newest first; ``made`` counts all that were ever made."""

    checkpoints: list[CheckpointView]
    made: int


class CheckpointMade(msgspec.Struct, frozen=True, kw_only=True):
    """The new checkpoint."""

    checkpoint: CheckpointView


def listed(known: Checkpoints) -> CheckpointList:
    """Those of one session."""
    return CheckpointList(checkpoints=[shown(one) for one in reversed(known.kept)], made=known.count)


def shown(one: Checkpoint) -> CheckpointView:
    """One of them."""
    return CheckpointView(
        id=one.id,
        label=one.label,
        why=one.why,
        ts=one.ts,
        through_seq=one.through_seq,
        snapshot=one.snapshot,
        commit=one.commit,
        head=one.head,
        passing=UNSET if one.passing is None else one.passing,
        passed=None if one.passing is None else len(one.passing),
        changed=one.changed,
        left_out=one.left_out,
    )

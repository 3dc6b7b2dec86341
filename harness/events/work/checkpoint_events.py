"""Events of checkpoints: states of a session that can be gone back to, or gone on from elsewhere."""

from __future__ import annotations

import msgspec

from harness.events.body import BlobRef, Body, By
from harness.events.plan.plan_events import CheckedBefore


class Handed(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line from another session's log: record ``seq`` of session ``sid``. ``why`` and ``entry`` are an approach's
    that failed.
    """

    sid: str
    seq: int
    text: str
    why: str = ""
    entry: str = ""


class Forked(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a session began that began from another: at a checkpoint of session ``sid``, whose log was at
    ``through_seq``, with the files of ``commit`` over ``head``. ``base`` is what the other one began from, and
    ``passing`` what of the plan passed there. ``decided`` and ``failed``: what a person said and decided there until
    then, and what was tried in vain. ``root`` is the session that the other one comes from itself, by forks; empty when
    it comes from none. ``plan``: the file of a plan that the other one wrote itself and that counted there, a payload
    of the new session too. ``before``: what checks said before the work of the other one began.
    """

    sid: str
    checkpoint_id: str
    through_seq: int
    base: str
    head: str
    commit: str
    label: str = ""
    passing: tuple[str, ...] | None = None
    decided: tuple[Handed, ...] = ()
    failed: tuple[Handed, ...] = ()
    root: str = ""
    plan: BlobRef | None = None
    before: tuple[CheckedBefore, ...] = ()

    @property
    def line(self) -> str:
        """The session that all of them come from."""
        return self.root or self.sid


class CheckpointCreated(Body, frozen=True, kw_only=True):
    """A state is kept: ``snapshot`` in the vault, ``commit`` on a private ref of the repository, the log up to
    ``through_seq``. ``why``: entry, check, phase, leaving, time, hand, stop, end, restore, undo, fork.

    ``head`` is what the session's branch stood on; ``passing`` names the entries of its plan that passed, None without
    a plan. ``left_out`` counts what the commit does not hold.
    """

    TYPE = "checkpoint.created"
    checkpoint_id: str
    label: str
    why: str
    through_seq: int
    snapshot: str
    commit: str
    head: str
    passing: list[str] | None = None
    changed: int = 0
    left_out: int = 0
    by: By = By()


class CheckpointDropped(Body, frozen=True, kw_only=True):
    """The oldest checkpoints were deleted; the newest ``keep`` stay."""

    TYPE = "checkpoint.dropped"
    checkpoint_ids: list[str]
    keep: int


class CheckpointRestored(Body, frozen=True, kw_only=True):
    """Undo ``undo_id`` brought worktree and plan back to a checkpoint."""

    TYPE = "checkpoint.restored"
    checkpoint_id: str
    undo_id: str


class SessionForked(Body, frozen=True, kw_only=True):
    """Another session began from a checkpoint of this one."""

    TYPE = "session.forked"
    checkpoint_id: str
    child: str
    name: str

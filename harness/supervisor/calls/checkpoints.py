"""Checkpoints of a session: made when its log asks for one, before a call that leaves the sandbox, by hand, at an end.

The vault keeps the state, the store a commit of its files; the record comes last, so whoever dies in between
leaves at most a ref that the next checkpoint takes over.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.domain.actions.effect import NO_UNDO
from harness.domain.calls.call_states import CallStage
from harness.domain.states import State
from harness.events import types as t
from harness.keeper.loop.requests import ExportState
from harness.projections.state import checkpoints
from harness.projections.state.checkpoints import Due
from harness.protocol.config.sections import CheckpointConfig
from harness.supervisor.base.errors import LinkLost, OpError, out_of_space
from harness.supervisor.calls.session_folder import held, private_of
from harness.supervisor.calls.work import plans
from harness.supervisor.fleet.session import Session
from harness.vault.export import EXPORT
from harness.workspace.export import checkpoint_store
from harness.workspace.export.checkpoint_store import Store
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.private_git.private_gitdir import Worktree, publish
from harness.workspace.tree.scan import tip
from harness.workspace.tree.worktrees import open_worktree

_PREPARE_S = 120.0
"""Seconds that publishing commits and reading refs may take."""
_STORE_S = 600.0
"""Seconds that git may take to store a commit."""
_AGAIN_S = 60.0
"""Seconds after which one that could not be made is tried again."""
_STOP = "stop"
_ENDS_S = 1.5
"""Seconds that a call has to end when everybody is told to."""
_BUSY = frozenset({"busy", "shutting_down", "lost", "no_space", "scarce"})


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a stream begins with."""

    tree: Worktree
    head: str
    ground: str
    since: str
    parent: str


async def step(session: Session, config: CheckpointConfig) -> None:
    """What is due by the log: finish a restoring, make the checkpoint that a milestone asks for. Raises OpError,
    LinkLost, Later.
    """
    try:
        await finish_restoring(session)
    except WorkspaceError as exc:
        raise held(exc) from exc
    found = checkpoints.due(session.state.checkpoints, _now(), config.minutes)
    if found is not None and not session.doing_calls:
        await _attempt(session, found, config)


async def before_leaving(session: Session, call_id: str, config: CheckpointConfig) -> None:
    """A call is about to have an effect outside the sandbox, which no undo takes back: what came before can be had."""
    known = session.track.calls.get(call_id)
    judged = known.judged if known is not None else None
    if judged is None or known is None or session.state.checkpoints.changed_seq < 0:
        return
    if any(effect != str(NO_UNDO) for effect in judged.effects):
        await _attempt(session, Due("leaving", f"before {known.proposed.tool} {call_id}"), config)


async def at_end(session: Session, config: CheckpointConfig) -> None:
    """The session has ended and is about to lose its keeper: what a milestone asked for, or a stop cut off, is kept."""
    with contextlib.suppress(WorkspaceError):
        await finish_restoring(session)
    known = session.state.checkpoints
    stopped = session.state.ended is not None and session.state.ended.outcome == State.STOPPED
    found = checkpoints.due(known, _now(), config.minutes)
    if found is None and stopped and known.changed_seq >= 0:
        found = Due(_STOP, "")
    if found is not None:
        await _attempt(session, found, config)


async def at_leave(session: Session, config: CheckpointConfig) -> None:
    """The supervisor or the session's keeper was asked to leave, perhaps with the whole machine: what changed is kept
    while there is time, after what runs was given a moment to end, since it may have been told the same.
    """

    def at_work() -> bool:
        return any(call.stage == CallStage.STARTED for call in session.state.calls.open.values())

    with contextlib.suppress(LinkLost):
        await session.until(lambda: not at_work() and not session.state.jobs.running, _ENDS_S)
    if session.state.checkpoints.changed_seq >= 0 and not at_work():
        session.kept_states.not_before = 0.0
        await _attempt(session, Due(_STOP, "as Watchfloor was stopped"), config)


async def _attempt(session: Session, found: Due, config: CheckpointConfig) -> None:
    """Make it; when that fails nothing else waits for it: it is said once and tried again later."""
    kept = session.kept_states
    if time.monotonic() < kept.not_before:
        return
    try:
        await make(session, found, config)
    except (OpError, WorkspaceError, OSError) as exc:
        kept.not_before = time.monotonic() + _AGAIN_S
        busy = isinstance(exc, OpError) and exc.code in _BUSY
        text = f"a checkpoint could not be made: {exc}"[:1000]
        if busy or out_of_space(exc) or text == kept.told:
            return
        kept.told = text
        with contextlib.suppress(OpError, LinkLost):
            await session.append(t.HarnessNote(level="warning", text=text, component="checkpoints"), cls="B")


async def make(session: Session, found: Due, config: CheckpointConfig, by: t.By | None = None, spare: str = "") -> str:
    """Keep the present state as a checkpoint; its id. ``spare`` must not go for it. Raises OpError (``busy`` while a
    call is at work), LinkLost, WorkspaceError.
    """
    async with session.kept_states.making:
        s = session.state
        newest = s.checkpoints.find("")
        if found.why == _STOP and s.checkpoints.changed_seq < 0 and newest is not None:
            return newest.id  # kept by whoever was told of the same end before
        name = s.checkpoints.next_id
        through = s.seq
        ready = await session.do("preparing a checkpoint", _PREPARE_S, lambda: _prepare(session, name, found))
        wanted = ExportState(f"checkpoint {name}", ready.head, ready.ground, ready.since)
        exported = await session.keeper().ask(wanted, None)
        commit = await session.do(
            "keeping a checkpoint", _STORE_S, lambda: _store(session, ready, int(name[1:])), lasting=True
        )
        plan = s.plan
        await session.append(
            t.CheckpointCreated(
                checkpoint_id=name,
                label=found.label,
                why=found.why,
                through_seq=through,
                snapshot=exported.snapshot,
                commit=commit,
                head=ready.parent,
                passing=None if plan is None else [entry for entry, passes in plan.passes.items() if passes],
                changed=exported.names,
                left_out=exported.left_out,
                by=by or t.By(),
            )
        )
        await _thin(session, ready.tree, config.keep, spare)
        return name


async def finish_restoring(session: Session) -> None:
    """The worktree was brought back to a checkpoint: bring the plan there too, tell the agent, put it on record.

    Everything follows from the fold, so it is finished by whoever looks next. Raises OpError, LinkLost, WorkspaceError.
    """
    async with session.kept_states.making:
        bringing = session.state.checkpoints.bringing
        if bringing is None:
            return
        name, undo_id = bringing
        one = session.state.checkpoints.find(name)
        flips: list[t.PlanFlipped] = []
        if one is not None and one.passing is not None:
            flips = await plans.bring(session, frozenset(one.passing), f"checkpoint {name} was restored")
        told: list[t.Body] = []
        if not session.state.terminal:
            words = f" ({checkpoints.words(one.why, one.label)})" if one is not None else ""
            told.append(t.UserMessage(text=_TOLD.format(name=name, words=words), origin="harness"))
        await session.append(*flips, *told, t.CheckpointRestored(checkpoint_id=name, undo_id=undo_id))


_TOLD = (
    "The human brought the work back to checkpoint {name}{words}: the worktree, its git state and the plan are what"
    " they were then. What was done after it is not in the worktree any more; look at it again before you go on."
)


# -- blocking, in the session's own thread -------------------------------------------------------------


def _prepare(session: Session, name: str, found: Due) -> _Prepared:
    tree = open_worktree(private_of(session))
    with contextlib.suppress(WorkspaceError, OSError):  # a broken HEAD is the agent's: its files are kept all the same
        publish(tree)
    parent = tip(tree)
    newest = session.state.checkpoints.find("")
    ground = store_of(session).ground(tree.common, newest.commit) if newest is not None else ""
    since = newest.snapshot if newest is not None and ground else ""
    message = f"Checkpoint {name} of session {session.sid}: {checkpoints.words(found.why, found.label)}"
    return _Prepared(tree, checkpoint_store.head(parent, message), ground, since, parent)


def _store(session: Session, ready: _Prepared, number: int) -> str:
    stream = session.folder.root / EXPORT
    try:
        return store_of(session).keep(ready.tree, number, ready.parent, stream)
    finally:
        stream.unlink(missing_ok=True)


def store_of(session: Session) -> Store:
    """Where the commits of its checkpoints are."""
    return Store(session.sid, session.folder.checkpoints)


async def _thin(session: Session, tree: Worktree, keep: int, spare: str) -> None:
    gone = checkpoints.surplus(session.state.checkpoints, keep, spare)
    if not gone:
        return
    await session.append(t.CheckpointDropped(checkpoint_ids=[one.id for one in gone], keep=keep))
    stays = [one.number for one in session.state.checkpoints.kept]

    def let_go() -> None:
        store = store_of(session)
        store.drop(tree.common, stays)
        store.tidy(tree)

    with contextlib.suppress(WorkspaceError):  # what stays is dropped with the next ones
        await session.do("letting go of old checkpoints", _PREPARE_S, let_go, lasting=True)


def _now() -> str:
    return datetime.now(UTC).isoformat()

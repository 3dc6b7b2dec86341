"""Sessions that go on from a checkpoint of another one: where they begin, what they are told, and the record of it in
the other one's log.

Everything follows from the new session's intent, so a supervisor that dies anywhere makes the rest when it looks again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec

from harness.eventlog import blobs, reader
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.projections.state import checkpoints
from harness.projections.state.checkpoints import Checkpoint
from harness.protocol.paths import Folders
from harness.reports import handoff_facts
from harness.reports.handoff_facts import HandedOn
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.calls.work import plans
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.sessions.keepers import Keepers
from harness.workspace.export.checkpoint_store import Store
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.worktrees import Start

_READ_S = 25.0
"""Seconds that reading a log may take; a client waits half a minute for it."""
_PLAN_S = 60.0
"""Seconds that writing a plan may take."""
_TOLD = (
    "You go on from another agent's work: checkpoint {name}{words} of session {sid}. The worktree holds its files as"
    " they were then; what it had not committed is changed or untracked here too, and `git log` shows its commits. What"
    " tools make by themselves (environments, caches) is not there: make it again where you need it. {plan}Look around"
    " before you change anything; do not begin anew what is done."
)


async def origin(parent: Session, one: Checkpoint) -> t.Forked:
    """Where a session begins that goes on from this checkpoint, and what its log hands on. Raises OpError."""
    made = parent.state.created
    plan = parent.state.plan
    known = await _known(parent)
    return t.Forked(
        parent.sid,
        one.id,
        one.through_seq,
        made.base if made is not None else one.head,
        one.head,
        one.commit,
        checkpoints.words(one.why, one.label),
        one.passing,
        known.decided,
        known.failed,
        parent.state.intent.forked.line if parent.state.intent is not None and parent.state.intent.forked else "",
        plan.text if plan is not None and one.passing is not None else None,
        tuple(parent.state.before.results.values()),
    )


async def plan_text(parent: Session, origin: t.Forked) -> bytes:
    """What the new session needs of the other one's payloads; empty where a commit has the plan. Raises OpError."""
    if origin.plan is None:
        return b""
    try:
        return await at_home(blobs.get, parent.folder.blobs, origin.plan.sha)
    except (LogError, OSError) as exc:
        raise OpError("unreadable", f"the plan of {parent.name} cannot be read: {exc}") from exc


async def _known(parent: Session) -> HandedOn:
    def read() -> HandedOn:
        return handoff_facts.handed_on(parent.sid, (t.decode(line) for line in reader.read(parent.folder.log)))

    try:
        return await parent.look("reading what it hands on", _READ_S, read)
    except (WorkspaceError, LogError, msgspec.DecodeError) as exc:
        raise OpError("unreadable", f"the log of {parent.name} cannot be read: {exc}") from exc


def start(folders: Folders, intent: t.SessionIntent) -> Start | None:
    """Where its worktree begins; None for the repository's HEAD."""
    forked = intent.forked
    if forked is None:
        return None
    store = Store(forked.sid, folders.session(forked.sid).checkpoints)
    return Start(forked.base, forked.head, forked.commit, store.objects)


async def handed_on(session: Session, tree: Worktree, bodies: Sequence[t.Body]) -> list[t.Body]:
    """What a new session of another's takes over: the plan as it stood, and words that say where it is. Raises
    WorkspaceError.
    """
    intent = session.state.intent
    forked = intent.forked if intent is not None else None
    if forked is None:
        return []
    plan = next((b for b in bodies if isinstance(b, t.PlanLoaded)), None)
    flips: list[t.PlanFlipped] = []
    said = ""
    if plan is not None and forked.passing is not None:
        made = plan
        passing = frozenset(forked.passing)
        why = f"as it stood at checkpoint {forked.checkpoint_id} of session {forked.sid}"
        flips = await session.do(
            "taking over the plan", _PLAN_S, lambda: plans.inherited(session, tree, made, passing, why), lasting=True
        )
        left = [entry.id for entry in plan.entries if entry.id not in passing]
        said = f"Of {len(plan.entries)} entries of the plan {len(passing)} passed; left: {', '.join(left) or 'none'}. "
    told = _TOLD.format(name=forked.checkpoint_id, words=f" ({forked.label})", sid=forked.sid, plan=said)
    known = handoff_facts.words(HandedOn(forked.decided, forked.failed))
    return [*flips, t.UserMessage(text="\n\n".join(filter(None, [told, known])), origin="harness")]


async def tell_parent(fleet: Fleet, keepers: Keepers, session: Session) -> None:
    """Put on record in the other session's log that this one began from it, once; one that cannot take it now (its log
    is damaged, it is being removed) is named by this session alone.
    """
    intent = session.state.intent
    forked = intent.forked if intent is not None else None
    parent = fleet.sessions.get(forked.sid) if forked is not None else None
    if forked is None or parent is None or intent is None:
        return
    with contextlib.suppress(OpError, LinkLost, LogError, OSError):
        async with parent.lock:
            if not parent.loaded:
                await parent.read()
            if session.sid in parent.state.checkpoints.children:
                return
            ended = parent.link is None and parent.state.terminal
            if ended:
                await keepers.take_up(parent)
            await parent.append(
                t.SessionForked(checkpoint_id=forked.checkpoint_id, child=session.sid, name=intent.name)
            )
            if ended:
                await keepers.shut(parent, kill=True)

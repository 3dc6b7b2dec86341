"""A plan that the session writes from its goal: looked at when the agent says it is there, sent back once, then put
before a person; accepted, it is kept like any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from harness.domain.calls.approval_kind import Request
from harness.domain.decision import Decision
from harness.domain.states import Desired
from harness.domain.text.formatting import counted
from harness.eventlog import blobs
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.plan import already, draft, progress
from harness.plan.files import phrases
from harness.plan.files.formats import MAX_BYTES, Entry, Plan, read
from harness.projections.state.protected_files import PlanProgress, some
from harness.projections.state.session_state import OpenApproval, SessionState
from harness.supervisor.base import ids
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.calls.on_record import put_blob
from harness.supervisor.calls.session_folder import held, private_of
from harness.supervisor.calls.work import plans
from harness.supervisor.fleet.session import Session
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.protected import restore
from harness.workspace.tree.worktrees import open_worktree

_LOOK_S = 60.0
"""Seconds that reading the file may take."""
_LISTED = 100


async def step(session: Session) -> None:
    """Look at a plan that is said to be written, and do what follows. Raises OpError, LinkLost, Later."""
    s = session.state
    intent = s.intent
    if intent is None or s.terminal or s.desired != Desired.RUNNING or not draft.due(s):
        return
    try:
        data = await session.do("reading its plan", _LOOK_S, lambda: _read(session, intent.draft))
    except (WorkspaceError, OSError) as exc:
        raise held(exc) from exc
    found = draft.found(data, intent.draft, intent.gates, intent.phrases)
    seen = t.PlanDrafted(
        path=intent.draft,
        count=len(found.plan.entries) if found.plan is not None else 0,
        problems=list(found.problems[:_LISTED]),
        sent_back=bool(found.problems) and not s.draft.sent_back,
    )
    if not seen.sent_back and found.plan is not None and (commands := _untried(s, found.plan)):
        await session.append(t.PlanTried(path=intent.draft, commands=commands))
        return
    # what follows comes first: whoever died in between looks at the same file again, or finds it asked for
    if seen.sent_back:
        words = draft.told(intent.draft, found.problems)
        await session.append(t.UserMessage(text=words, origin="harness"), seen)
    elif found.plan is not None and intent.draft_accepted and not already.of_draft(found.plan.entries, s.before.word):
        try:
            accepted = await _accepted(session, found.plan)
        except (WorkspaceError, OSError) as exc:
            raise held(exc) from exc
        await session.append(*accepted, seen)
    else:
        await session.append(await _asked(session, found), seen)


def _read(session: Session, path: str) -> bytes | None:
    return restore.content(open_worktree(private_of(session)), path, MAX_BYTES)


def _beside(session: Session) -> list[str]:
    return plans.beside(open_worktree(private_of(session)))


async def _asked(session: Session, found: draft.Found) -> t.ApprovalRequested:
    intent = session.state.intent
    assert intent is not None
    detail = {"path": intent.draft, "problems": _lines(found.problems)}
    options: list[str] = [Decision.DENY, Decision.STOP]
    text = b""
    if found.plan is not None:
        text = found.plan.text.encode()
        blob = await put_blob(session, text, plans.MEDIA)
        detail |= {"text": blob.sha, "entries": _shown(found.plan, session.state)}
        held_before = already.of_draft(found.plan.entries, session.state.before.word)
        detail |= {"warning": already.asks(held_before), "held": "\n".join(held_before)} if held_before else {}
        detail |= {"masked": _lines([one.told for one in hidden])} if (hidden := _masked(session.state)) else {}
        options = [Decision.ALLOW, *options]
    count = len(found.plan.entries) if found.plan is not None else 0
    return t.ApprovalRequested(
        approval_id=ids.approval_id(),
        kind=Request.PLAN,
        title=f"{intent.draft}: {counted(count, 'entry', 'entries')}" if count else f"{intent.draft} is no plan",
        options=options,
        action_hash=hashlib.sha256(text).hexdigest(),
        detail={name: value for name, value in detail.items() if value},
    )


def _lines(texts: Sequence[str]) -> str:
    more = len(texts) - _LISTED
    return "\n".join([*texts[:_LISTED], *([f"and {more} more"] if more > 0 else [])])


def _commands(plan: Plan) -> list[str]:
    return progress.checks(map(progress.wanted, plan.entries))


def _untried(s: SessionState, plan: Plan) -> list[str]:
    """The commands of a plan when they were not run yet, all of them."""
    commands = _commands(plan)
    return commands if set(commands) != set(s.draft.commands) else []


def _masked(s: SessionState) -> list[t.MaskedCheck]:
    return [one for command in s.draft.commands if (one := s.masking.looked.get(command)) is not None]


def _shown(plan: Plan, s: SessionState) -> str:
    """Every entry with every criterion, and what that says now."""
    return "\n".join(already.listed(entry, s.before.word) for entry in plan.entries)


async def ask(session: Session) -> None:
    """Ask about entries of a given plan whose criteria held before the work. Raises OpError, LinkLost, Later."""
    s = session.state
    names = already.due(s)
    plan = s.plan
    if not names or plan is None or s.desired != Desired.RUNNING:
        return
    try:
        found = await session.do("reading its plan", _LOOK_S, lambda: _given(session, plan))
    except (WorkspaceError, OSError) as exc:
        raise held(exc) from exc
    shown = [already.listed(entry, s.before.word) for entry in found if entry.id in names]
    await session.append(
        t.ApprovalRequested(
            approval_id=ids.approval_id(),
            kind=Request.PLAN,
            title=f"{plan.path}: {some(names)} hold{'s' if len(names) == 1 else ''} already",
            options=[Decision.ALLOW, Decision.DENY, Decision.STOP],
            action_hash=hashlib.sha256("\n".join(shown).encode()).hexdigest(),
            detail={
                "path": plan.path,
                "entries": "\n".join(shown),
                "warning": already.asks(names),
                "held": "\n".join(names),
            },
        )
    )


def _given(session: Session, plan: PlanProgress) -> Sequence[Entry]:
    return plans.entries_of(session, open_worktree(private_of(session)), plan)


async def _accepted(session: Session, plan: Plan, by_word: Sequence[str] = ()) -> list[t.Body]:
    """The plan counts from now on, as it was read, with what was written beside it. Raises WorkspaceError, OSError."""
    intent = session.state.intent
    assert intent is not None
    there = await session.do("looking at what stands beside its plan", _LOOK_S, lambda: _beside(session))
    text = await put_blob(session, plan.text.encode(), plans.MEDIA)
    return [
        msgspec.structs.replace(
            plans.record(intent.draft, phrases.bound(plan, intent.phrases), intent.gates, there, text),
            by_word=list(by_word),
        ),
        t.UserMessage(text=plans.TOLD.format(path=intent.draft), origin="harness"),
    ]


async def decided(session: Session, asked: OpenApproval, decision: str, message: str, by: t.By) -> list[t.Body]:
    """What follows from a person's word on a plan. Raises OpError."""
    names = [name for name in str(asked.detail.get("held", "")).split("\n") if name]
    if session.state.plan is not None:
        allowed = t.PlanAllowed(names=names if decision == Decision.ALLOW else [], by=by)
        said = message.strip()
        return [allowed, *([t.UserMessage(text=said, origin="human", by=by)] if said else [])]
    if decision != Decision.ALLOW:
        words = message.strip() or "The plan is not accepted. Write it anew."
        return [t.UserMessage(text=words, origin="human", by=by)]
    try:
        data = await at_home(blobs.get, session.folder.blobs, str(asked.detail.get("text", "")))
    except (LogError, OSError) as exc:
        raise OpError("unreadable", f"the plan that was shown cannot be read any more: {exc}") from exc
    try:
        return await _accepted(session, read(data), names)
    except (WorkspaceError, OSError) as exc:
        raise OpError("unreadable", f"its worktree cannot be read: {exc}") from exc

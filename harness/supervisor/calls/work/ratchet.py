"""Protected files of a session, kept: compared before and after each check, put back, asked about; and whether a
check's result counts.

Everything follows from the fold, so a supervisor that dies anywhere goes on from the log. No agent has a say in any of
it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from harness.checks.runner_counts import CheckCount
from harness.domain.actions.action import canonical
from harness.domain.calls.approval_kind import Request
from harness.domain.decision import Decision
from harness.domain.text.display_safe import to_display
from harness.events import types as t
from harness.plan import stakes
from harness.projections.state.protected_files import TOUCHED, RunCheck, some
from harness.projections.state.session_state import SessionState
from harness.supervisor.base import ids
from harness.supervisor.calls.queue import comparison
from harness.supervisor.calls.queue.comparison import Side
from harness.supervisor.calls.session_folder import held, private_of
from harness.supervisor.calls.work import plans, results
from harness.supervisor.fleet.session import Session
from harness.views.session_views import NOTHING_THERE
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected import index_flags, inputs_since_start, restore
from harness.workspace.protected.restore import Difference
from harness.workspace.tree.worktrees import open_worktree

OPTIONS: list[str] = [Decision.ALLOW, Decision.DENY, Decision.STOP]
"""``allow``: the agent's version counts from now on; ``deny``: the originals do."""
CACHES = "caches"
_LOOK_S = 120.0
"""Seconds that comparing, and putting back, may take."""
_MOST_NAMED = 1000
T = TypeVar("T")


async def step(session: Session) -> None:
    """Do what is due: judge results, bring back what was allowed, ask. Raises OpError, LinkLost, Later."""
    await on_ground(_step(session))


async def guard(session: Session, call_id: str) -> str:
    """Make what decides what it was at the start, just before a check runs; why that is not possible, or nothing.

    Raises OpError, LinkLost, Later.
    """
    return await on_ground(_guard(session, call_id))


async def on_ground(work: Awaitable[T]) -> T:
    """What looks at the worktree on its own account: it waits while that cannot be looked at."""
    try:
        return await work
    except WorkspaceError as exc:
        raise held(exc) from exc


async def _step(session: Session) -> None:
    for call_id, check in list(session.state.unjudged.items()):
        await _judge(session, call_id, check)
    for violation in list(session.state.ratchet.bringing.values()):
        await _bring(session, violation)
    await plans.follow(session)
    await _ask(session)


async def _guard(session: Session, call_id: str) -> str:
    found = await _examine(session, 0)
    await session.do("clearing caches", _LOOK_S, lambda: _clear(session))
    await plans.guard(session, call_id)
    return await _restore(session, call_id, found) if found.differences else ""


async def _examine(session: Session, since_ns: int) -> restore.Examined:
    s = session.state
    rules = results.rules_of(s)
    accepted = dict(s.ratchet.accepted)
    return await session.do(
        "comparing what decides with the start",
        _LOOK_S,
        lambda: restore.examine(_tree(session), rules, accepted, since_ns),
    )


async def _restore(session: Session, call_id: str, found: restore.Examined) -> str:
    """Put the violation on record, then the originals back; what could not be put back, in words."""
    violation = _violation(session.state, call_id, found.differences, len(found.protected))
    await session.append(violation)
    aside = _aside(session, violation.violation_id)
    done = await session.do(
        "putting back what decides",
        _LOOK_S,
        lambda: restore.put_back(_tree(session), found.differences, aside),
        lasting=True,
    )
    await session.append(
        t.RatchetRestored(violation_id=violation.violation_id, restored=done.done, refused=done.refused)
    )
    return f"protected files cannot be put back: {some(done.refused)}" if done.refused else ""


def _violation(s: SessionState, call_id: str, files: Sequence[Difference], protected: int) -> t.RatchetViolation:
    return t.RatchetViolation(
        violation_id=f"v{s.seq}",
        call_id=call_id,
        files=[t.ViolatedFile(one.path, one.how, one.sha) for one in files[:_MOST_NAMED]],
        protected=protected,
    )


# -- results ---------------------------------------------------------------------------------------


async def _judge(session: Session, call_id: str, check: RunCheck) -> None:
    s = session.state
    found = await _examine(session, _nanoseconds(check.started))
    accepted = s.ratchet.accepted
    touched = [Difference(p, TOUCHED, TOUCHED) for p in found.touched if p not in accepted]
    output = await results.output_of(session, check.output, check.preview)
    verdict = await results.judged(session, check.command, check.status, check.exit_code, output)
    if found.differences:
        await _restore(session, call_id, found)
    elif touched:
        await session.append(_violation(s, call_id, touched, len(found.protected)))
    if changed := [one.path for one in (*found.differences, *touched)]:
        verdict = CheckCount(False, f"protected files were written to while it ran: {some(changed)}", verdict.counts)
    seen = verdict.counts
    facts = await _facts(session, check.command) if verdict.passed else []
    masked = s.masking.hides(check.command) if verdict.passed else ""
    blind = _blind(s, call_id, check.command, masked) if masked else []
    await session.append(
        *blind,
        t.CheckVerdict(
            call_id=call_id,
            command=check.command,
            passed=verdict.passed,
            why=verdict.why,
            ran=seen.ran if seen is not None else None,
            excused=seen.excused if seen is not None else None,
            before=s.before.word(check.command),
            facts=facts,
            masked=masked,
        ),
    )


def _blind(s: SessionState, call_id: str, command: str, why: str) -> list[t.RatchetViolation]:
    """The record of a check that hides its exit code, by which a person is asked: when nothing else would decide."""
    known = command in s.ratchet.trusted or any(one.check == command for one in s.ratchet.unanswered.values())
    if known or s.ratchet.kept or not stakes.only_masked(s, command):
        return []
    return [t.RatchetViolation(violation_id=f"v{s.seq}", call_id=call_id, files=[], check=command, why=why)]


async def _facts(session: Session, command: str) -> list[str]:
    """What the check reads and does not find as it was at the start."""
    rules = results.rules_of(session.state)
    found = await session.do(
        "comparing what a check reads", _LOOK_S, lambda: inputs_since_start.facts(_tree(session), [command], rules)
    )
    return [one.told for one in found]


def _nanoseconds(ts: str) -> int:
    """A time of the log in nanoseconds of the clock of day; 0 when it is none."""
    try:
        return int(datetime.fromisoformat(ts).timestamp() * 1000) * 1_000_000
    except ValueError:
        return 0


# -- the person ------------------------------------------------------------------------------------


async def _ask(session: Session) -> None:
    s = session.state
    if not s.ratchet.unanswered or s.calls.open or s.unjudged or s.terminal:
        return
    if any(a.kind == Request.PROTECTED for a in s.approvals.values()):
        return
    changed = s.ratchet.changed()
    violations = list(s.ratchet.unanswered.values())
    blind = [f"{one.why}; seen at {one.call_id}" for one in violations if one.check]
    detail: dict[str, object] = {
        "files": "\n".join(changed[:_MOST_NAMED]),
        "checks": f"{s.checks_passed} of {len(s.checks)} pass on the originals",
    }
    await session.append(
        t.ApprovalRequested(
            approval_id=ids.approval_id(),
            kind=Request.PROTECTED,
            title=some(changed),
            options=OPTIONS,
            action_hash=fingerprint(violations),
            risk="high",
            detail=detail | ({"because": "\n".join(blind)} if blind else {}),
        )
    )


def fingerprint(violations: Sequence[t.RatchetViolation]) -> str:
    """What a decision on these changes is bound to."""
    files = [[one.path, one.how, one.sha] for v in violations for one in v.files]
    checks = [[v.check, v.why] for v in violations if v.check]
    return hashlib.sha256(canonical({"protected": files} | ({"checks": checks} if checks else {}))).hexdigest()


async def _bring(session: Session, violation: t.RatchetViolation) -> None:
    files = [Difference(one.path, one.how, one.sha) for one in violation.files if one.sha != TOUCHED]
    done = restore.PutBack()
    if files:
        done = await session.do(
            "bringing back what you allowed",
            _LOOK_S,
            lambda: restore.bring_again(_tree(session), files, _aside(session, violation.violation_id)),
            lasting=True,
        )
    await session.append(
        t.RatchetRestored(violation_id=violation.violation_id, restored=done.done, refused=done.refused, allowed=True)
    )


def changes(session: Session) -> str:
    """What the agent made of the protected files that a person is asked about, as one comparison (blocking)."""
    made: list[str] = []
    for violation in session.state.ratchet.unanswered.values():
        files = [Difference(one.path, one.how, one.sha) for one in violation.files if one.sha != TOUCHED]
        if not files:
            continue
        sides = restore.both(_tree(session), files, _aside(session, violation.violation_id))
        for one, (before, after) in zip(files, sides, strict=True):
            name = to_display(one.path)  # a name that goes over lines would begin another comparison
            made.append(f"diff --git a/{name} b/{name}")
            made.append(comparison.compare(_side("the original", before), _side("the agent's", after)))
    return "\n".join(made)


def _side(whose: str, body: bytes | None) -> Side:
    if body is None:
        return Side(None, f"{whose}: {NOTHING_THERE}")
    return Side(body, f"{whose}, {Side.of(body).words}")


# -- where -----------------------------------------------------------------------------------------


def _clear(session: Session) -> None:
    """Byte code is made again from the sources that a check is about, and git looks at each file (blocking)."""
    tree = _tree(session)
    index_flags.reset(tree, _aside(session, "index"))
    if found := restore.caches(tree):
        restore.clear(tree, found, _aside(session, CACHES))


def _tree(session: Session) -> Worktree:
    return open_worktree(private_of(session))


def _aside(session: Session, violation_id: str) -> Path:
    return session.folder.root / "aside" / violation_id

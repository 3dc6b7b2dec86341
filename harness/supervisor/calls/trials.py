"""Trials of a check that passes, before its result counts: proposed as calls of the harness, and read from the log."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

from harness.events import tools, trial
from harness.events import types as t
from harness.events.ratchet import Running
from harness.events.trial import TrialRef, Tried
from harness.plan import counts
from harness.plan.counts import Verdict
from harness.plan.trials import Next, Trial, settle
from harness.policy.facts import Facts, FenceFacts
from harness.supervisor.calls import results
from harness.supervisor.calls.ground import private_of
from harness.supervisor.fleet.session import Session
from harness.workspace import trying
from harness.workspace.worktrees import open_worktree

_LOOK_S = 120.0
_RAN = ("ok", "error", "timeout")


async def confirm(session: Session, call_id: str, check: Running, verdict: Verdict) -> Verdict | None:
    """The verdict on a check after its trials; None while one is under way.

    Raises OpError, LinkLost, WorkspaceError.
    """
    if not verdict.passed or counts.inverted(check.command):
        return verdict
    if any(not tried.status for tried in check.trials.values()):
        return None
    rules = results.rules_of(session.state)
    accepted = list(session.state.ratchet.accepted)
    counted = verdict.counts is not None
    case = await session.do(
        "looking what a check can be tried with",
        _LOOK_S,
        lambda: trying.case(open_worktree(private_of(session)), rules, accepted, check.command, counted=counted),
    )
    seen = {kind: await _trial(session, tried) for kind, tried in check.trials.items()}
    due = settle(verdict.counts, case, seen)
    if not isinstance(due, Next):
        if check.trials:
            await session.do("clearing after trials", _LOOK_S, lambda: trying.clear(folder_of(session)))
        return verdict if not due.why else Verdict(False, due.why, verdict.counts, caught=True)
    ref = TrialRef(due.kind, call_id, f"wf_{secrets.token_hex(6)}")
    given = {"command": check.command}
    await session.append(t.ToolProposed(call_id=f"c{session.state.seq}.0", tool=tools.CHECK, ref=str(ref), input=given))
    return None


async def _trial(session: Session, tried: Tried) -> Trial:
    output = await results.output_of(session, tried.output, tried.preview)
    ran = tried.status in _RAN
    return Trial(ran, tried.exit_code, counts.parse(output), tried.word in output)


def laid_over(session: Session, proposed: t.ToolProposed, facts: Facts) -> Facts:
    """The facts of a trial: its files lie over those of the worktree, in its own fence alone (blocking).

    Raises WorkspaceError, OSError.
    """
    named = trial.read(proposed.ref)
    command = (proposed.input or {}).get("command")
    if named is None or not isinstance(command, str):
        return facts
    tree = open_worktree(private_of(session))
    rules = results.rules_of(session.state)
    found = trying.look(tree, rules, list(session.state.ratchet.accepted), command)
    more = trying.lay_out(tree, found, named.kind, named.word, folder_of(session))
    targets = {target for _, target, _ in more}
    binds = (*(bind for bind in facts.fence.binds if bind[1] not in targets), *more)
    dotgit = f"{tree.root}/.git"
    last = tuple(bind for bind in facts.fence.binds if bind[1] == dotgit)
    binds = (*(bind for bind in binds if bind[1] != dotgit), *last)
    return replace(facts, fence=FenceFacts(facts.fence.read, (), binds))


def folder_of(session: Session) -> Path:
    """Where the files of its newest trial are written."""
    return session.folder.root / "trial"

"""Trials of a check that passes, before its result counts: proposed as calls of the harness, and read from the log."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

from harness.events import tools, trial
from harness.events import types as t
from harness.events.call_id import name_call
from harness.events.ratchet import RunCheck
from harness.events.trial import TrialRef, Tried
from harness.plan import counts, inline, python_tests
from harness.plan.counts import CheckCount
from harness.plan.trials import BROKEN, Next, Trial, settle
from harness.policy.facts import Facts, FenceFacts
from harness.supervisor.calls import results
from harness.supervisor.calls.ground import private_of
from harness.supervisor.fleet.session import Session
from harness.workspace import trying
from harness.workspace.worktrees import open_worktree

_LOOK_S = 120.0
TRUSTED = "you let it count, although it passes whatever its tests say"
INVERTED = "it wants its tests to fail"
_RAN = ("ok", "error")


async def confirm(session: Session, call_id: str, check: RunCheck, verdict: CheckCount) -> CheckCount | None:
    """The verdict on a check that passes, after its trials; None while one is due or under way.

    Raises OpError, LinkLost, WorkspaceError.
    """
    if check.command in session.state.ratchet.trusted:
        return replace(verdict, untried=TRUSTED)
    if counts.inverted(check.command):
        return replace(verdict, untried=INVERTED) if verdict.counts is not None else verdict
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
        if due.why:
            return CheckCount(False, due.why, verdict.counts, caught=True)
        return replace(verdict, untried=due.untried)
    ref = TrialRef(due.kind, call_id, f"wf_{secrets.token_hex(6)}")
    given: dict[str, object] = {"command": _command(check.command, ref)}
    named = name_call(session.state.seq)
    await session.append(t.ToolProposed(call_id=named, tool=tools.CHECK, ref=str(ref), input=given))
    return None


def _command(command: str, ref: TrialRef) -> str:
    """What is run for a trial: the check itself, but for code that stands in it."""
    code = inline.code_of(command)
    if not code:
        return command
    made = inline.failing(code, ref.word) if ref.kind == BROKEN else inline.bare(ref.word)
    return inline.with_code(command, made) if made else command


async def _trial(session: Session, tried: Tried) -> Trial:
    output = await results.output_of(session, tried.output, tried.preview)
    told = tried.word in output
    ran = tried.status in _RAN or told
    return Trial(
        ran, tried.exit_code, counts.parse(output), told, tried.status, python_tests.failed(output, tried.word)
    )


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

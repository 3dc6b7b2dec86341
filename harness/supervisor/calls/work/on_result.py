"""Checks on the result of a merge: on the road of every call, in the session's own sandbox, with other files in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.checks.runner_counts import CheckCount
from harness.domain.actions.action import action_hash
from harness.domain.calls.call_id import name_call
from harness.domain.calls.call_states import CallEnd
from harness.domain.decision import Ruling
from harness.events import types as t
from harness.events.work.merge_events import RAN_FOR
from harness.policy.build import build_action
from harness.policy.decide import decide
from harness.policy.facts import Facts, SandboxFacts
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.settings import Settings
from harness.supervisor.calls import carrying_out
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.calls.work import results
from harness.supervisor.fleet.session import Session
from harness.tools import registry
from harness.workspace.facts.gather import gather
from harness.workspace.tree.worktrees import open_worktree

_FACTS_S = 90.0
"""Seconds that reading the worktree may take."""
_MORE_S = 120.0
"""Seconds beyond its own limit after which a check's end is no longer waited for."""


async def check(session: Session, settings: Settings, merge_id: str, command: str, result: Path) -> t.MergeChecked:
    """Run ``command`` where the session's worktree would be, on the files of ``result``; its verdict, appended.

    Raises OpError, LinkLost, WorkspaceError.
    """
    call_id = name_call(session.state.seq)
    given: dict[str, object] = {"command": command}
    ref = f"{RAN_FOR}{merge_id}"
    facts = await session.do("preparing a check", _FACTS_S, lambda: _facts(session, settings, command, result))
    action = build_action(session.sid, call_id, ref, registry.CHECK, given, facts)
    policy = settings.policy
    verdict = decide(action, policy)
    wire = action.to_wire()
    await session.append(
        t.ToolProposed(call_id=call_id, tool=registry.CHECK, ref=ref, input=given),
        t.ToolJudged(
            call_id=call_id,
            action_hash=action_hash(wire),
            verdict=verdict.verdict,
            rule=verdict.rule,
            reason=verdict.reason,
            policy=policy.hash,
            effects=[str(effect) for effect in action.effects],
            action=wire,
        ),
    )
    if verdict.verdict == Ruling.ALLOW:
        await carrying_out.to_its_end(session, settings.config, call_id, action.timeout_s + _MORE_S)
    else:
        why = f"the policy does not allow it ({verdict.rule}): {verdict.reason}"
        await session.append(t.ToolEnded(call_id=call_id, status=CallEnd.DENIED, preview=why))
    done = await _judged(session, command)
    why = done.why[:500]
    checked = t.MergeChecked(
        merge_id=merge_id,
        call_id=call_id,
        command=command,
        passed=done.passed,
        why=why,
        before=session.state.before.word(command),
    )
    await session.append(checked)
    return checked


def _facts(session: Session, settings: Settings, command: str, result: Path) -> Facts:
    """The facts of a call of the session, but for its sandbox: the result lies over the worktree, and what is of git
    can be read alone (blocking).
    """
    tree = open_worktree(private_of(session))
    facts = gather(tree, registry.CHECK, {"command": command}, settings.config.sandbox)
    root = str(tree.root)
    binds = [
        (str(result), root, "rw") if target == root else (source, target, "ro")
        for source, target, _ in facts.sandbox.binds
    ]
    return replace(facts, sandbox=SandboxFacts(facts.sandbox.read, (), tuple(binds)))


async def _judged(session: Session, command: str) -> CheckCount:
    s = session.state
    ran = s.merging.ran
    if ran is None or not ran.status:
        raise OpError("lost", f"nobody saw the end of the check {command!r}", "merge again")
    if ran.status != CallEnd.OK and ran.exit_code is None:
        return CheckCount(False, f"{ran.status}: {ran.preview[:300]}")
    output = await results.output_of(session, ran.output, ran.preview)
    made = await results.judged(session, command, ran.status, ran.exit_code, output)
    return made if made.passed or made.why else replace(made, why=f"exit {ran.exit_code}")

"""The checks of a session on the files as they are before its agent begins: run as calls of the harness, then what they
changed is restored, then what they said is put on record.

Everything follows from the fold, so a supervisor that dies anywhere goes on from the log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import assert_never

from harness.checks import runner_counts
from harness.checks.reading_only import only_reads
from harness.domain.calls.call_id import name_call
from harness.domain.calls.call_states import NOT_RUN, CallEnd, CallStage
from harness.domain.problems import of_code
from harness.events import types as t
from harness.events.calls.call_events import BEFORE_WORK, READS_BEFORE_WORK
from harness.keeper.loop.requests import CancelCall, TakeState, UndoCall
from harness.plan import checks_before
from harness.plan.checks_before import Conclude, RunBefore
from harness.projections.state.checked_before import SKIPPED, Run
from harness.supervisor.base import ids
from harness.supervisor.base.errors import FOR_NOW, Later, OpError
from harness.supervisor.calls.work import results
from harness.supervisor.fleet.session import Session
from harness.tools import registry

_RETRY_S = 1.0
_WHY = 500


async def step(session: Session) -> None:
    """Do what is due. Raises OpError, LinkLost, Later."""
    await _end_skipped(session)
    found = checks_before.due(session.state)
    match found:
        case None:
            return
        case RunBefore():
            await session.append(*_proposals(session.state.seq, found.commands))
        case Conclude():
            await _restore(session)
            await session.append(*[await _checked(session, call_id, run) for call_id, run in found.runs.items()])
        case _:
            assert_never(found)


async def _end_skipped(session: Session) -> None:
    """End those that run and that a person does not wait for. Raises LinkLost."""
    s = session.state
    for call_id, run in list(s.before.runs.items()):
        call = s.calls.open.get(call_id)
        if not run.skipped or call is None:
            continue
        if call.stage == CallStage.STARTED:
            with contextlib.suppress(OpError):  # it may have ended just now
                await session.keeper().ask(CancelCall(call_id))
        elif call.stage == CallStage.PROPOSED:
            await session.append(t.ToolEnded(call_id=call_id, status=CallEnd.CANCELLED, preview=SKIPPED))


def _proposals(seq: int, commands: Sequence[str]) -> list[t.ToolProposed]:
    return [
        t.ToolProposed(
            call_id=name_call(seq, i),
            tool=registry.CHECK,
            ref=READS_BEFORE_WORK if only_reads(command) else BEFORE_WORK,
            input={"command": command},
        )
        for i, command in enumerate(commands)
    ]


async def _restore(session: Session) -> None:
    """Take back what the checks wrote: none of it is work of the agent's. Raises OpError, LinkLost, Later."""
    known = session.state.before
    if not known.call_id:
        return
    try:
        kept = await session.keeper().ask(TakeState("after checks before the work", worked=known.snapshot), None)
        if kept.worked == 0:
            return
        wanted = UndoCall(ids.restoring_id(), known.call_id, known.snapshot, {"client": "checks"})
        done = await session.keeper().ask(wanted, None)
    except OpError as exc:
        if exc.code == "busy":
            raise Later(_RETRY_S) from exc
        if exc.code in FOR_NOW:
            raise Later(_RETRY_S, of_code(exc.code, exc.message)) from exc
        raise
    await session.until(lambda: session.state.last_undo == wanted.undo_id)
    if why := done.error or "; ".join(done.refused):
        await session.append(
            t.HarnessNote(
                level="warn", text=f"what checks wrote before the work stays: {why}"[:_WHY], component="supervisor"
            )
        )


async def _checked(session: Session, call_id: str, run: Run) -> t.CheckedBefore:
    if run.status in NOT_RUN:
        why = SKIPPED if run.skipped else f"{run.status}: {run.preview}"[:_WHY]
        return t.CheckedBefore(call_id=call_id, command=run.command, passed=None, why=why)
    output = await results.output_of(session, run.output, run.preview)
    code = run.exit_code if run.status == CallEnd.OK else run.exit_code or None
    found = runner_counts.judge(run.command, code, output, None)
    return t.CheckedBefore(
        call_id=call_id,
        command=run.command,
        passed=found.passed,
        exit_code=run.exit_code,
        why=found.why or (run.status if run.exit_code is None else ""),
        ran=found.counts.ran if found.counts is not None else None,
        excused=found.counts.excused if found.counts is not None else None,
    )

"""Whether the result of a check that ran counts: one rule for the session's own files and for the result of a merge."""

from __future__ import annotations

from harness.checks import runner_counts
from harness.checks.protected_files import Rules
from harness.checks.runner_counts import CheckCount, Counts
from harness.domain.calls.call_states import CallEnd
from harness.domain.outcomes import FAILED
from harness.eventlog import blobs
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.projections.state.session_state import SessionState
from harness.supervisor.base.threads import at_home
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.session import Session
from harness.workspace.protected import check_inputs
from harness.workspace.tree.worktrees import open_worktree

_LOOK_S = 120.0


async def judged(session: Session, command: str, status: str, exit_code: int | None, output: str) -> CheckCount:
    """What a check's end and output say, by what it counted before the work and by what the files that
    decide say of skips. Raises WorkspaceError.
    """
    s = session.state
    known = s.first_counts.get(command)
    first = Counts(*known) if known is not None else None
    seen = runner_counts.parse(output)
    excused = seen is None or not seen.raised or await _excused(session)
    code = exit_code if status == CallEnd.OK else exit_code or None
    return runner_counts.judge(command, code, output, first, excused=excused, red=s.before.word(command) == FAILED)


async def _excused(session: Session) -> bool:
    """Whether what decides says itself that tests are skipped; so it may when a person let the agent change it."""
    s = session.state
    if s.ratchet.accepted or (s.intent is not None and s.intent.free):
        return True
    rules = rules_of(s)

    def look() -> bool:
        tree = open_worktree(private_of(session))
        return check_inputs.excuses(tree, check_inputs.guarded(tree, rules))

    return await session.do("asking which tests are skipped", _LOOK_S, look)


async def output_of(session: Session, output: t.BlobRef | None, preview: str) -> str:
    """The whole output of a call that ended, or as much of it as there is."""
    if output is None:
        return preview
    try:
        return (await at_home(blobs.get, session.folder.blobs, output.sha)).decode("utf-8", "replace")
    except (LogError, OSError):
        return preview


def rules_of(s: SessionState) -> Rules:
    """What is protected in this session."""
    intent = s.intent
    if intent is None:
        return Rules(tuple(s.checks))
    own = s.plan.path if s.plan is not None else intent.plan or intent.draft
    plan = [own] if own else []  # kept by itself, since the harness writes it
    return Rules(tuple(s.checks), tuple(intent.protect), (*intent.free, *plan))

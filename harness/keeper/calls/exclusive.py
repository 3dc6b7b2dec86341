"""Who has the worktree to himself: what a person let out as it was shown must meet it as it was shown. Pure.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.domain.actions.access import Access
from harness.domain.actions.action import Action
from harness.tools import registry

_WAIT = "wait for it (job {action: wait}) or cancel it, then ask again"


def shown(action: Action) -> bool:
    """True when a person was shown a state of the worktree together with the action."""
    return action.world.get("snapshot") is not None


def of_jobs(action: Action, jobs: Iterable[str]) -> str:
    """Why a call that leaves the sandbox must not begin while these jobs run; empty when it may: a job can change what
    a person was shown, also after the last look at it.
    """
    names = ", ".join(jobs)
    if not names or action.access == Access.SANDBOX or not shown(action):
        return ""
    return (
        f"not while a job runs ({names}): it can change the files that a person would be shown with this call; {_WAIT}"
    )


def of_open_jobs(action: Action, jobs: Mapping[str, Action]) -> str:
    """Why a call must not begin beside a job that runs outside the sandbox, as a person was shown it; empty when it
    may: what the job reads later would be whatever this call writes.
    """
    names = ", ".join(name for name, job in jobs.items() if job.access == Access.UNSANDBOXED and shown(job))
    if not names or not registry.may_change_files(action.tool, action.access):
        return ""
    return f"not while {names} runs outside the sandbox: no file that it may use is changed meanwhile; {_WAIT}"

"""What runs after an agent's edits (formatter, types, lint), and what of it the agent has to be told. Pure; the fold
holds a `Hooks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.events.calls.call_events import ToolEnded, ToolProposed, ToolStarted
from harness.projections.state.iterations import Chore, chore_of, done
from harness.tools import registry

HOOK = "hook"


@dataclass(frozen=True, slots=True)
class Hooks:
    """``edited``: something was changed since they last ran; ``since``: the state of the worktree before the first
    command since then, which may have changed something; ``jobs``: that before each job that runs; ``ended``: their
    results that nobody was told.
    """

    edited: bool = False
    since: str = ""
    running: dict[str, Chore] = field(default_factory=dict)
    ended: tuple[Chore, ...] = ()
    jobs: dict[str, str] = field(default_factory=dict)

    def changed(self, files: Sequence[str]) -> Hooks:
        return replace(self, edited=True) if files and not self.edited else self

    def started(self, tool: str, b: ToolStarted) -> Hooks:
        """Of the agent's commands; what the harness runs itself is no edit."""
        if self.since or not b.snapshot or tool in registry.OWN or not registry.runs(tool):
            return self
        return replace(self, since=b.snapshot)

    def job_started(self, job: str) -> Hooks:
        """What it writes is seen when it has ended: its own call ends at once."""
        return replace(self, jobs=self.jobs | {job: self.since}) if self.since else self

    def job_ended(self, job: str) -> Hooks:
        if job not in self.jobs:
            return self
        left = {name: since for name, since in self.jobs.items() if name != job}
        return replace(self, jobs=left, since=self.since or self.jobs[job])

    def looked(self, changed: bool) -> Hooks:
        """Whether commands changed something since ``since`` is known."""
        return replace(self, since="", edited=self.edited or changed)

    def proposed(self, b: ToolProposed) -> Hooks:
        chore = chore_of(b)
        if chore is None or chore.kind != HOOK:
            return self
        ended = self.ended if self.running else ()
        return Hooks(running=self.running | {b.call_id: chore}, ended=ended, jobs=self.jobs)

    def chore_ended(self, call_id: str, ended: ToolEnded | None) -> Hooks:
        chore = self.running.get(call_id)
        if chore is None:
            return self
        left = {name: one for name, one in self.running.items() if name != call_id}
        return replace(self, running=left, ended=(*self.ended, done(chore, ended)))

    def told(self) -> Hooks:
        """The agent was told."""
        return replace(self, ended=()) if self.ended else self

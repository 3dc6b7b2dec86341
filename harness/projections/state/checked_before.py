"""What a log says of the checks before the work: each is run once on the files as they are before the agent begins, so
that *now passes* and *still passes* are different things. Pure.

The fold holds a `Before`; what is due by it says `harness.plan.checks_before`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.domain.calls.call_states import CallEnd
from harness.events.body import BlobRef
from harness.events.calls.call_events import ToolEnded, ToolProposed, ToolStarted
from harness.events.plan.plan_events import CheckedBefore

SKIPPED = "you skipped it"
_TRIES = 2
"""How often a run is begun anew that was interrupted."""


@dataclass(slots=True)
class Run:
    """A check that runs before the work, or ran and is not on record yet: then it has a ``status``."""

    command: str
    status: str = ""
    exit_code: int | None = None
    preview: str = ""
    output: BlobRef | None = None
    skipped: bool = False


@dataclass(slots=True)
class Before:
    """The results by command, the runs under way by call, and where the state is kept that they began on."""

    results: dict[str, CheckedBefore] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    call_id: str = ""
    """The first of the newest runs that could change files; empty while none did, or once what they changed is
    restored.
    """
    snapshot: str = ""

    def lacking(self, commands: Iterable[str]) -> list[str]:
        """Which of these commands nobody ran, or is about to run, before the work; each once."""
        known = {run.command for run in self.runs.values()}
        return [c for c in dict.fromkeys(commands) if c not in self.results and c not in known]

    def word(self, command: str) -> str:
        """``passed`` or ``failed`` before the work; empty when nobody knows."""
        found = self.results.get(command)
        return "" if found is None else found.word

    @property
    def running(self) -> list[str]:
        """The commands that run now, or are about to."""
        return [run.command for run in self.runs.values() if not run.status and not run.skipped]

    def ended(self) -> dict[str, Run]:
        """The runs that came to their end and are not on record."""
        return {call_id: run for call_id, run in self.runs.items() if run.status}

    # -- records -----------------------------------------------------------------------------------

    def proposed(self, b: ToolProposed) -> None:
        if b.before_work and b.input is not None:
            command = str(b.input.get("command", ""))
            self.runs[b.call_id] = Run(command)
            self.tries[command] = self.tries.get(command, 0) + 1

    def skip(self, commands: Iterable[str]) -> None:
        """Nobody waits for these: those that run are to be ended and not begun again, the others never begin."""
        for command in self.lacking(commands):
            self.results[command] = CheckedBefore(call_id="", command=command, passed=None, why=SKIPPED)
        wanted = set(commands)
        for run in self.runs.values():
            if run.command in wanted and not run.status:
                run.skipped = True
                self.tries[run.command] = _TRIES

    def started(self, b: ToolStarted) -> None:
        if b.call_id in self.runs and b.snapshot and not self.call_id:
            self.call_id = b.call_id
            self.snapshot = b.snapshot

    def call_ended(self, b: ToolEnded) -> None:
        run = self.runs.get(b.call_id)
        if run is None:
            return
        if b.status == CallEnd.CANCELLED and self.tries.get(run.command, 0) < _TRIES:
            del self.runs[b.call_id]
            return
        run.status = b.status
        run.exit_code = b.exit_code
        run.preview = b.preview
        run.output = b.output

    def unknown(self, call_id: str) -> None:
        """Nobody saw the end of a run."""
        run = self.runs.get(call_id)
        if run is None:
            return
        if self.tries.get(run.command, 0) < _TRIES:
            del self.runs[call_id]
        else:
            run.status = CallEnd.CANCELLED

    def checked(self, b: CheckedBefore) -> None:
        self.runs.pop(b.call_id, None)
        self.results[b.command] = b
        if not self.runs:
            self.call_id = ""
            self.snapshot = ""

    def restored(self, call_id: str) -> None:
        """What the runs from that call on changed was taken back, as far as it can be."""
        if call_id == self.call_id:
            self.call_id = ""
            self.snapshot = ""

    def handed(self, results: Iterable[CheckedBefore]) -> None:
        """What the session that this one began from hands on."""
        self.results = {one.command: one for one in results}

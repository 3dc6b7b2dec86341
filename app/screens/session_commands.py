"""The commands on one session, which the floor and the session's own screen share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

import msgspec

from app.client import requests
from app.framework.handlers import Handler, Handlers
from app.input.arming import ARM_S
from app.screens.base import WatchScreen
from app.terminal import clipboard
from app.terminal.clipboard import Selected
from harness.domain.states import OVER, Desired, State
from harness.domain.text.formatting import counted
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.config import config as configuration
from harness.views import attention
from harness.views.session_views import SessionRow


class SessionCommands(WatchScreen):
    """Pause, resume, continue, stop, remove, undo and say, for the session that the screen is about (`target`)."""

    NO_TARGET: ClassVar[str] = "no session is selected"
    _swapped_at = 0.0

    def swapped(self) -> None:
        """News has just put something else in the place of what keys act on."""
        self._swapped_at = time.monotonic()

    def on_what_was_seen(self, handler: Handler) -> Handler:
        """The same, unless its key was meant for what stood there until just before it was pressed."""

        def run() -> None:
            if time.monotonic() - self.host.input_age() < self._swapped_at + ARM_S:
                self.host.tell("something else has just taken the place of what you saw; look, then press again")
            else:
                handler.run()

        return msgspec.structs.replace(handler, run=run)

    @property
    def target(self) -> SessionRow | None:
        """The session that commands apply to."""
        raise NotImplementedError

    def selected_text(self) -> Selected | None:
        row = self.target
        if row is None:
            return None
        line = f"{row.name}  {row.sid}  {row.state}  {row.detail}"
        return Selected("its line", lambda: clipboard.lines([line]), row.sid)

    def handlers(self) -> Handlers:
        return {
            "session.pause": Handler(self._pause, self._reason(not_pausing)),
            "session.resume": Handler(self._resume, self._reason(not_resuming)),
            "session.continue": Handler(self._continue, self._reason(not_continuing)),
            "session.review": Handler(self._review, self._reason(_anything)),
            "session.merge": Handler(self._merge, self._reason(not_merging)),
            "session.fork": Handler(self._fork, self._reason(_anything)),
            "session.stop": Handler(self._stop, self._reason(not_going_on)),
            "session.remove": Handler(self._remove, self._reason(not_removing)),
            "session.undo": Handler(self._undo, self._reason(not_undoing)),
            "session.job": Handler(self._end_job, self._reason(not_ending_a_job)),
            "session.answer": Handler(self._answer, self._no_question),
            "session.say": Handler(self._say, self._reason(not_going_on)),
        }

    def _reason(self, why_not: Callable[[SessionRow], str]) -> Callable[[], str]:
        """Asks it about the session that commands apply to."""

        def reason() -> str:
            row = self.target
            return why_not(row) if row is not None else self.NO_TARGET

        return reason

    def _pause(self) -> None:
        if row := self.target:
            request = requests.desire(self.host.folders, row.sid, "paused")
            self.host.send(f"{row.name}: pausing at its next turn", "desire", **request)

    def _resume(self) -> None:
        row = self.target
        if row is None:
            return
        try:
            request = requests.desire(self.host.folders, row.sid, "running")
        except configuration.ConfigError as exc:
            self.host.tell(f"{row.name} was not resumed: {exc}", bad=True)
            return
        self.host.send(f"{row.name}: resumed", "desire", **request)

    def _continue(self) -> None:
        from app.screens.dialogs.continuing import ContinueDialog

        if row := self.target:
            self.app.push_screen(ContinueDialog(row))

    def _review(self) -> None:
        if row := self.target:
            self.host.open_review(row.sid)

    def _merge(self) -> None:
        from app.screens.dialogs.taking import MergeDialog

        if row := self.target:
            self.app.push_screen(MergeDialog(row))

    def _fork(self) -> None:
        from app.screens.dialogs.taking import ask_fork

        if row := self.target:
            self.host.run_beside(ask_fork(self.app, self.host, row))

    def _stop(self) -> None:
        if row := self.target:
            self._ask_stop(row)

    def _ask_stop(self, row: SessionRow) -> None:
        from app.screens.dialogs.dialogs import Confirm

        text = (
            "What runs now is killed and its agent ends. The worktree, the branch and the log stay; only continuing"
            " takes it up again."
        )

        def decided(yes: bool | None) -> None:
            if yes:
                request = requests.desire(self.host.folders, row.sid, Desired.STOPPED, "stopped by you")
                self.host.send(f"{row.name}: stopping", "desire", **request)

        self.app.push_screen(Confirm("Stop", row.name, text, "stop it"), decided)

    def _remove(self) -> None:
        from app.screens.dialogs.dialogs import Confirm

        row = self.target
        if row is None:
            return

        def decided(yes: bool | None) -> None:
            if yes:
                self.host.send(f"{row.name}: removed, its log is archived", "remove", sid=row.sid)

        text = (
            "Its worktree is deleted; log and costs stay (watchfloor ls --archived). That is refused while it holds"
            " work that is neither committed nor pushed."
        )
        self.app.push_screen(Confirm("Remove", row.name, text, "remove it"), decided)

    def _undo(self) -> None:
        if row := self.target:
            self.host.run_beside(self._ask_undo(row))

    async def _ask_undo(self, row: SessionRow) -> None:
        from app.screens.dialogs.undo import UndoDialog
        from harness.views.undo_views import UndoPoints

        try:
            points = (await self.host.feed.reply(UndoPoints, "undo_points", sid=row.sid)).points
        except (SupervisorError, Unreachable) as exc:
            self.host.tell(f"{row.name}: {exc}", bad=True)
            return
        if not points:
            self.host.tell(f"{row.name}: nothing to undo; no call may have changed a file yet")
            return

        def chosen(call_id: str | None) -> None:
            if call_id is not None:
                self.host.run_beside(self._bring_back(row, call_id))

        if self.app.screen is self:  # not above a question that was opened meanwhile
            self.app.push_screen(UndoDialog(row.name, points, time.time()), chosen)

    async def _bring_back(self, row: SessionRow, call_id: str) -> None:
        from harness.views.undo_views import Undone

        try:
            made = await self.host.feed.reply(Undone, "undo", sid=row.sid, to=call_id)
        except (SupervisorError, Unreachable) as exc:
            self.host.tell(f"{row.name}: {exc}", bad=True)
            return
        refused = made.refused_count
        left = f"; {counted(refused, 'name')} could not be brought back" if refused else ""
        back = counted(made.restored, "name")
        gone = counted(made.removed, "name")
        done = f"undone to before {made.to}: {back} brought back, {gone} removed"
        kept = f"; what was there is checkpoint {made.before}" if made.before else ""
        self.host.tell(f"{row.name}: {done}{left}{kept}", bad=bool(refused))

    def _end_job(self) -> None:
        from app.screens.dialogs.dialogs import Confirm

        row = self.target
        if row is None or not row.jobs:
            return
        *older, job = row.jobs
        others = f" Others that run: {', '.join(older)}." if older else ""

        def decided(yes: bool | None) -> None:
            if yes:
                self.host.send(f"{row.name}: job {job} is told to end", "job_cancel", sid=row.sid, job=job)

        text = f"{job}: {row.jobs[job]}. Its agent is told that it was cancelled, and goes on.{others}"
        self.app.push_screen(Confirm("End a job of", row.name, text, "end it"), decided)

    def _no_question(self) -> str:
        row = self.target
        if row is None:
            return "no session is selected"
        requests = self.host.snapshot.approvals
        if attention.question_of(requests, row.sid):
            return ""
        if any(view.sid == row.sid for view in requests):
            return f"{row.name} asks nothing that a line answers; {self.host.keys.shown('go.queue')} opens its request"
        return f"{row.name} asks nothing"

    def _answer(self) -> None:
        from app.screens.dialogs import answering

        row = self.target
        view = attention.question_of(self.host.snapshot.approvals, row.sid) if row is not None else None
        if view is not None:
            answering.ask(
                self.app, self.host, view, lambda given: self.host.run_beside(answering.send(self.host, view, given))
            )

    def _say(self) -> None:
        from app.screens.dialogs.dialogs import Ask, said

        row = self.target
        if row is None:
            return

        def written(text: str | None) -> None:
            if text:
                self.host.send(f"{row.name}: will read it at its next turn", "say", **requests.say(row.sid, text))

        self.app.push_screen(
            Ask("Say to", row.name, "Your message is part of its next turn.", said, lines=True), written
        )


def _anything(row: SessionRow) -> str:
    return ""


def not_pausing(row: SessionRow) -> str:
    """Why this session cannot be paused; empty when it can."""
    if row.state in OVER:
        return f"{row.name} is {row.state}; nothing is going on that could be paused"
    if row.desired == Desired.STOPPED:
        return f"{row.name} is being stopped"
    return f"{row.name} is paused already" if row.desired == Desired.PAUSED else ""


def not_resuming(row: SessionRow) -> str:
    """Why this session cannot be resumed; empty when it can."""
    if why := not_going_on(row):
        return why
    skips = row.state == State.RUNNING and row.action == "session.resume"  # its checks before the work
    if row.desired != Desired.PAUSED and row.state not in (State.FAILED, State.PARKED) and not skips:
        return f"{row.name} is neither paused nor at a standstill"
    return ""


def not_continuing(row: SessionRow) -> str:
    """Why this session cannot be continued; empty when it can."""
    return "" if row.ended else f"{row.name} has not ended"


def not_merging(row: SessionRow) -> str:
    """Why the work of this session cannot be merged now; empty when it can be tried. A branch that it was merged into
    may have been moved back since: the question itself looks.
    """
    return "" if row.ended else f"{row.name} has not ended; its work may still change"


def not_going_on(row: SessionRow) -> str:
    """Why this session cannot be stopped or told something: it does not go on; empty when it does."""
    if row.ended:
        return f"{row.name} has ended; it can be continued"
    if row.desired == Desired.STOPPED:
        return f"{row.name} is being stopped"
    return ""


def not_removing(row: SessionRow) -> str:
    """Why this session cannot be removed; empty when it can."""
    return "" if row.state in OVER else f"{row.name} has not ended; stop it first"


def not_ending_a_job(row: SessionRow) -> str:
    """Why no job of this session can be ended; empty when one can."""
    return "" if row.jobs else f"{row.name} runs no job"


def not_undoing(row: SessionRow) -> str:
    """Why nothing of this session can be undone; empty when something may be."""
    return "" if row.tool_calls > 0 else f"{row.name} has not called a tool yet"

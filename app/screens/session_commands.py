"""The commands on one session, which the floor and the session's own screen share."""

from __future__ import annotations

import time

from app import key
from app.screens.base import WatchScreen
from harness.events.views import SessionRow
from harness.protocol import config as configuration
from harness.protocol.client import SupervisorError, Unreachable


class SessionCommands(WatchScreen):
    """Pause, resume, continue, stop, remove, undo and say, for the session that the screen is about (`target`)."""

    @property
    def target(self) -> SessionRow | None:
        """The session that commands apply to."""
        raise NotImplementedError

    def can_session_pause(self) -> bool:
        row = self.target
        return row is not None and row.desired == "running" and row.state not in ("done", "stopped", "failed")

    def do_session_pause(self) -> None:
        if row := self.target:
            self.host.send(f"{row.name}: pausing at its next turn", "desire", sid=row.sid, state="paused")

    def can_session_resume(self) -> bool:
        row = self.target
        return (
            row is not None
            and not row.ended
            and row.desired != "stopped"
            and (row.desired == "paused" or row.state in ("failed", "parked"))
        )

    def do_session_resume(self) -> None:
        row = self.target
        if row is None:
            return
        try:
            handed = key.here(self.host.folders)
        except configuration.ConfigError as exc:
            self.host.tell(f"{row.name} was not resumed: {exc}", bad=True)
            return
        self.host.send(f"{row.name}: resuming", "desire", sid=row.sid, state="running", **handed)

    def can_session_continue(self) -> bool:
        row = self.target
        return row is not None and row.ended

    def do_session_continue(self) -> None:
        from app.screens.going_on import ContinueDialog

        if row := self.target:
            self.app.push_screen(ContinueDialog(row))

    def can_session_stop(self) -> bool:
        row = self.target
        return row is not None and not row.ended and row.desired != "stopped"

    def do_session_stop(self) -> None:
        if row := self.target:
            self._ask_stop(row)

    def _ask_stop(self, row: SessionRow) -> None:
        from app.screens.dialogs import Confirm

        text = (
            "What runs now is killed and its agent ends. The worktree, the branch and the log stay; only continuing"
            " takes it up again."
        )

        def decided(yes: bool | None) -> None:
            if yes:
                self.host.send(f"{row.name}: stopping", "desire", sid=row.sid, state="stopped", reason="stopped by you")

        self.app.push_screen(Confirm("Stop", row.name, text, "stop it"), decided)

    def can_session_remove(self) -> bool:
        row = self.target
        return row is not None and row.state in ("done", "stopped", "failed")

    def do_session_remove(self) -> None:
        from app.screens.dialogs import Confirm

        row = self.target
        if row is None:
            return

        def decided(yes: bool | None) -> None:
            if yes:
                self.host.send(f"{row.name}: removed", "remove", sid=row.sid)

        text = "Its worktree is deleted. That is refused while it holds work that is neither committed nor pushed."
        self.app.push_screen(Confirm("Remove", row.name, text, "remove it"), decided)

    def can_session_undo(self) -> bool:
        row = self.target
        return row is not None and row.tool_calls > 0

    def do_session_undo(self) -> None:
        if row := self.target:
            self.host.run_beside(self._ask_undo(row))

    async def _ask_undo(self, row: SessionRow) -> None:
        import msgspec

        from app.screens.undo import UndoDialog, points_of

        try:
            points = points_of(await self.host.feed.call("undo_points", sid=row.sid))
        except (SupervisorError, Unreachable, msgspec.ValidationError) as exc:
            self.host.tell(f"{row.name}: {exc}", bad=True)
            return
        if not points:
            self.host.tell(f"{row.name}: nothing to undo; no call may have changed a file yet")
            return

        def chosen(call_id: str | None) -> None:
            if call_id is not None:
                self.host.run_beside(self._undo(row, call_id))

        if self.app.screen is self:  # not above a question that was opened meanwhile
            self.app.push_screen(UndoDialog(row.name, points, time.time()), chosen)

    async def _undo(self, row: SessionRow, call_id: str) -> None:
        from app.screens.undo import names

        try:
            reply = await self.host.feed.call("undo", sid=row.sid, to=call_id)
        except (SupervisorError, Unreachable) as exc:
            self.host.tell(f"{row.name}: {exc}", bad=True)
            return
        refused = int(reply.get("refused_count", 0))
        left = f"; {names(refused)} could not be brought back" if refused else ""
        done = (
            f"undone to before {reply.get('to', call_id)}: {names(int(reply.get('restored', 0)))} brought back,"
            f" {names(int(reply.get('removed', 0)))} removed"
        )
        self.host.tell(f"{row.name}: {done}{left}", bad=bool(refused))

    def can_session_say(self) -> bool:
        row = self.target
        return row is not None and not row.ended and row.desired != "stopped"

    def do_session_say(self) -> None:
        from app.screens.dialogs import Ask

        row = self.target
        if row is None:
            return

        def written(text: str | None) -> None:
            if text:
                self.host.send(f"{row.name}: will read it at its next turn", "say", sid=row.sid, text=text)

        self.app.push_screen(Ask("Say to", row.name, "Your message is part of its next turn.", lines=True), written)

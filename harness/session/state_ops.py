"""What a supervisor asks of a keeper's vault between calls: a state to be kept, a list of them, one as a commit.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.session.call_gate import Gate
from harness.session.errors import OpError
from harness.session.request_fields import text
from harness.session.wire import Conn
from harness.vault import limits as undo_limits


class StateOps:
    """Operations that the vault answers, each once no call is at work."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def limits(self, message: dict[str, Any]) -> None:
        """Take what a request says of ``[undo]``; without a word the last ones stay. Raises OpError."""
        if (value := message.get("undo_limits")) is None:
            return
        try:
            self._gate.vault.limits = undo_limits.from_wire(value)
        except ValueError as exc:
            raise OpError("bad_request", str(exc)) from exc

    def snapshot(self, conn: Conn, message: dict[str, Any]) -> None:
        """Keep the worktree as it is now and say which snapshot that is, with what differs from ``since``, and
        what was worked on since ``worked``.
        """
        self.limits(message)
        request: dict[str, Any] = {
            "op": "take",
            "label": str(message.get("label") or "state"),
            "full": message.get("full") is True,
        }
        if message.get("since") is not None:
            request |= {"since": text(message, "since"), "only": "w/"}
        if message.get("worked") is not None:
            request["worked"] = text(message, "worked")
        self._gate.snapshot(request, self._answer(conn, message))

    def snapshots(self, conn: Conn, message: dict[str, Any]) -> None:
        self._gate.snapshot({"op": "list"}, self._answer(conn, message))

    def export(self, conn: Conn, message: dict[str, Any]) -> None:
        """Keep the worktree as it is now, and write what a commit of it takes into the session's folder."""
        self.limits(message)
        request = {name: text(message, name) for name in ("label", "head", "ground", "since")}
        self._gate.snapshot({"op": "export", **request}, self._answer(conn, message))

    @staticmethod
    def _answer(conn: Conn, message: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
        def answer(reply: dict[str, Any]) -> None:
            conn.send({**reply, "id": message.get("id")})

        return answer

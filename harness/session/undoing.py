"""An undo: the present state is kept, the intent is put on record, then the worktree is brought back. Standard library
only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.events.log import NoSpace, Poisoned
from harness.session.errors import Answer, OpError
from harness.session.fault import Faults
from harness.session.vault_client import VaultLink

Write = Callable[[str, dict[str, Any]], None]


class Undoing:
    """The one undo of a session that is being carried out; ``over`` is called when none is any more.

    ``write`` puts a record of the keeper's own into the log and raises OpError, NoSpace, Poisoned; ``try_write`` says
    so and goes on.
    """

    def __init__(
        self, vault: VaultLink, faults: Faults, write: Write, try_write: Write, over: Callable[[], None]
    ) -> None:
        self._vault = vault
        self._faults = faults
        self._write = write
        self._try_write = try_write
        self._over = over
        self.now = ""
        """Its id; empty while nothing is undone."""

    def begin(self, undo: dict[str, Any], answer: Answer) -> None:
        """Bring a kept state back; the present one is kept first."""
        self.now = str(undo["undo_id"])
        request = {"op": "take", "label": f"undo {self.now}", "full": True, "roots": self._vault.roots()}
        self._vault.ask(request, lambda reply: self._kept(undo, answer, reply))

    def resume(self, undo: dict[str, Any]) -> None:
        """Carry out the one that an earlier keeper did not finish."""
        self.now = str(undo["undo_id"])
        self._bring_back(undo, lambda _reply: None)

    def _kept(self, undo: dict[str, Any], answer: Answer, reply: dict[str, Any]) -> None:
        try:
            if not reply.get("ok"):
                raise OpError(
                    str(reply["error"]["code"]),
                    f"the present state cannot be kept, so nothing was undone: {reply['error']['message']}",
                )
            self._write("undo.started", undo | {"before": reply["snapshot"]})
        except (OpError, NoSpace, Poisoned) as exc:
            self.now = ""
            answer(exc if isinstance(exc, OpError) else OpError("no_space", str(exc)))
            self._over()
            return
        self._bring_back(undo | {"before": reply["snapshot"]}, answer)

    def _bring_back(self, undo: dict[str, Any], answer: Answer) -> None:
        self._faults.hit("keeper.undo_started")
        request = {
            "op": "bring_back",
            "snapshot": undo["snapshot"],
            "label": f"undo {undo['undo_id']}",
            "exact": ["w", "g"],
        }
        self._vault.ask(
            {**request, "roots": self._vault.roots()}, lambda reply: self._brought_back(undo, answer, reply)
        )

    def _brought_back(self, undo: dict[str, Any], answer: Answer, reply: dict[str, Any]) -> None:
        done: dict[str, Any] = {"undo_id": undo["undo_id"], "call_id": undo["call_id"]}
        if reply.get("ok"):
            done |= {name: reply[name] for name in ("written", "removed", "refused", "refused_count")}
        else:
            done["error"] = str(reply["error"]["message"])
        self.now = ""
        self._try_write("undo.ended", done)
        answer({**done, "before": undo["before"]})
        self._over()

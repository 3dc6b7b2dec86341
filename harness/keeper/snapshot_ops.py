"""What a supervisor asks of a keeper's vault between calls: a state to be kept, a list of them, one as a commit.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.keeper.calls.gate import CallGate
from harness.keeper.loop.connection import Asker
from harness.keeper.loop.errors import OpError
from harness.keeper.loop.requests import ExportState, StatesKept, TakeState
from harness.vault.limits import VaultLimits
from harness.vault.vault_ops import Export, ListStates, Take, VaultFailure

_WORKTREE = "w/"


class StateOps:
    """Operations that the vault answers, each once no call is at work."""

    def __init__(self, gate: CallGate) -> None:
        self._gate = gate

    def _within(self, limits: VaultLimits | None) -> None:
        """What a request says of ``[undo]`` counts from now on; without a word the last ones stay."""
        if limits is not None:
            self._gate.vault.limits = limits

    def take(self, asker: Asker, wanted: TakeState) -> None:
        self._within(wanted.undo_limits)
        roots = self._gate.between_calls()
        only = _WORKTREE if wanted.since is not None else None
        label = wanted.label or "state"
        state = Take(roots, label, wanted.full, wanted.since, only, wanted.worked, writers=self._gate.jobs.writers)
        self._gate.vault.ask(state, _answer(asker))

    def kept(self, asker: Asker, wanted: StatesKept) -> None:
        self._gate.between_calls()
        self._gate.vault.ask(ListStates(), _answer(asker))

    def export(self, asker: Asker, wanted: ExportState) -> None:
        self._within(wanted.undo_limits)
        roots = self._gate.between_calls()
        self._gate.vault.ask(
            Export(roots, wanted.label, wanted.head, wanted.ground, wanted.since, self._gate.jobs.writers),
            _answer(asker),
        )


def _answer(asker: Asker) -> Callable[[object], None]:
    def answer(reply: object) -> None:
        asker.told(OpError(reply.code, reply.message) if isinstance(reply, VaultFailure) else reply)

    return answer

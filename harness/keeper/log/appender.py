"""The keeper's hold on its log: stage records under the rules, commit them as one batch, hand out what became durable.

Standard library only.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence

from harness.domain.calls.call_lifecycle import CallError
from harness.eventlog import framing
from harness.eventlog.reader import Place
from harness.eventlog.recovery import Recovery
from harness.eventlog.tail import Tail
from harness.eventlog.writer import LogWriter, NoSpace, Poisoned
from harness.keeper.log import checkpoint
from harness.keeper.log.checkpoint import LogCheckpoint
from harness.keeper.log.state import KeeperState, concerns, kind_of
from harness.keeper.loop.errors import OpError
from harness.protocol.paths import SessionFolder

Record = tuple[str, dict[str, object]]
"""Its type and its data."""

RECENT_BYTES = 128 * 1024
_ENVELOPE = 512


class Appender:
    """One open log.

    ``memory`` is the fold of everything staged; a failed commit puts back the fold of what is in the log.
    """

    def __init__(self, folder: SessionFolder, sid: str, *, checkpoint_bytes: int = checkpoint.EVERY_BYTES) -> None:
        """Open or recover the log and fold it, from its newest checkpoint on; a new one is made about every so many
        bytes. Raises DamagedLog, NewerLog, LogBusy, NoSpace, CallError, OSError."""
        self._folder = folder
        known = checkpoint.load(folder.root, folder.log)
        self.unproved: Place | None = known.place if known is not None else None
        """The record that the log was opened behind: all before it is yet to be verified. None: all was."""
        self.memory = known.state if known is not None else KeeperState()
        self._recent: deque[tuple[int, bytes]] = deque()
        self._recent_bytes = 0
        self._checkpoint_bytes = checkpoint_bytes
        self._since_checkpoint = 0
        self.staged = 0
        self._log = LogWriter.open(folder.log, sid, take=self._read, after=self.unproved)
        self._committed = self.memory

    def _read(self, line: bytes) -> None:
        self._remember(framing.seq_of(line), line[:-1])
        if concerns(kind := kind_of(line)):
            self.memory.take(kind, json.loads(line)["data"])

    @property
    def recovery(self) -> Recovery | None:
        return self._log.recovery

    @property
    def taken_leave(self) -> bool:
        """True when the keeper before this one closed the log after its last record."""
        return self._log.taken_leave

    @property
    def head(self) -> int:
        """``seq`` of the last staged record; equal to `written` between commits."""
        return self._log.head

    @property
    def written(self) -> int:
        return self._log.written

    @property
    def hash(self) -> str:
        return self._log.hash

    @property
    def poisoned(self) -> str:
        return self._log.poisoned

    def stage(self, records: Sequence[Record], *, actor: str, gen: int) -> tuple[int, int]:
        """Put records into the batch, all or none; (first, last) ``seq``. Raises OpError."""
        if self._log.poisoned:
            raise OpError("poisoned", self._log.poisoned, "check the disk, then restart the session's keeper")
        memory = self._rehearse(records)
        try:
            if len(records) > 1:
                for kind, data in records:
                    if len(framing.encode_data(data)) > framing.MAX_LINE - _ENVELOPE:
                        raise ValueError(
                            f"record {kind} is over the limit of {framing.MAX_LINE} bytes; put the payload into a blob"
                        )
            first = self._log.head + 1
            for kind, data in records:
                self._log.append(kind, data, actor=actor, gen=gen)
        except (ValueError, RecursionError) as exc:
            raise OpError("bad_record", str(exc)) from exc
        self.memory = memory
        self.staged += len(records)
        return first, self._log.head

    def _rehearse(self, records: Sequence[Record]) -> KeeperState:
        if not any(concerns(kind) for kind, _ in records):
            return self.memory
        memory = self.memory.copy()
        for kind, data in records:
            if not concerns(kind):
                continue
            try:
                memory.calls.check(kind, data)
                memory.take(kind, data)
            except CallError as exc:
                raise OpError("refused", str(exc)) from exc
            except (KeyError, TypeError, ValueError, AttributeError) as exc:
                raise OpError("bad_record", f"{kind}: a field is missing or of the wrong kind: {exc}") from exc
        return memory

    def commit(self, sync: bool) -> list[tuple[int, bytes]]:
        """Write the batch; the (seq, line without line feed) that reached the log.

        Raises NoSpace, Poisoned (nothing of it is in force).
        """
        try:
            lines = self._log.commit(sync, note=False)
        except (NoSpace, Poisoned):
            self.memory = self._committed
            raise
        finally:
            self.staged = 0
        self._committed = self.memory
        last = self._log.written
        fresh = [(seq, line[:-1]) for seq, line in enumerate(lines, last - len(lines) + 1)]
        for seq, line in fresh:
            self._remember(seq, line)
        if sync and fresh and self._since_checkpoint >= self._checkpoint_bytes:
            self._keep_checkpoint(*fresh[-1])
        return fresh

    def settle(self) -> None:
        """What is due after a commit and nobody waits for: how far the log is durable is noted beside it."""
        self._log.note()

    def _keep_checkpoint(self, seq: int, line: bytes) -> None:
        """Spare the next keeper what was read or written up to this record, the newest; one that ended its segment is
        left to the next.
        """
        log = self._log
        if seq >= log.first:
            at = Place(log.segment, log.first, log.size - len(line) - 1, log.size, seq, framing.hash_of(line))
            checkpoint.store(self._folder.root, LogCheckpoint(at, self._committed))
            self._since_checkpoint = 0

    def write(self, kind: str, data: dict[str, object]) -> list[tuple[int, bytes]]:
        """One record of the keeper's own, durable on return; nothing else may be staged.

        Raises OpError, NoSpace, Poisoned.
        """
        self.stage([(kind, data)], actor="keeper", gen=0)
        return self.commit(True)

    def recent(self, after: int) -> list[tuple[int, bytes]] | None:
        """Lines with ``seq > after`` when all of them are still in memory, else None."""
        if after >= self.written:
            return []
        if not self._recent or self._recent[0][0] > after + 1:
            return None
        return [item for item in self._recent if item[0] > after]

    def tail(self, after: int) -> Tail:
        """A reader of the log's history from after that record on."""
        return Tail(self._folder.log, after)

    def close(self) -> None:
        """Flush and let go of the log. Raises Poisoned when the flush fails."""
        self._log.close()

    def _remember(self, seq: int, line: bytes) -> None:
        self._recent.append((seq, line))
        self._recent_bytes += len(line)
        self._since_checkpoint += len(line)
        while self._recent_bytes > RECENT_BYTES:
            self._recent_bytes -= len(self._recent.popleft()[1])

"""What an agent remembers: taken up, it is as if the whole log had been read, and whatever does not fit is not used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.agents.accounts import Accounts
from harness.agents.agent_context import AgentContext
from harness.agents.agent_spec import Spec
from harness.agents.journal import Journal
from harness.brain import builtin
from harness.eventlog.reader import DamagedLog
from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.projections.state.session_state import SessionState
from harness.protocol.config.credential import Credential
from tests.unit.test_context import Sizes, changes, long_work


class Noting(AgentContext):
    """One that says what was last to be remembered."""

    known = b""

    def remember(self, form: str, known: bytes) -> None:
        self.known = known
        super().remember(form, known)


class Reader(builtin.BuiltIn):
    """The built-in agent on a log that nobody else has; ``fed`` counts the records that it was told."""

    def __init__(self, folder: Path, *, live: bool = False) -> None:
        self.journal = Journal(folder)
        self.agent_context = Noting(self.journal, Accounts(folder / "none", "s", 1, ""))
        spec = Spec("s", str(folder), "", "", 1, "", Credential("http://127.0.0.1:1", "k"), "claude-sonnet-4-6")
        super().__init__(spec, self.agent_context, builtin.ssl.create_default_context())
        self.fed = 0
        self.agent_context.serves(self)
        self.agent_context.live = live
        self.journal.load(self.memory(), self.recall)

    def feed(self, record: t.Record) -> None:
        self.fed += 1
        super().feed(record)

    def knows(self, reply: t.ModelMessage) -> tuple[dict[str, object], SessionState]:
        """Everything that decides what it does next and what it would send, once one more reply came."""
        self.agent_context.live = True
        self.feed(t.Record(self.agent_context.head + builtin.REMEMBER_EVERY, "2026-11-01T10:00:00Z", "brain", 1, reply))
        return json.loads(self.agent_context.known), self.journal.state


@pytest.fixture(scope="module")
def records() -> list[t.Record]:
    w, _ = long_work(110, Sizes(working=30_000))
    assert changes(w)
    return w.records


def append(log: LogWriter, records: list[t.Record]) -> None:
    for record in records:
        wire = t.to_wire(record.body)
        log.append(wire["type"], wire["data"], actor="x")
    log.commit(sync=False)


def remembering(folder: Path, records: list[t.Record], upto: int, segment_bytes: int) -> Path:
    """A log of all records, and what a brain remembered that saw ``upto`` of them come."""
    (folder / "log").mkdir()
    log = LogWriter.open(folder / "log", "memorytest1", segment_bytes=segment_bytes)
    append(log, records[:upto])
    Reader(folder, live=True)
    append(log, records[upto:])
    log.close()
    return folder


@pytest.mark.parametrize("segment_bytes", [1 << 26, 40_000])
def test_going_on_from_what_was_remembered_is_going_on(
    tmp_path: Path, records: list[t.Record], segment_bytes: int
) -> None:
    folder = remembering(tmp_path, records, len(records) - 40, segment_bytes)
    kept = sorted((folder / "memory").iterdir())
    assert kept
    quick = Reader(folder)
    assert quick.fed < 40 + builtin.REMEMBER_EVERY + 20 < len(records)
    for file in kept:
        file.unlink()
    whole = Reader(folder)
    assert whole.fed == len(records)
    reply = next(r.body for r in reversed(records) if isinstance(r.body, t.ModelMessage))
    assert quick.knows(reply) == whole.knows(reply)


def test_what_does_not_fit_is_not_used(tmp_path: Path, records: list[t.Record]) -> None:
    folder = remembering(tmp_path, records, len(records), 1 << 26)
    for file in (folder / "memory").iterdir():
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    assert Reader(folder).fed == len(records)


def test_damage_behind_what_was_remembered_is_named(tmp_path: Path, records: list[t.Record]) -> None:
    folder = remembering(tmp_path, records, len(records) - 40, 1 << 26)
    file = folder / "log" / "000001.jsonl"
    data = bytearray(file.read_bytes())
    data[-3000] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedLog):
        Reader(folder)

"""A keeper that begins at a checkpoint knows what one knows that read the whole log, and never trusts another one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.eventlog import framing, head_marker, reader
from harness.eventlog.writer import DamagedLog, LogWriter
from harness.keeper.log import checkpoint
from harness.keeper.log.appender import Appender
from harness.keeper.log.checkpoint import LogCheckpoint
from harness.keeper.loop.errors import OpError
from harness.protocol.paths import SessionFolder

SID = "abcdefghij"
EVERY = 600

STEPS: dict[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
    "note": lambda n: ("harness.note", {"level": "info", "text": "x" * (n * 7 % 90)}),
    "propose": lambda n: ("tool.proposed", {"call_id": f"c{n}.0", "tool": "exec"}),
    "judge": lambda n: ("tool.judged", {"call_id": f"c{n - 1}.0", "verdict": "ask", "action_hash": "h", "action": {}}),
    "ask": lambda n: ("approval.requested", {"approval_id": f"a{n}", "call_id": f"c{n - 2}.0"}),
    "decide": lambda n: (
        "approval.decided",
        {"approval_id": f"a{n - 1}", "decision_id": f"d{n}", "decision": "allow", "action_hash": "h"},
    ),
    "end": lambda n: ("tool.ended", {"call_id": f"c{n - 4}.0", "status": "ok"}),
    "lease": lambda n: ("lease.granted", {"gen": n, "epoch": 1, "secret": "s"}),
    "boot": lambda n: ("keeper.started", {"boot": f"b{n}", "pid": 1, "start": 1}),
    "undo": lambda n: ("undo.started", {"undo_id": f"u{n}"}),
}


def home(root: Path) -> SessionFolder:
    (root / "s").mkdir(exist_ok=True)
    return SessionFolder(root / "s", root / "k.sock")


def filled(folder: SessionFolder, steps: list[str], every: int = EVERY) -> None:
    """A log of these records, each durable; what the rules refuse is left out."""
    journal = Appender(folder, SID, checkpoint_bytes=every)
    for number, step in enumerate(steps, 1):
        try:
            journal.write(*STEPS[step](number))
        except OpError:
            continue
    journal.close()


def whole(folder: SessionFolder, elsewhere: Path) -> Appender:
    """The same log without its checkpoint."""
    shutil.rmtree(elsewhere, ignore_errors=True)
    shutil.copytree(folder.root, elsewhere)
    checkpoint.drop(elsewhere)
    return Appender(SessionFolder(elsewhere, elsewhere / "k.sock"), SID)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=60))
def test_from_a_checkpoint_as_from_the_beginning(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    root = tmp_path_factory.mktemp("log")
    folder = home(root)
    filled(folder, steps)
    short = Appender(folder, SID)
    full = whole(folder, root / "copy")
    assert asdict(short.memory) == asdict(full.memory)
    assert (short.head, short.hash) == (full.head, full.hash)
    assert (short.unproved is None) == (not (folder.root / checkpoint.FILE).exists())
    assert short.write(*STEPS["note"](1))[0][0] == full.write(*STEPS["note"](1))[0][0]
    for journal in (short, full):
        journal.close()
    assert reader.verify(folder.log).ok


def long(root: Path) -> tuple[SessionFolder, LogCheckpoint]:
    folder = home(root)
    filled(folder, ["note", "propose", "lease"] * 40)
    found = checkpoint.load(folder.root, folder.log)
    assert found is not None
    return folder, found


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_what_is_read_at_the_start_is_what_came_after(tmp_path: Path) -> None:
    folder, found = long(tmp_path)
    assert 0 < found.place.seq < 119
    flip(folder.log / "000001.jsonl", found.place.begin // 2)
    journal = Appender(folder, SID)
    assert journal.unproved == found.place
    journal.close()
    flip(folder.log / "000001.jsonl", found.place.end + 30)
    with pytest.raises(DamagedLog) as caught:
        Appender(folder, SID)
    assert (caught.value.offset, caught.value.seq) == (found.place.end, found.place.seq + 1)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda root, log: flip(root / checkpoint.FILE, 100),
        lambda root, log: (root / checkpoint.FILE).write_bytes(b""),
        lambda root, log: (root / checkpoint.FILE).unlink(),
        lambda root, log: (log / "000001.jsonl").write_bytes((log / "000001.jsonl").read_bytes()[:2000]),
        lambda root, log: (log / "000001.jsonl").unlink(),
    ],
    ids=["a bit of it", "empty", "gone", "log cut short", "log gone"],
)
def test_a_checkpoint_that_does_not_fit_is_ignored(tmp_path: Path, spoil: Callable[[Path, Path], None]) -> None:
    folder, _ = long(tmp_path)
    spoil(folder.root, folder.log)
    assert checkpoint.load(folder.root, folder.log) is None


def test_of_another_log_or_other_code_it_is_ignored(tmp_path: Path) -> None:
    folder, found = long(tmp_path)
    shutil.rmtree(folder.log)
    filled(folder, ["note"] * 100, every=1 << 30)
    assert checkpoint.load(folder.root, folder.log) is None
    data = checkpoint.encode(found).replace(checkpoint.FORM.encode(), b"0" * len(checkpoint.FORM))
    assert checkpoint.decode(data) is None


def test_an_acknowledged_record_that_is_not_the_checkpoints_makes_it_unfit(tmp_path: Path) -> None:
    folder, found = long(tmp_path)
    line = head_marker.encode(head_marker.Head(found.place.seq, bytes(16), closed=False))
    (folder.log / head_marker.FILE).write_bytes(line)
    assert checkpoint.load(folder.root, folder.log) is None
    with pytest.raises(DamagedLog):
        Appender(folder, SID)


def sealed(root: Path, records: int = 200) -> tuple[Path, list[reader.Place]]:
    """A log of several segments, and the place of every record."""
    log = LogWriter.open(root / "log", SID, segment_bytes=3000)
    places = []
    for number in range(records):
        begin = log.size
        segment = log.segment
        first = log.first
        seq = log.append(*STEPS["note"](number), actor="test")
        chain = log.hash
        log.commit(sync=False)
        line = next(reader.read(root / "log", seq - 1))
        places.append(reader.Place(segment, first, begin, begin + len(line) + 1, seq, bytes.fromhex(chain)))
    log.close()
    return root / "log", places


def test_opening_behind_any_record_hands_out_the_rest(tmp_path: Path) -> None:
    folder, places = sealed(tmp_path)
    assert len(reader.segments(folder)) > 4
    for place in places[::13]:
        taken: list[bytes] = []
        assert reader.stands(folder, place)
        assert not reader.stands(folder, replace(place, begin=place.begin + 1))
        assert reader.verify_before(folder, place) is None
        LogWriter.open(folder, SID, segment_bytes=3000, take=taken.append, after=place).close()
        assert [framing.seq_of(line) for line in taken] == list(range(place.seq + 1, len(places)))


def test_damage_before_a_record_is_found_where_verify_finds_it(tmp_path: Path) -> None:
    folder, places = sealed(tmp_path)
    for place in places[5::29]:
        copy = tmp_path / f"log{place.seq}"
        shutil.copytree(folder, copy)
        flip(copy / reader.segment_name(place.segment), place.begin + 20)
        assert reader.verify_before(copy, places[-1]) == reader.verify(copy).problem
        assert reader.verify_before(copy, places[place.seq - 1]) is None
    (folder / "000002.jsonl").unlink()
    found = reader.verify_before(folder, places[-1])
    assert found is not None
    assert found.file.endswith("000002.jsonl")

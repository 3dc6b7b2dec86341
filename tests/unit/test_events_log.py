"""The log as its users meet it: what was appended is read back, whatever was cut, sealed, skipped or followed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.eventlog import blobs, head_marker
from harness.eventlog.framing import (
    GENESIS,
    MAX_LINE,
    BadLine,
    NewerLog,
    check_line,
    encode_data,
    encode_event,
    encode_header,
    hash_of,
    seq_of,
)
from harness.eventlog.index import PAGE, OffsetIndex
from harness.eventlog.reader import read, segment_name, verify
from harness.eventlog.tail import Tail
from harness.eventlog.writer import DamagedLog, LogBusy, LogWriter, Poisoned
from tests.logs import left_by_a_kill

SID = "abcdefghij"


def fill(folder: Path, count: int, *, segment_bytes: int = 1 << 26, size: int = 40) -> None:
    log = LogWriter.open(folder, SID, segment_bytes=segment_bytes)
    for i in range(count):
        log.append("harness.note", {"level": "info", "text": "x" * (size + i % 7)}, actor="test")
        if i % 5 == 4:
            log.commit(sync=False)
    log.commit(sync=True)
    log.close()


def seqs(folder: Path, after: int = -1) -> list[int]:
    return [seq_of(line) for line in read(folder, after)]


# -- framing ---------------------------------------------------------------------------------------


def test_a_line_is_json_with_the_envelope_of_the_contract() -> None:
    line, chain = encode_event(
        7, "2026-01-02T03:04:05.678Z", "tool.ended", "keeper", 3, encode_data({"a": "ä\n\u2028"}), GENESIS
    )
    value = json.loads(line)
    assert list(value) == ["v", "seq", "ts", "type", "actor", "gen", "data", "_c", "_h"]
    assert (value["seq"], value["gen"], value["data"]) == (7, 3, {"a": "ä\n\u2028"})
    assert line.count(b"\n") == 1
    assert value["_h"] == chain.hex() == hash_of(line).hex()
    assert check_line(line, GENESIS) == chain


@pytest.mark.parametrize("data", [{"x": float("nan")}, {"x": object()}, {"x": {1, 2}}])
def test_data_that_is_not_json_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        encode_data(data)


def test_lone_surrogates_become_question_marks() -> None:
    assert encode_data({"x": "a\ud800b"}) == b'{"x":"a?b"}'


def test_check_line_says_what_is_wrong() -> None:
    line, chain = encode_event(0, "t", "x", "a", 0, b"{}", GENESIS)
    with pytest.raises(BadLine, match="torn"):
        check_line(line[:-1], GENESIS)
    with pytest.raises(BadLine, match="checksum"):
        check_line(line.replace(b'"x"', b'"y"'), GENESIS)
    with pytest.raises(BadLine, match="does not follow"):
        check_line(line, chain)


# -- writing and reading ---------------------------------------------------------------------------


def test_append_commit_read(tmp_path: Path) -> None:
    log = LogWriter.open(tmp_path / "log", SID)
    assert (log.head, log.segment, log.recovery) == (-1, 1, None)
    assert [log.append("a.b", {"i": i}, actor="brain", gen=2) for i in range(3)] == [0, 1, 2]
    assert seqs(tmp_path / "log") == [], "nothing is written before commit"
    assert (log.head, log.written) == (2, -1)
    log.commit(sync=True)
    lines = list(read(tmp_path / "log"))
    assert [json.loads(line)["data"] for line in lines] == [{"i": 0}, {"i": 1}, {"i": 2}]
    assert hash_of(lines[-1]).hex() == log.hash
    report = verify(tmp_path / "log")
    assert (report.ok, report.records, report.head, report.hash) == (True, 3, 2, log.hash)
    log.close()
    with pytest.raises(Poisoned):
        log.append("a.b", {}, actor="x")


def test_closing_drops_what_was_not_committed_and_reopening_continues(tmp_path: Path) -> None:
    fill(tmp_path, 10)
    log = LogWriter.open(tmp_path, SID)
    log.append("x", {}, actor="t")
    log.close()
    log = LogWriter.open(tmp_path, SID)
    assert (log.head, log.recovery) == (9, None)
    assert log.append("x", {}, actor="t") == 10
    log.commit(sync=False)
    log.close()
    assert seqs(tmp_path) == list(range(11))


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    log = LogWriter.open(tmp_path, SID)
    with pytest.raises(LogBusy):
        LogWriter.open(tmp_path, SID)
    log.close()
    LogWriter.open(tmp_path, SID).close()


def test_a_record_over_the_limit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    log = LogWriter.open(tmp_path, SID)
    log.append("x", {"n": 1}, actor="t")
    with pytest.raises(ValueError, match="blob"):
        log.append("x", {"text": "y" * MAX_LINE}, actor="t")
    assert log.append("x", {"n": 2}, actor="t") == 1
    log.commit(sync=False)
    assert verify(tmp_path).records == 2
    log.close()


def test_a_log_of_another_session_is_not_continued(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    with pytest.raises(DamagedLog, match="belongs to session"):
        LogWriter.open(tmp_path, "ledger")


def test_a_log_of_a_newer_version_is_named_as_such(tmp_path: Path) -> None:
    header, _ = encode_header(1, SID, GENESIS, 0)
    body = header[: header.rindex(b',"_c"')].replace(b'"format":1', b'"format":2')
    from zlib import crc32

    from harness.eventlog.framing import sha256

    (tmp_path / segment_name(1)).write_bytes(
        body + b',"_c":"%08x","_h":"%b"}\n' % (crc32(body), sha256(GENESIS + body).hexdigest()[:32].encode())
    )
    for look in (lambda: verify(tmp_path), lambda: list(read(tmp_path)), lambda: LogWriter.open(tmp_path, SID)):
        with pytest.raises(NewerLog, match="format 2"):
            look()


# -- segments --------------------------------------------------------------------------------------


def test_segments_are_sealed_chained_and_read_as_one(tmp_path: Path) -> None:
    fill(tmp_path, 200, segment_bytes=4000)
    files = sorted(tmp_path.glob("*.jsonl"))
    assert len(files) > 5
    for file in files[:-1]:
        assert json.loads(file.read_bytes().splitlines()[-1])["footer"] is True
    assert seqs(tmp_path) == list(range(200))
    for after in (-1, 0, 57, 198, 199, 500):
        assert seqs(tmp_path, after) == list(range(after + 1, 200))
    report = verify(tmp_path)
    assert (report.ok, report.records, report.segments) == (True, 200, len(files))
    log = LogWriter.open(tmp_path, SID, segment_bytes=4000)
    assert (log.head, log.segment, log.recovery) == (199, len(files), None)
    log.close()


def test_a_crash_between_footer_and_next_segment_is_finished_on_opening(tmp_path: Path) -> None:
    fill(tmp_path, 60, segment_bytes=4000)
    last = max(tmp_path.glob("*.jsonl"))
    assert len(last.read_bytes().splitlines()) < 40
    last.unlink()
    (tmp_path / (last.name + ".tmp")).write_bytes(b"half a header")
    before = verify(tmp_path)
    assert before.ok
    log = LogWriter.open(tmp_path, SID, segment_bytes=4000)
    assert log.append("x", {}, actor="t") == before.head + 1
    log.commit(sync=True)
    log.close()
    assert verify(tmp_path).records == before.records + 1
    assert not list(tmp_path.glob("*.tmp"))


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    fill(tmp_path, 200, segment_bytes=4000)
    (tmp_path / segment_name(2)).unlink()
    report = verify(tmp_path)
    assert not report.ok
    assert report.problem is not None
    assert report.problem.file.endswith("000002.jsonl")
    with pytest.raises(DamagedLog, match="missing"):
        LogWriter.open(tmp_path, SID)


def test_an_unsealed_segment_in_the_middle_is_damage(tmp_path: Path) -> None:
    fill(tmp_path, 200, segment_bytes=4000)
    first = tmp_path / segment_name(1)
    data = first.read_bytes()
    first.write_bytes(data[: data.rindex(b"\n", 0, -1) + 1])
    report = verify(tmp_path)
    assert report.problem is not None
    assert "not sealed" in report.problem.why
    with pytest.raises(DamagedLog, match="not sealed"):
        list(read(tmp_path))


# -- following -------------------------------------------------------------------------------------


def drain(tail: Tail, max_bytes: int = 65536) -> list[int]:
    out: list[int] = []
    while True:
        got = tail.poll(max_bytes)
        out += [seq_of(line) for line in got]
        if not got and not tail.waiting:
            return out


def test_tail_follows_across_segments_in_bounded_steps(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "log", after=2)
    assert tail.poll() == []
    log = LogWriter.open(tmp_path / "log", SID, segment_bytes=3000)
    seen: list[int] = []
    for i in range(150):
        log.append("x", {"text": "y" * (i * 13 % 900)}, actor="t")
        log.commit(sync=False)
        if i % 3 == 0:
            seen += drain(tail, 512)
    seen += drain(tail, 512)
    assert seen == list(range(3, 150))
    assert tail.head == 149
    log.close()
    tail.close()


def test_tail_goes_back_when_the_writer_took_lines_back(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    tail = Tail(tmp_path)
    assert drain(tail) == list(range(20))
    file = tmp_path / segment_name(1)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-3]))
    # as after a power cut: neither the last lines nor what was noted of them reached the disk
    (tmp_path / head_marker.FILE).unlink()
    log = LogWriter.open(tmp_path, SID)
    for _ in range(10):
        log.append("other", {"longer": "than before " * 10}, actor="t")
    log.commit(sync=False)
    assert drain(tail) == list(range(17, 27))
    log.close()


def test_tail_names_damage(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    tail = Tail(tmp_path)
    file = tmp_path / segment_name(1)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedLog):
        drain(tail)


# -- paging ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("segment_bytes", [3000, 20_000, 1 << 26])
def test_every_line_is_found_by_its_seq(tmp_path: Path, segment_bytes: int) -> None:
    log = LogWriter.open(tmp_path, SID, segment_bytes=segment_bytes)
    index = OffsetIndex(tmp_path)
    for i in range(700):
        log.append("x", {"text": "y" * (9000 if i % 97 == 0 else i % 300)}, actor="t")
        if i % 9 == 0:
            log.commit(sync=False)
            assert index.extend() == log.head - (i - 9 if i else -1)
            assert seq_of(index.line(i)) == i
    log.commit(sync=False)
    index.extend()
    assert len(index) == 700
    fresh = OffsetIndex(tmp_path)
    for i in [*range(0, 700, 37), 699, 0, PAGE, PAGE - 1]:
        assert seq_of(fresh.line(i)) == seq_of(index.line(i)) == i
    assert [seq_of(line) for line in fresh.lines(-5, 900)] == list(range(700))
    assert [seq_of(line) for line in fresh.lines(63, 66)] == [63, 64, 65]
    walked = []
    at = 0
    while lines := fresh.scan(at, 5000)[0]:
        walked += lines
        at = seq_of(lines[-1]) + 1
    assert [seq_of(line) for line in walked] == list(range(700))
    with pytest.raises(IndexError):
        fresh.line(700)
    log.close()
    fresh.close()
    index.close()


def test_index_of_nothing_and_of_a_torn_tail(tmp_path: Path) -> None:
    index = OffsetIndex(tmp_path / "none")
    assert (len(index), index.extend(), index.lines(0, 9)) == (0, 0, [])
    fill(tmp_path / "none", 5)
    assert index.extend() == 5
    file = tmp_path / "none" / segment_name(1)
    data = file.read_bytes()
    file.write_bytes(data + b'{"v":1,"seq":5,"ts":"half')
    assert index.extend() == 0
    file.write_bytes(data[: data.rindex(b'{"v":1,"seq":3')])
    assert index.extend() == -2
    assert seq_of(index.line(2)) == 2


def test_index_steps_over_damage(tmp_path: Path) -> None:
    fill(tmp_path, 300)
    file = tmp_path / segment_name(1)
    data = file.read_bytes()
    at = data.index(b'{"v":1,"seq":150,')
    file.write_bytes(data[:at] + b"#" * 20 + data[at + 20 :])
    index = OffsetIndex(tmp_path)
    assert len(index) == 300
    assert seq_of(index.line(150)) == -1
    assert seq_of(index.line(149)) == 149
    assert seq_of(index.line(151)) == 151


# -- blobs -----------------------------------------------------------------------------------------


def test_blobs_are_stored_once_checked_and_repaired(tmp_path: Path) -> None:
    folder = tmp_path / "session" / "blobs"
    sha, size = blobs.put(folder, b"payload")
    assert (size, blobs.get(folder, sha)) == (7, b"payload")
    assert blobs.put(folder, b"payload") == (sha, size)
    assert [p.name for p in folder.rglob("*") if p.is_file()] == [sha]
    blobs.path(folder, sha).write_bytes(b"paYload")
    with pytest.raises(blobs.DamagedBlob):
        blobs.get(folder, sha)
    blobs.put(folder, b"payload")
    assert blobs.get(folder, sha) == b"payload"
    with pytest.raises(blobs.MissingBlob):
        blobs.get(folder, "0" * 64)
    with pytest.raises(ValueError):
        blobs.get(folder, "../../etc/passwd")


# -- properties ------------------------------------------------------------------------------------

_STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 600)),
    st.tuples(st.just("commit"), st.booleans()),
    st.tuples(st.just("commit and note later"), st.booleans()),
    st.tuples(st.just("note"), st.just(0)),
    st.tuples(st.just("crash"), st.integers(0, 400)),
)


def known_of(folder: Path) -> int:
    """The last record that is known to have been durable; -1 if none."""
    known = head_marker.load(folder)
    return known.seq if known is not None else -1


@settings(max_examples=80, deadline=None)
@example(steps=[("append", 0), ("commit and note later", 1), ("commit", 1)], segment_bytes=600)
@given(steps=st.lists(_STEP, max_size=40), segment_bytes=st.sampled_from([600, 2000, 1 << 26]))
def test_whatever_happens_the_log_is_a_prefix_of_what_was_appended(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], segment_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = LogWriter.open(folder, SID, segment_bytes=segment_bytes)
    told: list[int] = []
    pending: list[int] = []
    unique = 0
    durable = -1
    for what, value in steps:
        if what == "append":
            unique += 1
            assert log.append("x", {"n": unique, "text": "y" * value}, actor="t") == len(told) + len(pending)
            pending.append(unique)
        elif what.startswith("commit"):
            segment = log.segment
            late = what != "commit"
            lines = log.commit(sync=bool(value), note=not late)
            assert [json.loads(line)["data"]["n"] for line in lines] == pending
            told += pending
            pending = []
            if value or log.segment != segment:
                durable = len(told) - 1
            if value and told and not late:
                assert known_of(folder) == len(told) - 1
        elif what == "note":
            log.note()
            assert known_of(folder) == durable
        else:
            left_by_a_kill(log, folder)
            pending = []
            last = max(folder.glob("*.jsonl"))
            size = last.stat().st_size
            with last.open("r+b") as file:
                file.truncate(max(0, size - value))
            if known_of(folder) >= sum(1 for _ in read(folder)):
                assert value > 0
                assert not verify(folder).ok
                with pytest.raises(DamagedLog, match="acknowledged"):
                    LogWriter.open(folder, SID, segment_bytes=segment_bytes)
                return
            log = LogWriter.open(folder, SID, segment_bytes=segment_bytes)
            kept = [json.loads(line)["data"]["n"] for line in read(folder)]
            assert kept == told[: len(kept)]
            assert value > 0 or kept == told
            told = kept
            durable = known_of(folder)
            assert log.head == len(told) - 1
        assert known_of(folder) <= durable
    log.close()
    assert [json.loads(line)["data"]["n"] for line in read(folder)] == told
    report = verify(folder)
    assert report.ok
    assert report.torn is None
    index = OffsetIndex(folder)
    assert [json.loads(line)["data"]["n"] for line in index.lines(0, len(index))] == told
    index.close()


def test_the_keepers_side_loads_the_standard_library_only() -> None:
    code = (
        "import sys, harness.eventlog.writer, harness.eventlog.blobs, harness.eventlog.reader, harness.eventlog.index,"
        " harness.domain.calls.call_lifecycle, harness.domain.actions.action;print([m for m in sys.modules if"
        " m.split('.')[0] in ('msgspec',"
        " 'asyncio', 'textual', 'rich', 'harness') and not m.startswith('harness')])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )

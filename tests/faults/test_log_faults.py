"""What the disk can do to a log: cut it anywhere, flip any byte, run full, fail to sync. Real files, real errors."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.eventlog import head_marker
from harness.eventlog.framing import TRAILER, seq_of
from harness.eventlog.index import OffsetIndex
from harness.eventlog.reader import read, segment_name, verify
from harness.eventlog.tail import Tail
from harness.eventlog.writer import DamagedLog, LogWriter

SID = "abcdefghij"
ROOT = Path(__file__).parents[2]


def build(folder: Path, count: int, segment_bytes: int = 1 << 26) -> bytes:
    log = LogWriter.open(folder, SID, segment_bytes=segment_bytes)
    for i in range(count):
        log.append(
            "tool.ended", {"call_id": f"c{i}.0", "status": "ok", "preview": "x" * (i * 7 % 60)}, actor="keeper", gen=1
        )
        if i % 10 == 2:
            log.commit(sync=False)
    log.commit(sync=False)
    log.close()
    return (folder / segment_name(log.segment)).read_bytes()


@pytest.fixture
def quick() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of syncs of a disk are not what is looked at."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder)


def test_torn_tail_at_every_cut_of_the_last_4_kib(quick: Path) -> None:
    data = build(quick / "whole", 25)
    folder = quick / "cut"
    folder.mkdir()
    file = folder / segment_name(1)
    for cut in range(max(0, len(data) - 4096), len(data) + 1):
        for old in folder.iterdir():
            old.unlink()
        file.write_bytes(data[:cut])
        complete = max(0, data.count(b"\n", 0, cut) - 1)
        good = data.rfind(b"\n", 0, cut) + 1
        assert len(list(read(folder))) == complete
        log = LogWriter.open(folder, SID)
        assert log.head == complete - 1, f"cut at {cut}"
        if cut == good:
            assert log.recovery is None
        else:
            assert log.recovery is not None
            assert (log.recovery.at, log.recovery.bytes) == (good, cut - good)
            assert (folder / log.recovery.file).read_bytes() == data[good:cut]
        assert log.append("x", {}, actor="t") == complete
        log.commit(sync=False)
        log.close()
        report = verify(folder)
        assert (report.ok, report.torn, report.records) == (True, None, complete + 1)


def test_a_second_torn_tail_at_the_same_place_keeps_both(tmp_path: Path) -> None:
    data = build(tmp_path, 5)
    for tail in (b'{"v":1,"first', b'{"v":1,"second'):
        (tmp_path / segment_name(1)).write_bytes(data + tail)
        log = LogWriter.open(tmp_path, SID)
        assert log.recovery is not None
        assert (tmp_path / log.recovery.file).read_bytes() == tail
        log.close()


@pytest.mark.parametrize("segment_bytes", [1 << 26, 6000])
def test_every_flipped_byte_is_located(tmp_path: Path, segment_bytes: int) -> None:
    """200 records, a sample of all bytes, each with another bit: found, with the right seq, and never repaired."""
    folder = tmp_path / "log"
    build(folder, 200, segment_bytes)
    files = sorted(folder.glob("*.jsonl"))
    rng = random.Random(segment_bytes)
    for file in files:
        data = file.read_bytes()
        for at in sorted(rng.sample(range(len(data)), len(data) // (40 * len(files)) + 3)):
            bad = bytearray(data)
            bad[at] ^= 1 << rng.randrange(8)
            file.write_bytes(bad)
            start = data.rfind(b"\n", 0, at) + 1
            if (seq := seq_of(data[start:])) < 0:
                # In a header the next record cannot be trusted; in a footer all records of the segment can.
                head = start == 0
                seq = (
                    seq_of(data[data.index(b"\n") + 1 :])
                    if head
                    else seq_of(data[data.rfind(b"\n", 0, start - 1) + 1 :]) + 1
                )
            report = verify(folder)
            assert not report.ok, f"{file.name} byte {at}"
            assert report.problem is not None
            assert (report.problem.file, report.problem.seq) == (str(file), seq), f"{file.name} byte {at}"
            got = []
            with pytest.raises(DamagedLog):
                got.extend(seq_of(line) for line in read(folder))
            assert got in ([], list(range(seq)))
            if file == files[-1]:
                with pytest.raises(DamagedLog) as caught:
                    LogWriter.open(folder, SID, segment_bytes=segment_bytes)
                assert caught.value.seq == seq
                assert file.read_bytes() == bytes(bad), "damage is never repaired"
        file.write_bytes(data)
    assert verify(folder).ok


def test_a_segment_that_cannot_be_read_is_reported_like_damage(tmp_path: Path) -> None:
    """One log that a disk refuses must not keep `verify` from looking at the others."""
    folder = tmp_path / "log"
    build(folder, 200, 6000)
    second = folder / segment_name(2)
    second.unlink()
    second.mkdir()
    report = verify(folder)
    assert report.problem is not None
    assert report.problem.file == str(second)
    assert "is a folder, not a file" in report.problem.why
    assert 0 < report.records < 200, "what stands before it is counted"


def test_readers_survive_any_flip_and_any_cut(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    data = build(folder, 150)
    file = folder / segment_name(1)
    rng = random.Random(5)
    for _ in range(60):
        bad = bytearray(data[: rng.randrange(len(data))])
        for _ in range(rng.randrange(4)):
            if bad:
                bad[rng.randrange(len(bad))] = rng.randrange(256)
        file.write_bytes(bad)
        index = OffsetIndex(folder)
        for line, seq in ((index.line(i), i) for i in range(len(index))):
            assert seq_of(line) in (-1, seq) or line not in data, (
                "no good record is ever handed out under another number"
            )
        index.close()
        tail = Tail(folder)
        with contextlib.suppress(DamagedLog):
            while tail.poll(4096) or tail.waiting:
                pass
        assert -1 <= tail.head < 150
        tail.close()


def test_replaced_removed_and_swapped_records_are_found(tmp_path: Path) -> None:
    lines = build(tmp_path / "log", 20).splitlines(keepends=True)
    file = tmp_path / "log" / segment_name(1)
    forged = lines[5].replace(b'"status":"ok"', b'"status":"no"')
    for changed, seq in (
        (lines[:6] + lines[7:], 5),
        ([*lines[:6], lines[7], lines[6], *lines[8:]], 5),
        ([*lines[:5], forged, *lines[6:]], 4),
        (lines[:-2] + lines[-1:], 18),
    ):
        file.write_bytes(b"".join(changed))
        report = verify(tmp_path / "log")
        assert report.problem is not None
        assert report.problem.seq == seq
        with pytest.raises(DamagedLog):
            LogWriter.open(tmp_path / "log", SID)


def one_record(folder: Path, size: int = 100) -> Path:
    """A log of three records and its only file."""
    log = LogWriter.open(folder, SID)
    for _ in range(3):
        log.append("x", {"text": "y" * size}, actor="t")
    log.commit(sync=True)
    log.close()
    return folder / segment_name(1)


def test_a_last_record_that_is_whole_and_wrong_is_damage(tmp_path: Path) -> None:
    """Only a record that was not written to its end is torn: one that has its line feed was, and another hand or the
    disk changed it.
    """
    file = one_record(tmp_path)
    whole = file.read_bytes()
    (tmp_path / head_marker.FILE).unlink()  # nothing else says where it ends
    for at in (len(whole) - 2, len(whole) - TRAILER - 5, whole.rindex(b'{"v":1')):
        bad = bytearray(whole)
        bad[at] ^= 1
        file.write_bytes(bad)
        report = verify(tmp_path)
        assert (report.ok, report.torn, report.records) == (False, None, 2)
        assert report.problem is not None
        assert report.problem.seq == 2
        with pytest.raises(DamagedLog):
            LogWriter.open(tmp_path, SID)
        assert file.read_bytes() == bytes(bad)
    for tail in (whole[:-1], whole[:-TRAILER], whole + bytes(9000)):
        file.write_bytes(tail)
        assert verify(tmp_path).torn is not None


@pytest.mark.parametrize("segment_bytes", [1 << 26, 3000])
def test_a_log_cut_exactly_between_two_records_is_short_of_what_was_acknowledged(
    tmp_path: Path, segment_bytes: int
) -> None:
    folder = tmp_path / "log"
    build(folder, 40, segment_bytes)
    files = sorted(folder.glob("*.jsonl"))
    data = files[-1].read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10][:-1]
    for cut in ends:
        files[-1].write_bytes(data[:cut])
        report = verify(folder)
        assert not report.ok
        assert report.problem is not None
        assert "the log ends after record" in report.problem.why
        assert "record 39 was acknowledged" in report.problem.why
        assert (report.problem.file, report.problem.offset, report.problem.seq) == (str(files[-1]), cut, report.records)
        with pytest.raises(DamagedLog, match="record 39 was acknowledged"):
            LogWriter.open(folder, SID, segment_bytes=segment_bytes)
        assert files[-1].read_bytes() == data[:cut], "nothing is changed, so that a copy can be put back"
    files[-1].unlink()
    assert not verify(folder).ok, "the whole last segment is gone"
    for file in files[:-1]:
        file.unlink()
    assert not verify(folder).ok, "every segment is gone"
    with pytest.raises(DamagedLog):
        LogWriter.open(folder, SID)


def test_a_torn_tail_that_was_acknowledged_is_not_cut_in_silence(tmp_path: Path) -> None:
    file = one_record(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    assert not verify(tmp_path).ok
    with pytest.raises(DamagedLog, match="record 2 was acknowledged"):
        LogWriter.open(tmp_path, SID)
    assert file.read_bytes() == whole[:-20]


def test_a_log_written_anew_with_good_checksums_is_not_the_acknowledged_one(tmp_path: Path) -> None:
    file = one_record(tmp_path / "log", 100)
    shutil.copy(one_record(tmp_path / "other", 101), file)
    report = verify(tmp_path / "log")
    assert report.problem is not None
    assert "record 2 is not the one that was acknowledged" in report.problem.why


def test_the_head_is_never_ahead_of_the_disk(tmp_path: Path) -> None:
    log = LogWriter.open(tmp_path, SID)
    for i in range(60):
        log.append("x", {"text": "y" * 100}, actor="t")
        log.commit(sync=i % 3 == 2)
        known = head_marker.load(tmp_path)
        assert (known.seq if known is not None else -1) == i - (i + 1) % 3, "what was not synced is not known"
    log.close()
    known = head_marker.load(tmp_path)
    assert known == head_marker.Head(59, bytes.fromhex(verify(tmp_path).hash), True)


def test_a_head_that_cannot_be_read_or_written_costs_no_record(tmp_path: Path) -> None:
    one_record(tmp_path)
    head = tmp_path / head_marker.FILE
    line = head.read_bytes()
    for bad in (b"", line[:-1], line + b"x", line.replace(b"2", b"9", 1), os.urandom(len(line)), b"2" + line[1:]):
        head.write_bytes(bad)
        assert head_marker.load(tmp_path) is None
        assert verify(tmp_path).records == 3
    head.unlink()
    head.mkdir()
    assert head_marker.load(tmp_path) is None
    assert verify(tmp_path).records == 3
    head.rmdir()
    log = LogWriter.open(tmp_path, SID)
    head.mkdir()
    log.append("x", {}, actor="t")
    log.commit(sync=True)
    log.close()
    head.rmdir()
    assert verify(tmp_path).records == 4


SEAL = """
import json, sys
from pathlib import Path
from harness.eventlog.writer import LogWriter, Poisoned
log = LogWriter.open(Path(sys.argv[1]), "abcdefghij", segment_bytes=400)
said = []
for i in range(3):
    try:
        log.append("x", {"text": "y" * 400}, actor="t")
        log.commit(sync=True)
        said.append("ok")
    except Poisoned as exc:
        said.append(str(exc))
print(json.dumps({"said": said, "poisoned": log.poisoned}))
"""


@pytest.mark.parametrize(
    "inject", ["fdatasync:error=EIO:when=2", "renameat:error=EIO:when=1", "fsync:error=EIO:when=4"]
)
def test_a_batch_that_is_durable_is_not_refused_because_the_next_segment_fails(tmp_path: Path, inject: str) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    script = tmp_path / "seal.py"
    script.write_text(SEAL)
    folder = tmp_path / "log"
    LogWriter.open(folder, SID).close()
    command = [
        "strace",
        "-f",
        "-o",
        str(tmp_path / "trace"),
        "-e",
        f"trace={inject.partition(':')[0]}",
        "-e",
        f"inject={inject}",
    ]
    done = subprocess.run(
        [*command, sys.executable, "-B", str(script), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    if "ptrace" in done.stderr:
        pytest.skip("tracing is not allowed here")
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    good = out["said"].count("ok")
    assert out["said"][:good] == ["ok"] * good
    assert out["poisoned"], "the trouble was met"
    assert sum(1 for _ in read(folder)) == good, "what was told as written is there, and nothing else"
    log = LogWriter.open(folder, SID)
    assert log.head == good - 1
    log.close()


# -- a real full disk, a real failing disk ---------------------------------------------------------

FULL_DISK = """
import json, os, sys
from pathlib import Path
from harness.eventlog import blobs
from harness.eventlog.writer import LogWriter, NoSpace
from harness.eventlog.reader import read, verify
folder = Path(sys.argv[1]) / "log"
log = LogWriter.open(folder, "abcdefghij", segment_bytes=int(sys.argv[2]))
told, refused = 0, []
for i in range(3000):
    try:
        for _ in range(3):
            log.append("x", {"text": "y" * 700}, actor="t")
        log.commit(sync=True)
        told = log.head + 1
    except NoSpace as exc:
        refused.append(str(exc))
        assert log.head == told - 1, (log.head, told)
        assert sum(1 for _ in read(folder)) == told
        if len(refused) == 3:
            break
try:
    blobs.put(Path(sys.argv[1]) / "blobs", os.urandom(400_000))
    blob = "stored"
except NoSpace:
    blob = "refused"
left = [p for p in (Path(sys.argv[1]) / "blobs").rglob("*") if p.is_file()]
(Path(sys.argv[1]) / "ballast").unlink()
for _ in range(20):
    log.append("x", {"text": "after"}, actor="t")
    log.commit(sync=True)
log.close()
again = LogWriter.open(folder, "abcdefghij")
out = {"told": told, "refused": refused, "head": again.head, "recovery": again.recovery is not None}
print(json.dumps(out | {"ok": verify(folder).ok, "blob": blob, "left": len(left)}))
"""


def _namespace() -> list[str] | None:
    for command in (["unshare", "-m"], ["unshare", "-Urm"]):
        if (
            shutil.which("unshare")
            and subprocess.run([*command, "mount", "-t", "tmpfs", "x", "/mnt"], capture_output=True).returncode == 0
        ):
            return command
    return None


@pytest.mark.parametrize("segment_bytes", [1 << 26, 20_000])
def test_a_full_disk_drops_the_batch_and_later_goes_on(tmp_path: Path, segment_bytes: int) -> None:
    command = _namespace()
    if command is None:
        pytest.skip("no private mounts here")
    script = tmp_path / "full.py"
    script.write_text(FULL_DISK)
    mounted = tmp_path / "small"
    mounted.mkdir()
    fill = f'mount -t tmpfs -o size=400k x "{mounted}" && head -c 100000 /dev/zero > "{mounted}/ballast"'
    inside = f'{fill} && exec "{sys.executable}" "{script}" "{mounted}" {segment_bytes}'
    done = subprocess.run(
        [*command, "sh", "-c", inside],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    assert len(out["refused"]) == 3
    assert "free some space" in out["refused"][0]
    assert (out["head"], out["recovery"], out["ok"]) == (out["told"] + 19, False, True)
    assert (out["blob"], out["left"]) == ("refused", 0)
    if segment_bytes == 1 << 26:
        assert any("bytes fitted" in text for text in out["refused"]), "the small disk gives a real short write"


FAILING_DISK = """
import json, sys
from pathlib import Path
from harness.eventlog.writer import LogWriter, Poisoned
log = LogWriter.open(Path(sys.argv[1]), "abcdefghij")
said = []
for i in range(6):
    try:
        log.append("x", {"i": i}, actor="t")
        log.commit(sync=True)
        said.append("ok")
    except Poisoned as exc:
        said.append(str(exc))
try:
    log.close()
except Poisoned:
    said.append("close")
print(json.dumps({"said": said, "head": log.head, "poisoned": log.poisoned}))
"""


@pytest.mark.parametrize(
    ("call", "error", "when"), [("fdatasync", "EIO", 3), ("write", "EIO", 4), ("fdatasync", "ENOSPC", 2)]
)
def test_a_failing_disk_poisons_the_writer_for_good(tmp_path: Path, call: str, error: str, when: int) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    script = tmp_path / "fail.py"
    script.write_text(FAILING_DISK)
    folder = tmp_path / "log"
    LogWriter.open(folder, SID).close()
    path = folder / segment_name(1)
    command = [
        "strace",
        "-f",
        "-o",
        str(tmp_path / "trace"),
        "-P",
        str(path),
        "-e",
        f"trace={call}",
        "-e",
        f"inject={call}:error={error}:when={when}",
    ]
    done = subprocess.run(
        [*command, sys.executable, "-B", str(script), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    if "ptrace" in done.stderr:
        pytest.skip("tracing is not allowed here")
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    good = out["said"].index(next(text for text in out["said"] if text != "ok"))
    assert good == when - 1
    assert out["said"][:good] == ["ok"] * good
    assert all("check the disk" in text for text in out["said"][good:]), "no later success is claimed"
    kept = [json.loads(line)["data"]["i"] for line in read(folder)]
    assert kept in (list(range(good)), list(range(good + 1))), (
        "every acknowledged record is there, and at most the unacknowledged one"
    )
    assert out["head"] == len(kept) - 1
    log = LogWriter.open(folder, SID)
    assert log.head == len(kept) - 1
    log.close()


LIMITED_FILE = """
import json, resource, sys
from pathlib import Path
from harness.eventlog.writer import LogWriter, NoSpace
log = LogWriter.open(Path(sys.argv[1]), "abcdefghij")
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 200000))
written = failed = 0
for _ in range(40):
    try:
        log.append("x", {"t": "y" * 300}, actor="t")
        log.commit(sync=True)
        written += 1
    except NoSpace:
        failed += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))
log.append("x", {}, actor="t")
log.commit(sync=True)
print(json.dumps([written, failed, log.head]))
"""


def test_disk_full_by_quota_on_one_file(tmp_path: Path) -> None:
    """A file size limit gives EFBIG: the same as a full disk."""
    script = tmp_path / "limit.py"
    script.write_text(LIMITED_FILE)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "log")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    written, failed, head = json.loads(done.stdout)
    assert written > 5
    assert failed > 5
    assert head == written
    assert verify(tmp_path / "log").records == written + 1

"""A keeper on a full or failing disk: refuses without losing or half-writing anything, and goes on when there is room
again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.eventlog import reader
from harness.keeper.calls import watch
from tests.process.keeperlib import (
    Keepers,
    Link,
    Refused,
    action,
    allowed,
    keepers,
    note,
    strace_of_a_keeper,
    wait_until,
)

_libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    (tmp_path / "work").mkdir()
    with keepers(tmp_path) as fleet:
        yield fleet


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 512 KiB."""
    path = tmp_path / "disk"
    path.mkdir()
    if _libc.mount(b"none", os.fsencode(path), b"tmpfs", 0, b"size=512k,mode=700") != 0:
        pytest.skip("mounting a small file system needs the rights of root")
    try:
        yield path
    finally:
        _libc.umount2(os.fsencode(path), 2)


def code_of(refusal: pytest.ExceptionInfo[Refused]) -> str:
    return refusal.value.code


def fill(link: Link, size: int, head: int) -> tuple[int, dict[str, Any]]:
    """Append until it is refused; (last acknowledged record, the refusal)."""
    while True:
        try:
            head = link.append(note("x" * size))["last"]
        except Refused as exc:
            return head, exc.error


def good_records(fleet: Keepers) -> int:
    report = reader.verify(fleet.folder().log)
    assert report.ok
    assert report.torn is None, "what did not fit was cut back"
    return report.records


def test_a_full_disk_refuses_and_goes_on_after_space(small_disk: Path) -> None:
    with keepers(small_disk) as fleet:
        fleet.spawn()
        link = fleet.supervisor()
        what = action(small_disk, "c0.0", ["sh", "-c", "true"])
        link.append(*allowed(what))
        viewer = fleet.link()
        viewer.hello("viewer")
        viewer.call("subscribe", after=-1)
        acknowledged = fleet.log()[-1]["seq"]
        filler = os.open(small_disk / "filler", os.O_WRONLY | os.O_CREAT)
        os.write(filler, b"x" * 100_000)
        acknowledged, error = fill(link, 5000, acknowledged)
        assert error["code"] == "no_space"
        assert "free some space" in error["hint"]
        attempts = [
            lambda: link.append(note("y" * 5000)),
            lambda: link.append(note("z" * 5000), cls="C"),
            lambda: link.call("blob", data="QUFBQUFB" * 1000),
        ]
        for attempt in attempts:
            with pytest.raises(Refused) as refusal:
                attempt()
            assert code_of(refusal) == "no_space"
        acknowledged, _ = fill(link, 1, acknowledged)
        with pytest.raises(Refused) as refusal:
            link.call("execute", call_id="c0.0")
        assert code_of(refusal) == "no_space"
        assert good_records(fleet) == acknowledged + 1
        assert fleet.link().hello("viewer")["head"] == acknowledged
        assert viewer.lines_until(acknowledged) == list(reader.read(fleet.folder().log)), (
            "nothing that was cut back was shown"
        )
        os.truncate(filler, 0)
        os.close(filler)
        assert link.append(note("there is room"))["first"] == acknowledged + 1
        assert link.call("execute", call_id="c0.0")["started"] is True
        wait_until("the call has ended", lambda: "tool.ended" in fleet.types())


def test_a_batch_that_did_not_fit_leaves_no_trace_in_the_rules(fleet: Keepers, tmp_path: Path) -> None:
    """The limit on file size gives a real short write to whoever runs the tests, root or not."""
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    size = (fleet.folder().log / "000001.jsonl").stat().st_size
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 100, hard))
    what = action(tmp_path / "work", "c0.0", ["true"])
    with pytest.raises(Refused) as refusal:
        link.append(*allowed(what))
    assert code_of(refusal) == "no_space"
    with pytest.raises(Refused) as refusal:
        link.call("lease", gen=1, epoch=1, secret="x", pid=1, start=1, boot="b")
    assert code_of(refusal) == "no_space"
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
    assert good_records(fleet) == 1
    with pytest.raises(Refused) as refusal:
        fleet.link().hello("brain", gen=1, secret="x")
    assert code_of(refusal) == "stale_lease"
    with pytest.raises(Refused) as refusal:
        link.call("execute", call_id="c0.0")
    assert code_of(refusal) == "refused"
    link.append(*allowed(what))
    fleet.brain(link, gen=1)
    assert link.call("execute", call_id="c0.0")["started"] is True


def test_the_end_of_a_call_waits_for_space(fleet: Keepers, tmp_path: Path) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    go = tmp_path / "work" / "go"
    link.append(
        *allowed(action(tmp_path / "work", "c0.0", ["sh", "-c", "while ! [ -e go ]; do sleep 0.01; done; seq 1 5000"]))
    )
    link.call("execute", call_id="c0.0")
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
    go.touch()
    wait_until("the tool is gone, and only the vault is left", lambda: len(children(pid, but=watch.NAME)) == 1)
    assert link.call("stats")["head"] == 3
    assert fleet.link().hello("viewer")["running"] == ["c0.0"]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
    wait_until("the call has ended", lambda: "tool.ended" in fleet.types())
    data = fleet.log()[-1]["data"]
    assert data["status"] == "ok"
    assert data["truncated"] is True
    assert "not kept" in data["preview"]


def children(pid: int, but: bytes = b"") -> list[int]:
    """Those of a process, but such of that name."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == pid and Path(f"/proc/{name}/comm").read_bytes().strip() != but:
                    found.append(int(name))
    return found


def test_a_failed_fsync_poisons_and_nothing_starts_any_more(fleet: Keepers, tmp_path: Path) -> None:
    strace = strace_of_a_keeper()
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    link.append(*allowed(action(tmp_path / "work", "c0.0", ["touch", "ran"])))
    tracer = subprocess.Popen(
        [strace, "-q", "-p", str(pid), "-e", "inject=fdatasync:error=EIO:when=1", "-o", "/dev/null"],
        stderr=subprocess.PIPE,
    )
    try:
        traced = Path(f"/proc/{pid}/status")
        wait_until("the tracer is attached", lambda: f"TracerPid:\t{tracer.pid}" in traced.read_text())
        for attempt in (
            lambda: link.append(note("x")),
            lambda: link.append(note("y"), cls="C"),
            lambda: link.call("execute", call_id="c0.0"),
        ):
            with pytest.raises(Refused) as refusal:
                attempt()
            assert code_of(refusal) == "poisoned"
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(10)
    assert "fdatasync" in fleet.link().hello("viewer")["poisoned"]
    assert not (tmp_path / "work" / "ran").exists()
    fleet.kill(pid)
    fleet.spawn()
    assert fleet.supervisor(epoch=2).call("execute", call_id="c0.0")["started"] is True


def test_an_unusable_folder_is_named(fleet: Keepers) -> None:
    fleet.folders.sessions.mkdir(parents=True)
    fleet.folder().root.write_text("in the way")
    with pytest.raises(Refused) as refusal:
        fleet.spawn()
    assert code_of(refusal) == "io"
    assert str(fleet.folder().root) in refusal.value.error["message"]

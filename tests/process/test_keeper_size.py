"""What a keeper costs and in which order it makes things durable: memory, and its system calls, counted and in their
order.
"""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.protocol.connection import frames
from tests.process.keeperlib import Keepers, Link, keepers, note, strace_of_a_keeper, wait_until

RECORD = [{"type": "harness.note", "data": {"level": "info", "text": "x" * 200}}]
FIRST = 1 << 20  # request ids of a burst, far from those of the link itself


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    with keepers(tmp_path) as fleet:
        yield fleet


def test_a_keeper_of_32_takes_at_most_5_mb(fleet: Keepers) -> None:
    sids = [f"s{number:09d}" for number in range(32)]
    links = []
    for sid in sids:
        fleet.spawn(sid)
    for sid in sids:
        link = fleet.supervisor(sid)
        link.append(*(note("x" * 200) for _ in range(50)))
        links.append(link)
    sizes = sorted(link.call("stats")["memory"]["pss"] / 1e6 for link in links)
    print(f"PSS of each of 32 keepers: {sizes[0]:.2f}/{sizes[16]:.2f}/{sizes[-1]:.2f} MB")
    assert sizes[-1] <= 5.0
    assert sizes[-1] - sizes[0] <= 0.2, "none of them has copied a table that all others share"


def test_the_keeper_asks_for_the_standard_library_only() -> None:
    code = "import sys; import harness.keeper.fork_server; print('\\n'.join(sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not {
        name
        for name in loaded
        if name.partition(".")[0] in ("msgspec", "anthropic", "textual", "platformdirs", "git", "app", "widgets")
    }
    ours = {name for name in loaded if name.startswith("harness.")}
    assert not {
        name
        for name in ours
        if name.startswith(
            ("harness.supervisor", "harness.brain", "harness.policy", "harness.budget", "harness.workspace")
        )
    }
    source = Path(__file__).parents[2] / "harness" / "keeper"
    for path in source.rglob("*.py"):
        assert not re.search(r"^\s*(import|from) (asyncio|subprocess|threading)\b", path.read_text(), re.MULTILINE), (
            path
        )


def burst(link: Link, cls: str, count: int) -> None:
    """Send ``count`` requests of one record each with one call and wait for every answer."""
    link.sock.sendall(
        b"".join(
            frames.encode({"id": FIRST + number, "op": "append", "cls": cls, "records": RECORD})
            for number in range(count)
        )
    )
    for number in range(count):
        link.reply(FIRST + number)


@contextlib.contextmanager
def traced(pid: int, target: Path) -> Iterator[list[str]]:
    """Fills the list with the names of the keeper's system calls when the block ends."""
    strace = strace_of_a_keeper()
    calls = []
    tracer = subprocess.Popen(
        [strace, "-q", "-p", str(pid), "-s", "12", "-e", "trace=recvfrom,write,fdatasync,sendmsg", "-o", str(target)]
    )
    try:
        wait_until(
            "the tracer is attached", lambda: f"TracerPid:\t{tracer.pid}" in Path(f"/proc/{pid}/status").read_text()
        )
        yield calls
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(10)
        calls += [line.partition("(")[0] for line in target.read_text().splitlines()]


def test_what_an_append_costs_is_counted(fleet: Keepers, tmp_path: Path) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    with traced(pid, tmp_path / "one by one") as alone:
        for _ in range(20):
            link.call("append", records=RECORD, cls="A")
    assert [call for call in alone if call != "recvfrom"] == ["write", "fdatasync", "sendmsg"] * 20
    with traced(pid, tmp_path / "many at once") as together:
        burst(link, "B", 500)
    assert together.count("fdatasync") == together.count("write")
    assert together.count("fdatasync") <= 500 // 64 + together.count("recvfrom"), (
        "a batch ends when it is full or nothing more has come"
    )
    assert together.count("sendmsg") <= 500 // 64 + together.count("recvfrom"), (
        "answers that are ready together leave together"
    )


def test_durability_comes_before_the_answer_and_the_push(fleet: Keepers, tmp_path: Path) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    viewer = fleet.link()
    viewer.hello("viewer")
    viewer.call("subscribe", after=0)
    with traced(pid, tmp_path / "trace") as calls:
        link.append(note("durable"), cls="A")
        viewer.lines_until(1)
        burst(link, "B", 200)
        link.append(note("cheap"), cls="C")
    first = [call for call in calls[: calls.index("sendmsg") + 2] if call != "recvfrom"]
    assert first == ["write", "fdatasync", "sendmsg", "sendmsg"]
    assert "fdatasync" not in calls[len(calls) - calls[::-1].index("write") :], "class C waits for no disk"
    unsynced = False
    for call in calls[: len(calls) - calls[::-1].index("write") - 1]:
        unsynced = call == "write" or (unsynced and call != "fdatasync")
        assert not (unsynced and call == "sendmsg"), "no answer and no push between a write and its fdatasync"

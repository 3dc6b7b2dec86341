"""A keeper says what is: nothing is "not run" that runs, nothing stays in memory that is over, everybody is answered
while it looks at files.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import signal
import subprocess
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.domain.actions.action import action_hash
from harness.eventlog.writer import LogWriter
from harness.executor import preconditions
from harness.keeper.loop.event_loop import Loop
from harness.keeper.loop.timers import Timer
from harness.linux import proc
from tests.logs import left_by_a_kill
from tests.process.keeperlib import (
    SID,
    Keepers,
    Link,
    Refused,
    action,
    allowed,
    keepers,
    strace_of_a_keeper,
    wait_until,
    watchers,
)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    (tmp_path / "work").mkdir()
    with keepers(tmp_path) as fleet:
        yield fleet


@contextlib.contextmanager
def failing(pid: int, inject: str) -> Iterator[None]:
    """One kind of system call of a living keeper fails meanwhile."""
    tracer = subprocess.Popen(
        [strace_of_a_keeper(), "-q", "-p", str(pid), "-e", f"inject={inject}", "-o", "/dev/null"],
        stderr=subprocess.PIPE,
    )
    try:
        wait_until(
            "the tracer is attached", lambda: f"TracerPid:\t{tracer.pid}" in Path(f"/proc/{pid}/status").read_text()
        )
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(10)


def test_a_call_without_a_descriptor_of_its_process_is_run_and_its_end_is_seen(fleet: Keepers, tmp_path: Path) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    link.append(*allowed(action(tmp_path / "work", "c0.0", ["sh", "-c", "echo ran >> once; exit 3"])))
    with failing(pid, "pidfd_open:error=EMFILE"):
        assert link.call("execute", call_id="c0.0")["started"] is True
        wait_until("the call has ended", lambda: "tool.ended" in fleet.types())
    ended = next(record["data"] for record in fleet.log() if record["type"] == "tool.ended")
    assert (ended["status"], ended["exit_code"]) == ("error", 3)
    assert (tmp_path / "work" / "once").read_text() == "ran\n"
    link.append(*allowed(action(tmp_path / "work", "c9.0", ["sh", "-c", "echo again >> once"])))
    assert link.call("execute", call_id="c9.0")["started"] is True
    wait_until("the next call has ended", lambda: fleet.types().count("tool.ended") == 2)


def test_what_read_file_says_it_shows_is_what_the_record_holds(fleet: Keepers, tmp_path: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    (tmp_path / "work" / "long").write_text("".join(f"this is line {n}\n" for n in range(1, 5001)))
    offset = 1
    for turn in range(3):
        call = f"c{10 * turn}.0"
        given = {"path": "long", "offset": offset}
        what = action(
            tmp_path / "work", call, ["read"], access="sandbox", tool="read_file", kind="file", path="long", input=given
        )
        link.append(*allowed(what))
        assert link.call("execute", call_id=call)["started"] is True
        wait_until("the call has ended", lambda turn=turn: fleet.types().count("tool.ended") == turn + 1)
        ended = next(record["data"] for record in reversed(fleet.log()) if record["type"] == "tool.ended")
        assert ended["status"] == "ok", ended
        *lines, last = ended["preview"].rstrip().split("\n")
        found = re.fullmatch(r"\(lines (\d+) to (\d+) of 5000; go on with offset (\d+)\)", last)
        assert found is not None, last
        first, end, offset = (int(number) for number in found.groups())
        assert [line.strip() for line in lines] == [f"{n}\tthis is line {n}" for n in range(first, end + 1)]
        assert offset == end + 1


def started(fleet: Keepers, link: Link, call: str, what: dict[str, Any]) -> dict[str, Any]:
    """Run one call to its end; its ``tool.started``."""
    link.append(*allowed(what))
    assert link.call("execute", call_id=call)["started"] is True
    ended = wait_until(
        "the call has ended",
        lambda: [r for r in fleet.log() if r["type"] == "tool.ended" and r["data"]["call_id"] == call],
    )
    assert ended[0]["data"]["status"] == "ok", ended
    return next(r["data"] for r in fleet.log() if r["type"] == "tool.started" and r["data"]["call_id"] == call)


def test_a_start_says_what_was_worked_on_since_the_call_before(fleet: Keepers, tmp_path: Path) -> None:
    """A command that edits or commits has worked; one that only fills caches, touches or writes the same again has
    not.
    """
    fleet.spawn()
    link = fleet.supervisor()
    private = fleet.folder().git / "private"
    private.mkdir(parents=True)
    (private / "HEAD").write_text("a" * 40)
    work = tmp_path / "work"
    (fleet.folder().git / "workspace.json").write_text(json.dumps({"root": str(work)}))
    (work / "kept").write_text("same")
    file = ["src/a.py"]
    commands: list[tuple[str, int, list[str]]] = [
        ("mkdir -p src .pytest_cache && echo one > src/a.py", 0, []),
        ("echo two > src/a.py", 1, file),  # what is said here was done by the command before
        (
            "mkdir -p .pytest_cache src/__pycache__ && date > .pytest_cache/last && date > src/__pycache__/a.pyc",
            1,
            file,
        ),
        ("touch kept; printf same > kept", 0, []),
        (f"printf {'b' * 40} > {private}/HEAD; date > {private}/index", 0, []),
        ("rm src/a.py", 1, []),  # HEAD alone
        ("true", 1, file),
        ("true", 0, []),
    ]
    for number, (command, worked, names) in enumerate(commands):
        call = f"c{10 * number}.0"
        if number == 3:  # a look from aside, as for a request, takes nothing away
            link.call("snapshot", label="request", full=True)
        found = started(fleet, link, call, action(work, call, ["sh", "-c", command]))
        assert (found.get("worked", 0), found.get("worked_names", [])) == (worked, names), command


def test_everybody_is_answered_while_the_world_of_a_call_is_looked_at(fleet: Keepers, tmp_path: Path) -> None:
    """Hundreds of megabytes may have to be read before a call starts; here that takes as long as the test wants."""
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    work = tmp_path / "work"
    (work / "named").write_text("shown")
    started(fleet, link, "c0.0", action(work, "c0.0", ["true"]))
    pre = {"files": {"named": preconditions.file_state(str(work / "named"))}}
    reads = [
        action(
            work,
            f"c{n}.0",
            ["read"],
            access="outside",
            tool="read_file",
            kind="file",
            path="named",
            input={"path": "named"},
            pre=pre,
        )
        for n in (10, 20)
    ]
    for what in reads:
        link.append(*allowed(what))
    keepers_children = Path(f"/proc/{pid}/task/{pid}/children")
    (vault,) = {int(child) for child in keepers_children.read_text().split()} - {*watchers(pid)}
    os.kill(vault, signal.SIGSTOP)
    try:
        waiting = link.send("execute", call_id="c10.0")
        assert (
            link.call("append", records=[{"type": "harness.note", "data": {"level": "info", "text": "meanwhile"}}])[
                "last"
            ]
            > 0
        )
        assert link.call("stats")["connections"] == 1
        assert fleet.link().hello("viewer")["running"] == ["c10.0"]
        link.call("cancel", call_id="c10.0")
        later = link.send("execute", call_id="c20.0")
        assert "tool.started" not in fleet.types()[fleet.types().index("tool.ended") :]
    finally:
        os.kill(vault, signal.SIGCONT)
    with pytest.raises(Refused) as refusal:
        link.reply(waiting)
    assert refusal.value.code == "cancelled"
    assert link.reply(later)["started"] is True
    wait_until("the other has ended", lambda: fleet.types().count("tool.ended") == 3)
    (work / "named").write_text("exchanged")
    again = action(
        work,
        "c90.0",
        ["read"],
        access="outside",
        tool="read_file",
        kind="file",
        path="named",
        input={"path": "named"},
        pre=pre,
    )
    link.append(*allowed(again))
    assert link.call("execute", call_id="c90.0")["stale"] == ["named has other content than what was approved"]


def earlier(fleet: Keepers, what: dict[str, Any], boot: str, *, leave: bool) -> None:
    """The log of a keeper of another time that ran one call."""
    log = LogWriter.open(fleet.folder().log, SID)
    done = {"call_id": what["call"], "status": "ok", "preview": "written"}
    begun = {"call_id": what["call"], "action_hash": action_hash(what), "effect": "contained", "attempt": 1, "pre": {}}
    for kind, data in (
        ("keeper.started", {"pid": 1, "start": 1, "boot": boot}),
        *allowed(what),
        ("tool.started", begun),
        ("tool.ended", done),
    ):
        log.append(kind, data, actor="keeper")
    log.commit(sync=True)
    if leave:
        log.close()
    else:
        left_by_a_kill(log, fleet.folder().log)


@pytest.mark.parametrize(
    ("boot", "leave", "noted"),
    [("an earlier one", False, True), ("an earlier one", True, False), (proc.boot_id(), False, False)],
)
def test_after_a_reboot_without_leave_it_is_said_once_that_effects_may_be_gone(
    fleet: Keepers, tmp_path: Path, boot: str, leave: bool, noted: bool
) -> None:
    earlier(fleet, action(tmp_path / "work", "c0.0", ["true"]), boot, leave=leave)
    pid = fleet.spawn()["pid"]
    notes = [r["data"] for r in fleet.log() if r["type"] == "harness.note"]
    assert [(note["level"], note["component"], "c0.0" in note["text"]) for note in notes] == [
        ("warning", "reboot", True)
    ] * noted
    fleet.kill(pid)
    fleet.spawn()
    assert len([r for r in fleet.log() if r["type"] == "harness.note"]) == noted, "and not again"


def test_a_cancelled_timer_keeps_nothing(tmp_path: Path) -> None:
    """A call's time limit is an hour away when it ends after a second."""
    loop = Loop(tmp_path / "sock")

    class Call:
        def late(self) -> None:
            raise AssertionError("cancelled")

    kept = []
    try:
        for _ in range(1000):
            call = Call()
            kept.append(weakref.ref(call))
            loop.call_later(3600, call.late).cancel()
            del call
        gc.collect()
        assert not [ref for ref in kept if ref() is not None]
        assert sum(isinstance(one, Timer) for one in gc.get_objects()) < 50, (
            "what was cancelled does not pile up either"
        )
        ran: list[int] = []
        loop.on_closed = lambda *_: None
        loop.on_frame = loop.on_closed
        loop.more = lambda: False
        loop.after_turn = lambda: None
        loop.call_later(0.01, lambda: (ran.append(1), setattr(loop, "stopping", True))[0])
        loop.run()
        assert ran == [1]
    finally:
        loop.stopping = True

"""kill -9 of a keeper at every arrow of the road, and while it writes: what it acknowledged stays, what it ran is
accounted for once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.eventlog import reader
from harness.keeper.calls import process_trees, spool
from harness.keeper.loop.fault_points import CALL_POINTS
from harness.linux import proc
from harness.sandbox import bubblewrap
from tests.process.keeperlib import Keepers, action, allowed, keepers, note, wait_gone, wait_until


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    (tmp_path / "work").mkdir()
    with keepers(tmp_path) as fleet:
        yield fleet


def check_log(fleet: Keepers) -> list[dict[str, Any]]:
    """The whole log verifies and is dense."""
    report = reader.verify(fleet.folder().log)
    assert report.ok, report.problem
    records = fleet.log()
    assert [r["seq"] for r in records] == list(range(len(records)))
    return records


def marked(fleet: Keepers, word: str) -> bool:
    path = fleet.folder().root / "keeper.err"
    return path.exists() and word in path.read_text()


SCRIPT = (
    "echo x >> marker; setsid sh -c 'echo $$ > daemon; exec sleep 300' & while ! [ -s daemon ]; do sleep 0.01; done;"
    " echo $$ > leader; echo ready"
)

# point → (effects on disk, records of the call after the restart)
EXPECTED = {
    "keeper.before_started": (0, []),
    "keeper.after_started": (0, ["tool.started", "tool.in_doubt"]),
    "keeper.tool_running": (1, ["tool.started", "tool.in_doubt"]),
    "keeper.after_spool": (1, ["tool.started", "tool.ended"]),
    "keeper.after_ended": (1, ["tool.started", "tool.ended"]),
}


@pytest.mark.parametrize("how", ["kill", "block"])
@pytest.mark.parametrize("point", CALL_POINTS)
def test_killed_at_each_arrow(fleet: Keepers, tmp_path: Path, point: str, how: str) -> None:
    work = tmp_path / "work"
    pid = fleet.spawn(fault=f"{point}:{how}")["pid"]
    link = fleet.supervisor()
    script = SCRIPT + ("; exec sleep 300" if point == "keeper.tool_running" else "")
    what = action(work, "c0.0", ["sh", "-c", script])
    acknowledged = link.append(*allowed(what))["last"]
    link.send("execute", call_id="c0.0")
    if how == "block":
        wait_until("the keeper stands at the point", lambda: marked(fleet, f"block at {point}"))
        os.kill(pid, signal.SIGKILL)
    wait_gone(pid)
    effects, kinds = EXPECTED[point]
    again = fleet.spawn()
    hello = fleet.link().hello("viewer")
    assert (hello["pid"], hello["running"]) == (again["pid"], [])
    records = check_log(fleet)
    assert len(records) > acknowledged
    assert [r["type"] for r in records if r["type"] in ("tool.started", "tool.ended", "tool.in_doubt")] == kinds
    marker = work / "marker"
    ran = marker.read_text().count("x") if marker.exists() else 0
    assert ran == effects
    for name in ("leader", "daemon"):
        if (work / name).exists() and (text := (work / name).read_text().strip()):
            wait_gone(int(text))
    if kinds[-1:] == ["tool.ended"]:
        data = next(r["data"] for r in records if r["type"] == "tool.ended")
        assert (data["status"], data["preview"]) == ("ok", "ready\n")
        assert not list(fleet.folder().spool.iterdir())
    # and the next life of the session is an ordinary one
    supervisor = fleet.supervisor(epoch=2)
    if point == "keeper.before_started":
        assert supervisor.call("execute", call_id="c0.0")["started"] is True
        wait_until("the call ran after all", lambda: "tool.ended" in fleet.types())
    before = [r["type"] for r in check_log(fleet)]
    fleet.kill(again["pid"])
    fleet.spawn()
    assert [r["type"] for r in check_log(fleet)] == [*before, "keeper.started"], "an outcome is recorded exactly once"


@pytest.mark.sandbox
def test_a_sandboxed_tool_dies_with_its_keeper(fleet: Keepers, tmp_path: Path) -> None:
    try:
        bubblewrap.find()
    except bubblewrap.SandboxUnavailable as exc:
        pytest.skip(str(exc))
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    seconds = f"300.{os.getpid()}"
    script = f"setsid sleep {seconds} & touch {tmp_path}/work/running; exec sleep {seconds}"
    link.append(*allowed(action(tmp_path / "work", "c0.0", ["sh", "-c", script], access="sandbox")))
    link.call("execute", call_id="c0.0")

    def sleepers() -> int:
        return sum(f"sleep\0{seconds}".encode() in command(name) for name in os.listdir("/proc") if name.isdigit())

    wait_until("the tool and its daemon run", lambda: sleepers() == 2)
    fleet.kill(pid)
    wait_until("nothing of the tool is left", lambda: sleepers() == 0)
    fleet.spawn()
    assert [r["type"] for r in check_log(fleet)][-2:] == ["keeper.started", "tool.in_doubt"]


def command(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("cls", ["A", "B"])
def test_killed_while_records_stream_in(fleet: Keepers, cls: str) -> None:
    acknowledged: dict[int, str] = {}
    sent = 0
    for life in range(6):
        pid = fleet.spawn()["pid"]
        link = fleet.supervisor(epoch=life)
        killer = threading.Timer(0.02 + 0.015 * life, os.kill, (pid, signal.SIGKILL))
        killer.start()
        waiting: dict[int, str] = {}
        try:
            while True:
                for _ in range(8):
                    sent += 1
                    text = f"record {sent} " + "x" * (sent % 700)
                    waiting[
                        link.send(
                            "append",
                            records=[{"type": "harness.note", "data": {"level": "info", "text": text}}],
                            cls=cls,
                        )
                    ] = text
                for number in list(waiting):
                    acknowledged[link.reply(number)["first"]] = waiting.pop(number)
        except (ConnectionError, OSError):
            pass
        killer.join()
        wait_gone(pid)
    fleet.spawn()
    records = check_log(fleet)
    assert len(acknowledged) > 50
    for seq, text in acknowledged.items():
        assert records[seq]["data"].get("text") == text, f"acknowledged record {seq} is not in the log"


def test_a_torn_tail_is_cut_kept_and_reported(fleet: Keepers) -> None:
    pid = fleet.spawn()["pid"]
    fleet.supervisor().append(note("good"))
    fleet.kill(pid)
    segment = fleet.folder().log / "000001.jsonl"
    whole = segment.read_bytes()
    segment.write_bytes(whole + b'{"v":1,"seq":2,"ts":"torn')
    fleet.spawn()
    records = check_log(fleet)
    assert [r["type"] for r in records[2:]] == ["log.recovered", "keeper.started"]
    assert records[2]["data"]["bytes"] == 25
    assert records[3]["data"]["recovered"] is True
    assert (fleet.folder().log / records[2]["data"]["file"]).read_bytes() == b'{"v":1,"seq":2,"ts":"torn'


def test_damage_before_the_tail_is_located_and_the_keeper_refuses(fleet: Keepers) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    link.append(*(note(f"record {i}") for i in range(10)))
    fleet.kill(pid)
    segment = fleet.folder().log / "000001.jsonl"
    data = bytearray(segment.read_bytes())
    offset = data.index(b"record 4")
    data[offset] ^= 1
    segment.write_bytes(data)
    number = fleet.ask()
    (answer,) = fleet.answers(1)
    error = answer["error"]
    assert (answer["id"], answer["ok"], error["code"], error["seq"]) == (number, False, "damaged", 5)
    assert error["file"] == str(segment)
    assert data.rindex(b"\n", 0, offset) + 1 == error["offset"]
    assert error["text"]
    assert error["message"]
    assert segment.read_bytes() == bytes(data), "nothing was changed"


def test_what_a_dead_keeper_left_running_is_killed_before_the_call_is_in_doubt(fleet: Keepers, tmp_path: Path) -> None:
    """Also when the call's processes survived its keeper: here they are really ours, found by the leader that the spool
    names.
    """
    pid = fleet.spawn(fault="keeper.after_started:kill")["pid"]
    link = fleet.supervisor()
    link.append(*allowed(action(tmp_path / "work", "c0.0", ["true"])))
    link.send("execute", call_id="c0.0")
    wait_gone(pid)
    stray = os.posix_spawn("/bin/sleep", ["sleep", "300"], {}, setsid=True)
    who = proc.identify(stray)
    assert who is not None
    stranger = os.posix_spawn("/bin/sleep", ["sleep", "300"], {}, setsid=True)
    spool.note_leader(spool.base(fleet.folder(), "c0.0", 1), who)
    reaper = threading.Thread(target=os.waitpid, args=(stray, 0))
    reaper.start()
    fleet.spawn()
    reaper.join(60)
    assert not proc.alive(who)
    assert proc.identify(stranger) is not None
    os.kill(stranger, signal.SIGKILL)
    os.waitpid(stranger, 0)
    assert fleet.types()[-1] == "tool.in_doubt"


def test_a_reused_number_is_never_taken_for_the_old_process() -> None:
    me = proc.identify(os.getpid())
    assert me is not None
    assert proc.alive(me)
    assert not proc.alive(me._replace(start=me.start + 1))
    assert not proc.alive(me._replace(boot="another boot"))
    assert process_trees.kill_session(me._replace(start=me.start + 1), 0.1), "a stranger with the number is not touched"
    assert process_trees.kill_session(me._replace(boot="another boot"), 0.1)
    child = os.posix_spawn("/bin/true", ["true"], {})
    wait_until("the child is a zombie", lambda: Path(f"/proc/{child}/stat").read_text().split()[2] == "Z")
    assert proc.identify(child) is None, "a zombie counts as dead"
    os.waitpid(child, 0)


MONITOR = """
import ctypes, os, signal, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(300)
time.sleep(300)
"""


def test_a_daemon_of_a_call_does_not_outlive_its_monitor(tmp_path: Path) -> None:
    """A new keeper ends what is left of a call; killed first, the monitor would leave behind what had already left its
    session.
    """
    note = tmp_path / "daemon"
    monitor = subprocess.Popen([sys.executable, "-c", MONITOR, str(note)], start_new_session=True)
    try:
        wait_until("the daemon stands", lambda: note.exists() and note.read_text())
        leader = proc.identify(monitor.pid)
        assert leader is not None
        assert process_trees.kill_session(leader, 10)
        assert monitor.wait() == -signal.SIGKILL
        assert proc.identify(int(note.read_text())) is None
    finally:
        monitor.kill()

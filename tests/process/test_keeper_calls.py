"""The gate and the tools of a real keeper: what may run, how it ends, and that nothing of it stays."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.domain.actions.action import action_hash, canonical
from harness.eventlog import blobs
from harness.linux.proc import descendants
from harness.sandbox import bubblewrap
from tests.process.keeperlib import (
    Keepers,
    Link,
    Refused,
    action,
    allowed,
    judged,
    keepers,
    note,
    proposed,
    wait_gone,
    wait_until,
)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    (tmp_path / "work").mkdir()
    with keepers(tmp_path) as fleet:
        yield fleet


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def refused(code: str):
    return pytest.raises(Refused, check=lambda exc: exc.code == code)


def ended(fleet: Keepers, call_id: str) -> dict[str, Any]:
    """Data of the call's ``tool.ended``, waited for."""

    def look() -> dict[str, Any] | None:
        return next(
            (r["data"] for r in fleet.log() if r["type"] == "tool.ended" and r["data"]["call_id"] == call_id), None
        )

    found: dict[str, Any] = wait_until(f"call {call_id} has ended", look)
    return found


def run(fleet: Keepers, link: Link, what: dict[str, Any]) -> dict[str, Any]:
    link.append(*allowed(what))
    assert link.call("execute", call_id=what["call"])["started"] is True
    return ended(fleet, what["call"])


def test_an_allowed_action_runs_and_its_end_is_on_record(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    end = run(fleet, link, action(work, "c0.0", ["sh", "-c", "echo hello; pwd; echo oops >&2; touch made; exit 3"]))
    assert (end["status"], end["exit_code"]) == ("error", 3)
    assert end["preview"] == f"hello\n{work}\noops\n"
    assert (work / "made").exists()
    assert fleet.types()[-2:] == ["tool.started", "tool.ended"]
    started = fleet.log()[-2]
    assert started["data"]["effect"] == "irreversible"
    assert (started["data"]["attempt"], started["actor"]) == (1, "keeper")
    wait_until("the spool is empty", lambda: not os.listdir(fleet.folder().spool))
    assert run(fleet, link, action(work, "c0.1", ["true"]))["status"] == "ok"


@pytest.mark.sandbox
def test_a_sandboxed_action_runs_inside_the_sandbox(fleet: Keepers, work: Path) -> None:
    try:
        bubblewrap.find()
    except bubblewrap.SandboxUnavailable as exc:
        pytest.skip(str(exc))
    fleet.spawn()
    end = run(
        fleet,
        fleet.supervisor(),
        action(work, "c0.0", ["sh", "-c", "echo $$; ls /root /home; touch here"], access="sandbox"),
    )
    assert (work / "here").exists(), end
    assert int(end["preview"].split()[0]) < 20, "the process numbers are the sandbox's own"


def test_what_was_not_allowed_does_not_run(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    argv = ["touch", str(work / "ran")]
    with refused("refused"):
        link.call("execute", call_id="c0.0")
    link.append(proposed("c0.0"))
    with refused("refused"):
        link.call("execute", call_id="c0.0")
    what = action(work, "c0.0", argv)
    link.append(judged(what, "ask"))
    with refused("refused"):
        link.call("execute", call_id="c0.0")
    link.append(judged(what, "deny"))
    with refused("refused"):
        link.call("execute", call_id="c0.0")
    kind, data = judged(what)
    link.append((kind, {**data, "action": {**what, "argv": ["touch", str(work / "other")]}}))
    with refused("refused"):
        link.call("execute", call_id="c0.0")
    for wrong in ({**what, "call": "c9.9"}, {**what, "session": "another000"}):
        link.append((kind, {**data, "action": wrong, "action_hash": action_hash(wrong)}))
        with refused("refused"):
            link.call("execute", call_id="c0.0")
    assert os.listdir(work) == []
    assert "tool.started" not in fleet.types()


def test_a_decision_starts_its_action_once(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    what = action(work, "c0.0", ["sh", "-c", "echo x >> marker"])
    digest = action_hash(what)
    request = {
        "approval_id": "aaaaaaaa",
        "kind": "tool",
        "title": "t",
        "options": ["allow", "deny"],
        "call_id": "c0.0",
        "action_hash": digest,
    }
    link.append(proposed("c0.0"), judged(what, "ask"), ("approval.requested", request))
    decision = {"approval_id": "aaaaaaaa", "decision_id": "d1", "decision": "allow", "call_id": "c0.0"}
    with refused("refused"):
        link.append(("approval.decided", {**decision, "action_hash": "0" * 64}))
    link.append(("approval.decided", {**decision, "action_hash": digest}))
    with refused("refused"):
        link.append(("approval.decided", {**decision, "action_hash": digest}))
    link.call("execute", call_id="c0.0")
    with pytest.raises(Refused):
        link.call("execute", call_id="c0.0")
    ended(fleet, "c0.0")
    with refused("refused"):
        link.call("execute", call_id="c0.0")
    assert (work / "marker").read_text() == "x\n"
    started = [r["data"] for r in fleet.log() if r["type"] == "tool.started"]
    assert [data["decision_id"] for data in started] == ["d1"]


def test_only_a_living_supervisor_of_the_present_epoch_executes(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    old = fleet.supervisor(epoch=1)
    what = action(work, "c0.0", ["touch", "ran"])
    old.append(*allowed(what))
    brain = fleet.brain(old)
    for link in (brain, fleet.link()):
        if link is not brain:
            link.hello("viewer")
        with refused("forbidden"):
            link.call("execute", call_id="c0.0")
    new = fleet.supervisor(epoch=2)
    with pytest.raises(ConnectionError):
        old.call("execute", call_id="c0.0")
    assert not (work / "ran").exists()
    new.call("execute", call_id="c0.0")
    assert ended(fleet, "c0.0")["status"] == "ok"


def test_changed_preconditions_are_stale_and_nothing_is_appended(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    what = action(work, "c0.0", ["touch", "ran"], pre={"files": {"script.sh": "absent"}})
    link.append(*allowed(what))
    (work / "script.sh").write_text("swapped")
    before = fleet.types()
    reply = link.call("execute", call_id="c0.0")
    assert "script.sh" in reply["stale"][0]
    assert fleet.types() == before
    (work / "script.sh").unlink()
    assert link.call("execute", call_id="c0.0")["started"] is True
    ended(fleet, "c0.0")


def test_an_action_in_a_blob_is_read_and_checked(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    what = action(work, "c0.0", ["sh", "-c", "exit 0 # " + "x" * 20_000])
    blob = link.call("blob", data=base64.b64encode(canonical(what)).decode())
    kind, data = judged(what)
    del data["action"]
    link.append(proposed("c0.0"), (kind, {**data, "action_blob": {"sha": blob["sha"], "bytes": blob["bytes"]}}))
    path = blobs.path(fleet.folder().blobs, blob["sha"])
    good = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(good.replace(b"exit 0", b"exit 1"))
    with refused("refused"):
        link.call("execute", call_id="c0.0")
    path.write_bytes(good)
    link.call("execute", call_id="c0.0")
    assert ended(fleet, "c0.0")["exit_code"] == 0


def test_long_output_is_a_blob_and_endless_output_is_capped(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    end = run(fleet, link, action(work, "c0.0", ["seq", "1", "20000"]))
    whole = b"".join(b"%d\n" % i for i in range(1, 20001))
    assert blobs.get(fleet.folder().blobs, end["output"]["sha"]) == whole
    assert end["preview"].startswith("1\n2\n")
    assert end["preview"].endswith("19999\n20000\n")
    assert len(end["preview"]) < 8400
    assert "truncated" not in end
    link.append(*allowed(action(work, "c0.1", ["yes", "flood"], output_bytes=1_000_000)))
    link.call("execute", call_id="c0.1")
    viewer = fleet.link()
    viewer.hello("viewer")
    for _ in range(50):
        viewer.call("stats")
    wait_until(
        "more came than is kept",
        lambda: sum(path.stat().st_size for path in fleet.folder().spool.iterdir()) >= 1_000_000,
    )
    for _ in range(50):
        viewer.call("stats")
    assert fleet.link().hello("viewer")["running"] == ["c0.1"], "the keeper answers while the tool still floods it"
    link.call("cancel", call_id="c0.1")
    end = ended(fleet, "c0.1")
    assert (end["status"], end["truncated"], end["output"]["bytes"]) == ("cancelled", True, 1_000_000)


def test_calls_of_a_session_run_one_at_a_time_in_order(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    calls = [
        action(work, f"c0.{i}", ["sh", "-c", f"echo start{i} >> order; sleep 0.05; echo end{i} >> order"])
        for i in range(3)
    ]
    for what in calls:
        link.append(*allowed(what))
    numbers = [link.send("execute", call_id=what["call"]) for what in calls]
    for number in numbers:
        assert link.reply(number)["started"] is True
    ended(fleet, "c0.2")
    assert (work / "order").read_text().split() == ["start0", "end0", "start1", "end1", "start2", "end2"]


def test_a_waiting_call_is_forgotten_when_its_supervisor_goes(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    go = work.parent / "go"
    held = ["sh", "-c", f"touch ran0; while ! [ -e {go} ]; do sleep 0.01; done"]
    first, second, third = (
        action(work, f"c0.{i}", argv) for i, argv in enumerate((held, ["touch", "ran1"], ["touch", "ran2"]))
    )
    for what in (first, second, third):
        link.append(*allowed(what))
    link.call("execute", call_id="c0.0")
    link.send("execute", call_id="c0.1")
    dropped = link.send("execute", call_id="c0.2")
    link.call("cancel", call_id="c0.2")
    with refused("cancelled"):
        link.reply(dropped)
    viewer = fleet.link()
    viewer.hello("viewer")
    link.close()
    wait_until("the keeper knows that its supervisor went", lambda: viewer.call("stats")["connections"] == 1)
    go.touch()
    assert ended(fleet, "c0.0")["status"] == "ok"
    again = fleet.supervisor(epoch=2)
    again.append(note("after"))
    assert sorted(os.listdir(work)) == ["ran0"]
    assert ended(fleet, "c0.2")["status"] == "cancelled"


def daemon(work: Path) -> list[str]:
    """A command that leaves a daemon with a session of its own, then sleeps."""
    return [
        "sh",
        "-c",
        f"setsid sh -c 'echo $$ > {work}/daemon; exec sleep 300' & echo $$ > {work}/leader; echo ready; exec sleep 300",
    ]


def command(pid: int) -> bytes:
    """The command line of a process; nothing when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def pids_of(work: Path) -> list[int]:
    def look() -> list[int]:
        found = [work / name for name in ("leader", "daemon")]
        return (
            [int(path.read_text()) for path in found]
            if all(path.exists() and path.read_text().strip() for path in found)
            else []
        )

    found: list[int] = wait_until("the tool and its daemon run", look)
    return found


def test_cancel_ends_the_whole_tree(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    link.append(*allowed(action(work, "c0.0", daemon(work))))
    link.call("execute", call_id="c0.0")
    pids = pids_of(work)
    assert fleet.link().hello("viewer")["running"] == ["c0.0"]
    with refused("refused"):
        link.append(("tool.ended", {"call_id": "c0.0", "status": "ok"}))
    link.call("cancel", call_id="c0.0")
    assert ended(fleet, "c0.0")["status"] == "cancelled"
    for pid in pids:
        wait_gone(pid)
    with refused("not_running"):
        link.call("cancel", call_id="c0.0")


def test_a_daemon_does_not_outlive_a_call_that_ended_by_itself(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    script = (
        f"setsid sh -c 'echo $$ > {work}/daemon; exec sleep 300' & while ! [ -s {work}/daemon ]; do sleep 0.01; done;"
        " echo bye"
    )
    end = run(fleet, fleet.supervisor(), action(work, "c0.0", ["sh", "-c", script]))
    assert (end["status"], end["preview"]) == ("ok", "bye\n")
    wait_gone(int((work / "daemon").read_text()))


def test_sigterm_cancels_the_running_call_and_records_it(fleet: Keepers, work: Path) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    link.append(*allowed(action(work, "c0.0", daemon(work))))
    link.call("execute", call_id="c0.0")
    pids = pids_of(work)
    os.kill(pid, signal.SIGTERM)
    wait_gone(pid)
    for gone in pids:
        wait_gone(gone)
    assert ended(fleet, "c0.0")["status"] == "cancelled"


def test_a_sigterm_that_reaches_the_call_before_its_keeper_is_a_cancel_too(fleet: Keepers, work: Path) -> None:
    """A machine that goes down sends one to every process, in no order; a program that sends itself one has failed."""
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    own = run(fleet, link, action(work, "c0.0", ["sh", "-c", "kill -TERM $$"]))
    assert (own["status"], own["exit_code"]) == ("error", 143)
    link.append(*allowed(action(work, "c0.1", ["sleep", "300"])))
    link.call("execute", call_id="c0.1")
    call = wait_until(
        "the call's program", lambda: next((p for p in descendants(pid) if command(p) == b"sleep\x00300\x00"), None)
    )
    leader = next(p for p in descendants(pid) if call in (p, *descendants(p)))
    os.kill(call, signal.SIGTERM)
    wait_until("the keeper has taken its end", lambda: not Path(f"/proc/{leader}").exists())
    os.kill(pid, signal.SIGTERM)
    wait_gone(pid)
    assert (ended(fleet, "c0.1")["status"], ended(fleet, "c0.1")["exit_code"]) == ("cancelled", 143)


def test_a_keeper_killed_while_it_waits_for_its_own_sigterm_leaves_the_end_known(fleet: Keepers, work: Path) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    link.append(*allowed(action(work, "c0.0", ["sh", "-c", "kill -TERM $$"])))
    link.call("execute", call_id="c0.0")
    wait_until("the end in its spool", lambda: any(fleet.folder().spool.glob("c0.0*.json")))
    fleet.kill(pid)
    fleet.spawn()
    assert (ended(fleet, "c0.0")["status"], ended(fleet, "c0.0")["exit_code"]) == ("error", 143)


def test_shutdown_without_kill_waits_for_the_call(fleet: Keepers, work: Path) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    held = ["sh", "-c", "while ! [ -e go ]; do sleep 0.01; done; echo done"]
    link.append(*allowed(action(work, "c0.0", held)), *allowed(action(work, "c0.1", ["touch", "ran"])))
    link.call("execute", call_id="c0.0")
    number = link.send("shutdown", kill=False)
    with refused("shutting_down"):
        link.call("execute", call_id="c0.1")
    (work / "go").touch()
    link.reply(number)
    wait_gone(pid)
    assert ended(fleet, "c0.0")["preview"] == "done\n"
    assert not (work / "ran").exists()


def test_what_cannot_be_started_ends_as_refused(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    what = action(work, "c0.0", ["true"], access="sandbox", cwd="/elsewhere")
    link.append(*allowed(what))
    with refused("cannot_start"):
        link.call("execute", call_id="c0.0")
    end = ended(fleet, "c0.0")
    assert end["status"] == "refused"
    link.append(*allowed({**action(work, "c1.0", ["true"], access="sandbox"), "tool": "no_such"}))
    with refused("cannot_start"):
        link.call("execute", call_id="c1.0")
    assert "no tool 'no_such'" in ended(fleet, "c1.0")["preview"]
    assert "tool.started" not in fleet.types()


def test_a_tool_sees_neither_the_keepers_descriptors_nor_its_environment(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    end = run(fleet, fleet.supervisor(), action(work, "c0.0", [sys.executable, "-I", "-c", code]))
    assert set(json.loads(end["preview"])) <= {"PATH", "HOME", "LC_CTYPE"}
    end = run(fleet, fleet.supervisor(epoch=2), action(work, "c0.1", ["sh", "-c", "ls -l /proc/self/fd"]))
    assert "socket:" not in end["preview"]
    assert "jsonl" not in end["preview"]

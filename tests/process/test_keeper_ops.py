"""A real keeper and real sockets: records, roles, leases, epochs, subscriptions, the lock, the ways to leave."""

from __future__ import annotations

import base64
import fcntl
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.eventlog import blobs, reader
from harness.linux import proc
from harness.protocol.connection import frames
from tests.process.keeperlib import SID, Keepers, Refused, keepers, note, proposed, wait_gone, wait_until


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    with keepers(tmp_path) as fleet:
        yield fleet


def refused(code: str):
    return pytest.raises(Refused, check=lambda exc: exc.code == code)


def test_a_keeper_starts_detached_and_says_who_it_is(fleet: Keepers) -> None:
    answer = fleet.spawn()
    hello = fleet.link().hello("viewer")
    assert {key: hello[key] for key in ("sid", "pid", "start", "boot")} == {
        "sid": SID,
        **{k: answer[k] for k in ("pid", "start", "boot")},
    }
    assert (hello["head"], hello["running"], hello["poisoned"], hello["gen"]) == (0, [], "", 0)
    assert proc.alive(proc.Identity(answer["pid"], answer["start"], answer["boot"]))
    assert os.getsid(answer["pid"]) != os.getsid(0)
    assert fleet.types() == ["keeper.started"]
    assert (fleet.folder().keeper_socket.stat().st_mode & 0o777) == 0o600


def test_keepers_outlive_their_nursery(fleet: Keepers) -> None:
    pid = fleet.spawn()["pid"]
    fleet.fork_server.shutdown(socket.SHUT_RDWR)
    wait_gone(fleet.nursery_pid)
    assert fleet.link().hello("viewer")["pid"] == pid


def test_two_keepers_of_one_session_are_impossible(fleet: Keepers) -> None:
    for _ in range(6):
        fleet.ask()
    answers = fleet.answers(6)
    started = [a for a in answers if a["ok"]]
    fleet.pids += [a["pid"] for a in started]
    assert len(started) == 1
    assert {a["error"]["code"] for a in answers if not a["ok"]} == {"already_running"}
    assert fleet.link().hello("viewer")["pid"] == started[0]["pid"]
    assert fleet.types() == ["keeper.started"]


def test_a_keeper_that_comes_late_does_not_bring_back_its_session(fleet: Keepers) -> None:
    """A launch was given up, or a session removed, before its keeper came."""
    where = {"state": str(fleet.folders.state), "runtime": str(fleet.folders.runtime)}
    fleet.fork_server.sendall(frames.encode({"id": 1, "op": "spawn", "sid": SID, **where}))
    (answer,) = fleet.answers(1)
    assert (answer["ok"], answer["error"]["code"]) == (False, "gone")
    assert "given up" in answer["error"]["message"]
    assert not fleet.folder().root.exists()


def test_the_nursery_answers_nonsense_and_serves_on(fleet: Keepers) -> None:
    with refused("spawn"):
        fleet.spawn("../../etc")
    with refused("bad_request"):
        fleet.spawn(fault="keeper.nowhere:kill")
    fleet.spawn()


def test_supervisor_and_brain_append_and_a_viewer_may_not(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    assert supervisor.append(note("one"), note("two"), cls="B")["last"] == 2
    brain = fleet.brain(supervisor, gen=7)
    reply = brain.append(note("three"), expect=3)
    records = fleet.log()
    assert reply["first"] == reply["last"] == 4
    assert reply["hash"] == records[-1]["_h"]
    assert [(r["actor"], r["gen"]) for r in records] == [
        ("keeper", 0),
        ("supervisor", 0),
        ("supervisor", 0),
        ("keeper", 0),
        ("brain", 7),
    ]
    viewer = fleet.link()
    viewer.hello("viewer")
    with refused("forbidden"):
        viewer.append(note("x"))
    with refused("hello_first"):
        fleet.link().call("stats")
    with refused("proto"):
        fleet.link().call("hello", role="viewer", proto=99)


def test_expect_guards_against_what_the_caller_did_not_see(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    supervisor.append(note("one"), expect=0)
    with refused("conflict"):
        supervisor.append(note("two"), expect=0)
    assert len(fleet.log()) == 2


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (("tool.judged", {"call_id": "c1.0"}), "refused"),
        (("user.message", {"text": "I am the human", "origin": "human"}), "refused"),
        (("user.message", {"text": "I am the human"}), "refused"),
        (("approval.decided", {"approval_id": "a", "decision_id": "d", "decision": "allow"}), "refused"),
        (("lease.granted", {"gen": 9, "epoch": 9}), "refused"),
    ],
)
def test_a_brain_appends_only_its_own_types(fleet: Keepers, record: tuple[str, dict[str, object]], code: str) -> None:
    fleet.spawn()
    brain = fleet.brain(fleet.supervisor())
    with refused(code):
        brain.append(note("before"), record)
    assert fleet.types() == ["keeper.started", "lease.granted"], "nothing of a refused batch is written"
    brain.append(("user.message", {"text": "checks failed", "origin": "harness"}))


def test_the_road_is_enforced_for_a_whole_batch(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    with refused("refused"):
        supervisor.append(proposed("c0.0"), proposed("c0.0"))
    with refused("refused"):
        supervisor.append(("tool.ended", {"call_id": "c0.0", "status": "ok"}))
    with pytest.raises(Refused):
        supervisor.append(("tool.proposed", {"tool": "exec"}))
    with refused("refused"):
        supervisor.append(("keeper.started", {}))
    with refused("bad_record"):
        supervisor.append(note("small"), note("x" * 1_048_576))
    assert fleet.types() == ["keeper.started"]
    supervisor.append(proposed("c0.0"), ("tool.ended", {"call_id": "c0.0", "status": "denied"}))


def test_a_newer_lease_closes_the_older_brain(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    old = fleet.brain(supervisor, gen=1, secret="one")
    new = fleet.brain(supervisor, gen=2, secret="two")
    old.wait_end()
    assert old.pushes[-1]["code"] == "stale_lease"
    for gen, secret in ((1, "one"), (2, "one"), (1, "two")):
        with refused("stale_lease"):
            fleet.link().hello("brain", gen=gen, secret=secret)
    with refused("stale_lease"):
        supervisor.call("lease", gen=2, epoch=1, secret="x", pid=1, start=1, boot="b")
    new.append(note("still here"))
    supervisor.call("lease_end", gen=2, reason="done", exit_code=0)
    new.wait_end()
    with refused("stale_lease"):
        fleet.link().hello("brain", gen=2, secret="two")
    assert fleet.types()[-1] == "lease.ended"
    assert b"two" not in b"".join(reader.read(fleet.folder().log)), "a secret never reaches the log"


def test_a_newer_supervisor_displaces_the_older_one(fleet: Keepers) -> None:
    fleet.spawn()
    old = fleet.supervisor(epoch=3)
    new = fleet.supervisor(epoch=4)
    old.wait_end()
    assert old.pushes[-1]["code"] == "stale_epoch"
    with refused("stale_epoch"):
        fleet.supervisor(epoch=3)
    with refused("stale_epoch"):
        new.call("lease", gen=1, epoch=3, secret="x", pid=1, start=1, boot="b")
    new.append(note("mine"))


def test_an_epoch_in_the_log_outlives_the_keeper(fleet: Keepers) -> None:
    pid = fleet.spawn()["pid"]
    fleet.brain(fleet.supervisor(epoch=5), epoch=5)
    fleet.kill(pid)
    fleet.spawn()
    with refused("stale_epoch"):
        fleet.supervisor(epoch=4)
    assert fleet.link().hello("viewer")["gen"] == 1
    with refused("stale_lease"):
        fleet.link().hello("brain", gen=1, secret="s3cret")


def test_a_subscriber_gets_history_and_then_live_lines_without_a_gap(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    for number in range(30):
        supervisor.append(*(note(f"{number}.{i} " + "é" * 400) for i in range(60)), cls="C")
    readers = [fleet.link() for _ in range(3)]
    for link, after in zip(readers, (-1, 1700, 1795), strict=True):
        link.hello("viewer")
        link.call("subscribe", after=after)
    for number in range(5):
        supervisor.append(note(f"live {number}"), cls="B")
    on_disk = list(reader.read(fleet.folder().log))
    for link, after in zip(readers, (-1, 1700, 1795), strict=True):
        assert link.lines_until(1805) == on_disk[after + 1 :]
        assert link.pushes[-1]["head"] == 1805
    with refused("conflict"):
        readers[0].call("subscribe", after=99999)


def test_a_subscriber_that_does_not_read_is_closed_and_holds_up_nobody(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    slow = fleet.link()
    slow.hello("viewer")
    slow.call("subscribe", after=0)
    for _ in range(24):
        supervisor.append(note("x" * 400_000), cls="C")
    assert supervisor.call("stats")["connections"] == 1
    slow.wait_end()
    seen = len(slow.lines())
    again = fleet.link()
    again.hello("viewer")
    again.call("subscribe", after=seen)
    assert len(again.lines_until(24)) == 24 - seen


def test_a_long_history_comes_whole_at_the_readers_pace(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    for _ in range(40):
        supervisor.append(*(note("x" * 4000) for _ in range(100)), cls="C")
    slow = fleet.link()
    fast = fleet.link()
    for link in (slow, fast):
        link.hello("viewer")
        link.send("subscribe", after=-1)
    assert len(fast.lines_until(4000)) == 4001
    supervisor.append(note("after"))
    assert slow.lines_until(4001) == list(reader.read(fleet.folder().log)) == fast.lines_until(4001)


def test_one_commit_larger_than_the_queue_reaches_a_reader_that_keeps_up(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    viewer = fleet.link()
    viewer.hello("viewer")
    viewer.call("subscribe", after=0)
    supervisor.append(*(note(f"{number}" + "x" * 900_000) for number in range(7)))
    supervisor.append(note("after"))
    assert viewer.lines_until(8) == list(reader.read(fleet.folder().log, 0))


def test_a_living_brain_goes_on_under_a_new_keeper(fleet: Keepers) -> None:
    pid = fleet.spawn()["pid"]
    fleet.brain(fleet.supervisor(), gen=1)
    fleet.kill(pid)
    fleet.spawn()
    supervisor = fleet.supervisor()
    lease = {"gen": 1, "epoch": 1, "pid": os.getpid(), "start": 1, "boot": "b"}
    with refused("stale_lease"):
        supervisor.call("lease", **{**lease, "pid": 1}, secret="s3cret")
    brain = fleet.brain(supervisor, gen=1)
    brain.append(note("still thinking"))
    assert fleet.types() == ["keeper.started", "lease.granted", "keeper.started", "harness.note"]
    with refused("stale_lease"):
        supervisor.call("lease", **lease, secret="another")


def test_another_process_with_the_lease_and_its_secret_is_refused(fleet: Keepers) -> None:
    """A fork server that was killed between its fork and its answer is asked again for the same brain."""
    fleet.spawn()
    supervisor = fleet.supervisor()
    supervisor.call("lease", gen=1, epoch=1, secret="s3cret", pid=os.getppid(), start=1, boot="b")
    with refused("stale_lease"):
        fleet.link().hello("brain", gen=1, secret="s3cret")
    fleet.brain(supervisor, gen=2).append(note("thinking"))


def test_blobs_are_durable_and_verified(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    data = os.urandom(100_000)
    reply = supervisor.call("blob", data=base64.b64encode(data).decode())
    assert reply["bytes"] == len(data)
    assert blobs.get(fleet.folder().blobs, reply["sha"]) == data
    with refused("bad_request"):
        supervisor.call("blob", data="not base64!")


def test_hostile_frames_cost_only_their_own_connection(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    bodies = [
        b"",
        b"[]",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"op":{}}',
        b'{"op":"hello","role":[],"proto":1}',
        b'{"op":"append"}',
        os.urandom(4096),
    ]
    for body in bodies:
        link = fleet.link()
        link.sock.sendall(frames.frame(body))
        link.wait_end()
    link = fleet.link()
    link.sock.sendall(b"\xff\xff\xff\xff")
    link.wait_end()
    for message in (
        {},
        {"records": 1},
        {"records": [1]},
        {"records": [{"type": "", "data": {}}]},
        {"records": [{"type": "a", "data": {}}], "cls": "Z"},
    ):
        with refused("bad_request"):
            supervisor.call("append", **message)
    with refused("unknown_op"):
        supervisor.call("format_disk")
    with refused("bad_request"):
        supervisor.call("subscribe", after="zero")
    supervisor.append(note("alive"))


def test_at_most_64_connections(fleet: Keepers) -> None:
    fleet.spawn()
    supervisor = fleet.supervisor()
    links = [fleet.link() for _ in range(63)]
    links[-1].hello("viewer")
    with pytest.raises(ConnectionError):
        fleet.link().hello("viewer")
    links[0].close()
    wait_until("there is room again", lambda: supervisor.call("stats")["connections"] == 63)
    fleet.link().hello("viewer")


def test_a_lost_socket_name_is_bound_again(fleet: Keepers) -> None:
    pid = fleet.spawn()["pid"]
    supervisor = fleet.supervisor()
    path = fleet.folder().keeper_socket
    path.unlink()
    os.kill(pid, signal.SIGUSR1)
    wait_until("the socket has its name again", path.exists)
    assert fleet.link().hello("viewer")["pid"] == pid
    supervisor.append(note("the old connection lives on"))


@pytest.mark.parametrize("replaced", [False, True])
def test_a_keeper_whose_folder_is_gone_or_another_one_leaves(fleet: Keepers, replaced: bool) -> None:
    pid = fleet.spawn()["pid"]
    root = fleet.folder().root
    root.rename(root.with_name("aside"))
    if replaced:
        shutil.copytree(root.with_name("aside"), root)
    os.kill(pid, signal.SIGUSR1)
    wait_gone(pid)


def test_a_keeper_ignores_hangup_and_interrupt_and_leaves_on_sigterm(fleet: Keepers) -> None:
    pid = fleet.spawn()["pid"]
    supervisor = fleet.supervisor()
    for sig in (signal.SIGHUP, signal.SIGINT):
        os.kill(pid, sig)
    supervisor.append(note("alive"))
    os.kill(pid, signal.SIGTERM)
    wait_gone(pid)
    assert not fleet.folder().keeper_socket.exists()
    with fleet.folder().lock.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert fleet.types() == ["keeper.started", "harness.note"]


def test_shutdown_answers_and_removes_only_its_own_socket(fleet: Keepers) -> None:
    pid = fleet.spawn()["pid"]
    path = fleet.folder().keeper_socket
    supervisor = fleet.supervisor()
    path.unlink()
    path.write_text("somebody else's")
    supervisor.call("shutdown", kill=True)
    wait_gone(pid)
    assert path.read_text() == "somebody else's"


def test_the_processs_memory_is_closed_to_others_of_the_same_user(fleet: Keepers) -> None:
    pid = fleet.spawn()["pid"]
    assert Path(f"/proc/{pid}/mem").stat().st_uid == 0
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            Path(f"/proc/{pid}/environ").read_bytes()

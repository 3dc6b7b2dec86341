"""Real guardians, supervisors, keepers and brains: one supervisor at a time, everything adopted again, nothing
resurrected.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from harness.events import types as t
from harness.linux.proc import identify
from harness.protocol import client, locks
from harness.protocol.client import Client, SupervisorError, Unreachable, ensure_supervisor
from harness.protocol.connection import frames
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import COMMAND, HOLD, KEY, Fleet, alive, fleet, kill, play, wait_for

ASK = play([("exec", {"argv": ["true"], "access": "network"})], "Done.")


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def launch(f: Fleet, goal: str, name: str, *, key: str = KEY) -> str:
    """Launch over the socket: no start of a command, and the key given with the launch."""
    with Client(UnixSocket(f.folders.supervisor_socket)) as client:
        credential = {"base_url": f.base_url, "key": key}
        return str(
            client.call(
                "launch", repo=str(f.repository()), goal=goal, name=name, base_url=f.base_url, credential=credential
            )["sid"]
        )


def pid_now(f: Fleet) -> int | None:
    try:
        return f.supervisor_pid()
    except Unreachable:
        return None


def replaced(f: Fleet, old: int) -> int:
    """Wait for the next supervisor; its pid."""
    return wait_for("another supervisor", lambda: (p := pid_now(f)) is not None and p != old and p) or 0


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


# -- one at a time ---------------------------------------------------------------------------------


def test_ten_started_at_once_leave_exactly_one(f: Fleet) -> None:
    guardians = [
        subprocess.Popen(
            [sys.executable, "-P", "-s", "-m", "harness.supervisor.guardian"], env=f.env, start_new_session=True
        )
        for _ in range(10)
    ]
    try:
        wait_for("a supervisor", lambda: pid_now(f))
        wait_for("nine guardians to leave", lambda: sum(g.poll() is None for g in guardians) == 1)
        assert sorted(g.returncode for g in guardians if g.poll() is not None) == [0] * 9
        assert (f.folders.state / "epoch").read_text() == "1\n", "no other one ever took an epoch"
        second = subprocess.run(
            [sys.executable, "-P", "-s", "-m", "harness.supervisor.main"],
            env=f.env,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert second.returncode == 4
        assert "another supervisor" in second.stderr
        f.run("supervisor", "stop")
        living = next(g for g in guardians if g.returncode in (None, 0) and g.wait(60) == 0)
        assert living.returncode == 0
        wait_for("every guardian to be gone", lambda: all(g.poll() is not None for g in guardians))
        assert not f.folders.supervisor_socket.exists()
        assert not locked(f.folders.supervisor_lock)
    finally:
        for g in guardians:
            if g.poll() is None:
                g.kill()
            g.wait()


def test_one_that_was_started_is_waited_for_longer_than_one_that_does_not_answer(f: Fleet) -> None:
    with ensure_supervisor(f.folders, timeout=0.0) as client:
        assert client.hello["pid"] == pid_now(f)
    f.run("supervisor", "stop")
    with pytest.raises(Unreachable, match="did not start within 0 s"):
        ensure_supervisor(f.folders, starting=0.0)


def test_killed_guardian_is_replaced_and_the_key_survives(f: Fleet) -> None:
    f.run("supervisor", "start")
    (f.folders.config / "key").write_text("")  # from here on only the supervisor's own memory knows a key
    sid = launch(f, ASK, "one")
    f.wait_state(sid, "waiting")
    first = f.supervisor_pid()
    kill(parent(first))
    second = replaced(f, first)
    assert parent(second) != parent(os.getpid())
    kill(second)
    third = replaced(f, second)
    assert not alive(first)
    f.approve(f.approval(sid)["approval_id"])
    f.wait_state(sid, "done")
    environ = Path(f"/proc/{third}/environ").read_bytes() + Path(f"/proc/{third}/cmdline").read_bytes()
    assert KEY.encode() not in environ


def test_a_stop_holds_also_when_the_guardian_died_just_before_it(f: Fleet) -> None:
    f.run("supervisor", "start")
    pid = f.supervisor_pid()
    guardian = parent(pid)
    os.kill(pid, signal.SIGSTOP)
    kill(guardian)
    asking = subprocess.Popen([COMMAND, "supervisor", "stop"], env=f.env, stderr=subprocess.PIPE, text=True)
    wait_for("it to be connected", lambda: connected(asking.pid))
    os.kill(pid, signal.SIGCONT)
    said = asking.communicate(timeout=60)[1]
    while asking.returncode:  # it met the moment between the two, and says so
        assert "nothing was stopped" in said
        asking = subprocess.Popen([COMMAND, "supervisor", "stop"], env=f.env, stderr=subprocess.PIPE, text=True)
        said = asking.communicate(timeout=60)[1]
    wait_for("the supervisor to be gone", lambda: not alive(pid))
    wait_for("nobody to be left to start another", lambda: not f.processes())


def connected(pid: int) -> bool:
    """Whether a process has a socket open."""
    with contextlib.suppress(OSError):
        return any(os.readlink(fd).startswith("socket:") for fd in Path(f"/proc/{pid}/fd").iterdir())
    return False


IMPATIENT = """
from harness.supervisor import guardian, sign_of_life
sign_of_life.LOOK_S, sign_of_life.IDLE_S, sign_of_life.STOPPED_S = 1.0, 5.0, 5.0
guardian.main()
"""


def impatient(f: Fleet, log: IO[bytes], before: str = "") -> subprocess.Popen[bytes]:
    """A guardian that waits for a sign of life no longer than a test may take."""
    command = f"{before}exec {sys.executable} -P -s -c '{IMPATIENT}' harness.supervisor.guardian"
    return subprocess.Popen(["sh", "-c", command], env=f.env, start_new_session=True, stderr=log)


def test_a_supervisor_that_stands_still_is_replaced_and_nothing_is_done_twice(f: Fleet) -> None:
    with (f.root / "guardian.log").open("wb") as log:
        guardian = impatient(f, log)
    try:
        wait_for("a supervisor", lambda: pid_now(f))
        sid = launch(f, play([HOLD], [("exec", {"argv": ["sh", "-c", "echo once >> effects"]})], "Done."), "one")
        f.wait_event(sid, "tool.started")
        notes = Path(f.row(sid)["worktree"]) / "notes.txt"
        first = f.supervisor_pid()
        os.kill(first, signal.SIGSTOP)
        notes.unlink()
        replaced(f, first)
        assert not alive(first)
        f.wait_state(sid, "done")
        assert (notes.parent / "effects").read_text() == "once\n"
        assert f.violations() == []
        f.run("supervisor", "stop")
        assert guardian.wait(60) == 0
    finally:
        if guardian.poll() is None:
            guardian.kill()
        guardian.wait()


def test_a_stop_ends_a_guardian_whose_supervisor_never_comes_up(f: Fleet) -> None:
    """Begun where no process may have enough memory: whoever starts one elsewhere afterwards would wait for it."""
    told = f.root / "guardian.log"
    with told.open("wb") as log:
        guardian = impatient(f, log, "ulimit -v 60000; ")
    try:
        wait_for("it to fail", lambda: "starts again" in told.read_text())

        def stopped() -> bool:
            """Not while one holds the lock that has not failed yet."""
            return f.run("supervisor", "stop", check=False).stdout == "stopped before it came up\n"

        wait_for("a stop", stopped)
        assert guardian.wait(60) == 0
        assert f.run("supervisor", "stop").stdout == "not running\n"
        f.run("supervisor", "start")
        f.run("supervisor", "stop")
    finally:
        if guardian.poll() is None:
            guardian.kill()
        guardian.wait()


def test_who_waits_reads_why_the_last_one_ended_and_when_the_next_comes(
    f: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "HELLO_S", 0.0)
    f.folders.state.mkdir(parents=True, exist_ok=True)
    with f.folders.supervisor_log.open("ab") as log:
        guardian = impatient(f, log, "ulimit -v 60000; ")
    try:
        wait_for("it to fail", lambda: "starts again" in f.folders.supervisor_log.read_text())
        told: list[str] = []
        with pytest.raises(Unreachable, match="did not start within") as caught:
            ensure_supervisor(f.folders, starting=0.5, tell=told.append)
        assert told
        for words in (str(caught.value), *told):
            assert "the supervisor ended (exit code" in words
            assert "it starts again in" in words
            assert "watchfloor supervisor stop, then watchfloor supervisor start" in words
    finally:
        guardian.kill()
        guardian.wait()


def test_removed_state_folder_ends_the_supervisor(f: Fleet) -> None:
    """Nobody restarts what has no folder any more, and nothing makes the folder again."""
    f.run("supervisor", "start")
    pid = f.supervisor_pid()
    guardian = parent(pid)
    shutil.rmtree(f.folders.state)
    wait_for("the supervisor to leave", lambda: not alive(pid))
    wait_for("the guardian to leave", lambda: not alive(guardian))
    assert not f.folders.state.exists()


# -- adoption --------------------------------------------------------------------------------------


def test_killed_supervisor_takes_up_every_keeper_again(f: Fleet) -> None:
    f.run("supervisor", "start")
    sids = [launch(f, ASK, f"s{i}") for i in range(8)]
    for sid in sids:
        f.wait_state(sid, "waiting")
        f.wait_event(sid, "lease.ended")  # the last record: the brain left because there is nothing to think about
    keepers = {sid: f.keeper_pid(sid) for sid in sids}
    heads = {sid: len(f.records(sid)) for sid in sids}
    before = f.supervisor_pid()
    epoch = json.loads((f.folders.runtime / "supervisor.json").read_text())["epoch"]
    kill(before)
    replaced(f, before)

    def all_back() -> bool:
        return all(r["state"] == "waiting" for r in f.call("sessions")["rows"])

    wait_for("all sessions", all_back)
    assert json.loads((f.folders.runtime / "supervisor.json").read_text())["epoch"] == epoch + 1
    assert {sid: f.keeper_pid(sid) for sid in sids} == keepers, "no keeper was started again"
    assert all(alive(pid) for pid in keepers.values())
    assert {sid: len(f.records(sid)) for sid in sids} == heads, "adoption writes nothing"
    assert len(f.json("approvals")) == 8
    assert f.violations() == []


def test_brain_that_waits_is_taken_over(f: Fleet) -> None:
    """A brain that waits for its tool goes on under the next supervisor: no second one is forked."""
    f.run("supervisor", "start")
    sid = launch(f, play([HOLD], "Done."), "long")
    f.wait_event(sid, "tool.started")
    brain = f.brain_pid(sid)
    before = f.supervisor_pid()
    kill(before)
    replaced(f, before)
    f.wait_state(sid, "running")
    f.release(sid)
    f.wait_state(sid, "done")
    grants = [r for r in f.records(sid) if r.type == "lease.granted"]
    assert len(grants) == 1
    assert getattr(grants[0].body, "pid", 0) == brain
    assert f.violations() == []


def test_stopped_stays_stopped(f: Fleet) -> None:
    f.run("supervisor", "start")
    sid = launch(f, ASK, "one")
    f.wait_state(sid, "waiting")
    with Client(UnixSocket(f.folders.supervisor_socket)) as client:
        pid = int(client.hello["pid"])
        client.call("desire", sid=sid, state="stopped", reason="enough")
        os.kill(pid, signal.SIGKILL)  # right after the reply: the record is durable, nothing more is promised
    replaced(f, pid)
    f.wait_state(sid, "stopped")
    wait_for("its end on record", lambda: f.state(sid).ended)
    wait_for("its keeper to leave", lambda: not alive(f.keeper_pid(sid)))
    assert f.state(sid).approvals == {}
    assert f.json("approvals") == []
    with Client(UnixSocket(f.folders.supervisor_socket)) as client, pytest.raises(SupervisorError) as refused:
        client.call("desire", sid=sid, state="running")
    assert refused.value.code == "ended"
    assert f.violations() == []


def test_launch_interrupted_after_its_intent_goes_on(f: Fleet) -> None:
    f.run("supervisor", "start")
    before = f.supervisor_pid()
    sid = launch(f, play("Done."), "one")
    kill(before)
    replaced(f, before)
    f.wait_state(sid, "done")
    kinds = [r.type for r in f.records(sid)]
    assert kinds.count("session.created") == 1
    assert sum(r.type == "user.message" and getattr(r.body, "origin", "") == "goal" for r in f.records(sid)) == 1
    assert f.violations() == []


def test_keeper_killed_while_parked_comes_back(f: Fleet) -> None:
    f.run("supervisor", "start")
    sid = launch(f, ASK, "one")
    f.wait_state(sid, "waiting")
    old = f.keeper_pid(sid)
    kill(old)
    wait_for("another keeper", lambda: f.keeper_pid(sid) != old)
    f.wait_state(sid, "waiting")
    f.approve(f.approval(sid)["approval_id"])
    f.wait_state(sid, "done")
    assert f.violations() == []


def test_keeper_that_keeps_dying_is_given_up_and_disturbs_nobody(f: Fleet) -> None:
    f.run("supervisor", "start")
    bad = launch(f, ASK, "bad")
    good = launch(f, ASK, "good")
    f.wait_state(bad, "waiting")
    f.wait_state(good, "waiting")
    path = f.folders.session(bad).keeper_socket
    keeper = f.keeper_pid(bad)
    os.kill(keeper, signal.SIGSTOP)
    path.unlink()
    (path / "in the way").mkdir(parents=True)
    kill(keeper)
    wait_for("it to be given up", lambda: "given up" in f.row(bad)["detail"])
    assert f.row(bad)["group"] == "errors"
    (path / "in the way").rmdir()
    path.rmdir()
    f.run("resume", bad)
    f.wait_state(bad, "waiting")
    assert f.row(good)["state"] == "waiting"
    f.approve(f.approval(good)["approval_id"])
    f.wait_state(good, "done")


# -- one bad session -------------------------------------------------------------------------------


def test_damaged_log_is_named_and_disturbs_nobody(f: Fleet) -> None:
    f.run("supervisor", "start")
    bad = launch(f, ASK, "bad")
    good = launch(f, ASK, "good")
    f.wait_state(bad, "waiting")
    f.wait_state(good, "waiting")
    before = f.supervisor_pid()
    os.kill(parent(before), signal.SIGSTOP)  # so that nothing is restarted while the log is damaged
    try:
        kill(before)
        kill(f.keeper_pid(bad))
        segment = f.folders.session(bad).log / "000001.jsonl"
        data = bytearray(segment.read_bytes())
        data[len(data) // 3] ^= 0x20
        segment.write_bytes(data)
    finally:
        os.kill(parent(before) if alive(before) else _guardian(f), signal.SIGCONT)
    replaced(f, before)
    row = f.wait_state(bad, "unknown", "failed")
    assert "damaged" in row["detail"]
    f.approve(f.approval(good)["approval_id"])
    f.wait_state(good, "done")
    assert segment.read_bytes() == bytes(data), "a damaged log is never touched"
    with Client(UnixSocket(f.folders.supervisor_socket)) as client, pytest.raises(SupervisorError, match="damaged"):
        client.call("desire", sid=bad, state="running")


def _guardian(f: Fleet) -> int:
    return next(pid for pid, text in f.processes() if "harness.supervisor.guardian" in text)


# -- the socket ------------------------------------------------------------------------------------


def test_hostile_frames_hurt_only_their_sender(f: Fleet) -> None:
    f.run("supervisor", "start")
    with Client(UnixSocket(f.folders.supervisor_socket)) as good:
        deep = b'{"id":1,"op":"hello","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        for raw in (
            b"\xff\xff\xff\xff",
            b"\x00\x00\x00\x03{]}",
            b"\x00\x00\x00\x02[]",
            os.urandom(4096),
            frames.frame(deep),
        ):
            sock = frames.connect(f.folders.supervisor_socket, 5)
            with contextlib.suppress(OSError):
                sock.sendall(raw)
                sock.shutdown(socket.SHUT_WR)
            sock.settimeout(5)
            with contextlib.suppress(OSError):
                while sock.recv(4096):
                    pass
            sock.close()
        assert good.call("sessions")["rows"] == []
        for op, arguments, code in (
            ("nonsense", {}, "unknown_op"),
            ("desire", {"sid": "x", "state": "running"}, "not_found"),
            ("decide", {"approval_id": 5}, "bad_request"),
            ("decide", {"approval_id": "a", "decision": "allow"}, "not_open"),
            ("launch", {"repo": 1}, "bad_request"),
            ("reserve", {}, "brain_hello_first"),
            ("brain_hello", {"sid": "x", "gen": 1, "secret": ""}, "stale_lease"),
        ):
            with pytest.raises(SupervisorError) as refused:
                good.call(op, **arguments)
            assert refused.value.code == code, op


def test_frozen_subscriber_holds_up_nobody(f: Fleet) -> None:
    f.run("supervisor", "start")
    frozen = Client(UnixSocket(f.folders.supervisor_socket))
    frozen.call("subscribe")
    with Client(UnixSocket(f.folders.supervisor_socket)) as watching:
        watching.call("subscribe")
        sid = launch(f, play("Done."), "one")
        for push in watching.pushes():
            rows = msgspec.convert(push.get("rows", []), list[dict[str, Any]])
            if any(r["sid"] == sid and r["state"] == "done" for r in rows):
                assert push["fleet"]["review"] == 1
                break
    frozen.close()


def test_brain_with_a_wrong_secret_is_refused(f: Fleet) -> None:
    f.run("supervisor", "start")
    sid = launch(f, play([HOLD], "Done."), "one")
    f.wait_event(sid, "tool.started")
    gen = f.state(sid).lease_gen
    with Client(UnixSocket(f.folders.supervisor_socket)) as liar:
        for wrong in ({"gen": gen, "secret": "no"}, {"gen": gen + 1, "secret": "no"}):
            with pytest.raises(SupervisorError) as refused:
                liar.call("brain_hello", sid=sid, **wrong)
            assert refused.value.code == "stale_lease"
    f.release(sid)
    f.wait_state(sid, "done")


# -- decisions -------------------------------------------------------------------------------------


def test_a_decision_is_bound_to_what_was_shown_and_used_once(f: Fleet) -> None:
    f.run("supervisor", "start")
    sid = launch(f, ASK, "one")
    f.wait_state(sid, "waiting")
    view: dict[str, Any] = f.approval(sid)
    with Client(UnixSocket(f.folders.supervisor_socket)) as client:

        def refused(code: str, **arguments: Any) -> None:
            with pytest.raises(SupervisorError) as caught:
                client.call("decide", approval_id=view["approval_id"], **arguments)
            assert caught.value.code == code

        refused("stale", decision="allow", action_hash="0" * 64)
        refused("stale", decision="allow")
        refused("bad_option", decision="retry", action_hash=view["action_hash"])
        refused("bad_edit", decision="allow_edited", action_hash=view["action_hash"], edited={"argv": []})
        refused("bad_request", decision="answer", action_hash=view["action_hash"], message=" ")
        client.call("defer", approval_id=view["approval_id"])
        assert client.call("approvals")["approvals"][0]["deferred"] == ""
        client.call(
            "decide",
            approval_id=view["approval_id"],
            decision="deny",
            action_hash=view["action_hash"],
            message="not now",
        )
        refused("not_open", decision="allow", action_hash=view["action_hash"])
    f.wait_state(sid, "done")
    decided = next(r.body for r in f.records(sid) if r.type == "approval.decided")
    assert (decided.by.uid, decided.by.pid) == (os.getuid(), os.getpid())  # type: ignore[attr-defined]
    assert not any(r.type == "tool.started" for r in f.records(sid))


def test_asked_twice_in_vain_is_not_asked_a_third_time(f: Fleet) -> None:
    f.run("supervisor", "start")
    call = [("exec", {"argv": ["true"], "access": "network"})]
    sid = launch(f, play(call, call, call, "Done."), "one")
    for _ in range(2):
        item = f.approval(sid)
        f.run("reject", item["approval_id"], "--reason", "never")
        wait_for("it to be decided", lambda gone=item["approval_id"]: gone not in f.state(sid).approvals)
    paused = wait_for("a question how to go on", lambda: next((a for a in f.json("approvals")), None))
    assert (paused["kind"], "3 in a row" in paused["title"]) == ("question", True)
    f.run("answer", paused["approval_id"], "leave it")
    f.wait_state(sid, "done")
    ended = [r.body for r in f.records(sid) if isinstance(r.body, t.ToolEnded)]
    assert [e.status for e in ended] == ["denied"] * 3
    kinds = [r.body.kind for r in f.records(sid) if isinstance(r.body, t.ApprovalRequested)]
    assert kinds == ["tool", "tool", "question"]


def test_policy_that_denies_now_voids_an_open_question(f: Fleet) -> None:
    f.run("supervisor", "start")
    sid = launch(f, ASK, "one")
    f.wait_state(sid, "waiting")
    item = f.approval(sid)
    f.folders.policy_file.write_text(
        '[[rule]]\nname = "offline"\nverdict = "deny"\neffect = "network"\nreason = "no network today"\n'
    )

    def in_force() -> bool:
        return str(f.call("status")["policy"]["source"]) == str(f.folders.policy_file)

    wait_for("the policy to be read", in_force)
    f.approve(item["approval_id"])
    f.wait_state(sid, "done")
    assert not any(r.type == "tool.started" for r in f.records(sid))
    assert any(r.type == "approval.stale" for r in f.records(sid))
    judged = [r.body.policy for r in f.records(sid) if isinstance(r.body, t.ToolJudged)]
    assert len(set(judged)) == len(judged) == 2, "each verdict names the policy that it is of"
    assert f.violations() == []


def test_cap_on_tool_calls_asks_and_goes_on_when_raised(f: Fleet) -> None:
    f.run("supervisor", "start")
    read = [("read_file", {"path": "README.md"})]
    sid = str(
        f.json("launch", "--repo", str(f.repository()), "--goal", play(read, read, "Done."), "--cap-calls", "1")[0][
            "sid"
        ]
    )
    item = f.approval(sid)
    assert item["kind"] == "cap"
    assert item["detail"]["cap"] == "session.calls"
    assert sum(r.type == "tool.started" for r in f.records(sid)) == 1
    f.approve(item["approval_id"], "--raise-to", "5")
    f.wait_state(sid, "done")
    assert f.violations() == []


def test_a_stop_waits_for_the_guardian_so_that_nobody_takes_the_fleet_for_a_live_one() -> None:
    with fleet() as f:
        f.run("supervisor", "start")
        supervisor = f.supervisor_pid()
        guardian = locks.holder(f.folders.guardian_lock)
        os.kill(guardian, signal.SIGSTOP)
        stop = subprocess.Popen([COMMAND, "supervisor", "stop"], env=f.env, stdout=subprocess.PIPE, text=True)
        wait_for("the supervisor's end", lambda: identify(supervisor) is None)
        with pytest.raises(subprocess.TimeoutExpired):
            stop.wait(1)
        os.kill(guardian, signal.SIGCONT)
        assert (stop.wait(60), identify(guardian)) == (0, None)
        assert "the fleet is stopped" in f.run("ls").stderr


def test_what_only_looks_leaves_a_stopped_fleet_stopped() -> None:
    with fleet() as f:
        sid = f.launch(play([HOLD], "Done."), name="holder")
        f.wait_event(sid, "tool.started")
        asks = f.launch(play([("ask_person", {"question": "Which of them?"})], "Done."), name="asks")
        item = f.approval(asks)["approval_id"]
        f.run("supervisor", "stop", "--sessions", "leave")
        verbs = (("ls",), ("logs", sid), ("cost",), ("brief", "--since", "1h"))
        for verb in (*verbs, ("approvals",), ("receipts",), ("receipts", item), ("checkpoints", sid)):
            looked = f.run(*verb)
            assert "the fleet is stopped" in looked.stderr, verb
            assert looked.stdout.strip(), verb
        for verb in (("diff", sid), ("approvals", item)):
            refused = f.run(*verb, check=False)
            assert refused.returncode != 0, verb
            assert "needs a supervisor" in refused.stderr, verb
        assert [one["approval_id"] for one in f.json("approvals")] == [item]
        assert {row["sid"] for row in f.json("ls")} == {sid, asks}
        assert f.run("supervisor", "status", check=False).stdout.strip() == "not running"
        assert "this starts it again" in f.run("jobs").stderr
        assert "this starts" not in f.run("jobs").stderr
        f.release(sid)
        f.wait_state(sid, "done")


def test_guardian_and_supervisor_killed_together_come_back_by_themselves_with_the_key(f: Fleet) -> None:
    f.run("supervisor", "start")
    (f.folders.config / "key").write_text("")  # from here on only memory knows a key
    sid = launch(f, ASK, "one")
    f.wait_state(sid, "waiting")
    for _ in range(2):
        pid = f.supervisor_pid()
        guardian = parent(pid)
        os.kill(guardian, signal.SIGSTOP)  # neither sees the other end
        kill(pid)
        kill(guardian)
        wait_for("another supervisor, though nobody asked anything", lambda: locks.held(f.folders.supervisor_lock))
        replaced(f, pid)
    f.approve(f.approval(sid)["approval_id"])
    f.wait_state(sid, "done")


def test_what_was_stopped_stays_stopped_when_its_guardian_is_killed_then(f: Fleet) -> None:
    f.run("supervisor", "start")
    guardian = parent(f.supervisor_pid())
    os.kill(guardian, signal.SIGSTOP)
    f.run("supervisor", "stop", check=False)  # it says that its guardian is still there
    kill(guardian)
    wait_for("everybody to be gone", lambda: not f.processes())
    assert not locks.held(f.folders.supervisor_lock)

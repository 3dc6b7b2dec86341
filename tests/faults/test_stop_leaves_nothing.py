"""``supervisor stop --sessions stop``: whatever state its sessions are in, nothing of ours lives afterwards, or it is
named.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.protocol import locks
from harness.protocol.client import Client, SupervisorError, Unreachable
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import COMMAND, Fleet, alive, fleet, kill, play, wait_for
from tests.process.keeperlib import Keepers

ASK = play([("exec", {"argv": ["true"], "access": "network"})], "Done.")
SLEEP = play([("exec", {"argv": ["sleep", "600"]})], "Done.")


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def waiting(f: Fleet, name: str, goal: str = ASK) -> str:
    sid = f.launch(goal, name=name)
    f.wait_state(sid, "waiting")
    return sid


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def stop_all(f: Fleet) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "supervisor", "stop", "--sessions", "stop"],
        env=f.env | f.extra,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=110,
    )


def nothing_lives(f: Fleet) -> None:
    try:
        wait_for("every process of the fleet to be gone", lambda: not f.processes())
    except AssertionError as exc:
        raise AssertionError(f"{exc}: {f.processes()}\n{f.supervisor_log()}") from exc
    assert locks.kept(f.folders) == []
    assert not locks.held(f.folders.supervisor_lock)
    assert not f.folders.supervisor_socket.exists()
    assert list(f.folders.keeper_sockets.iterdir()) == []


def test_a_keeper_that_hangs_is_ended_and_its_session_still_recorded_as_stopped(f: Fleet) -> None:
    hung = waiting(f, "hung")
    well = waiting(f, "well")
    os.kill(f.keeper_pid(hung), signal.SIGSTOP)
    done = stop_all(f)
    assert done.returncode == 0, done.stderr
    nothing_lives(f)
    for sid in (hung, well):
        assert f.state(sid).ended is not None, "its stop is on record, so nothing resurrects it"


def test_keepers_that_live_without_a_supervisor_are_ended_too(f: Fleet) -> None:
    sid = waiting(f, "alone")
    supervisor = f.supervisor_pid()
    keeper = f.keeper_pid(sid)
    guardian = parent(supervisor)
    os.kill(guardian, signal.SIGSTOP)  # so that nobody starts a supervisor again
    kill(supervisor)
    kill(guardian)
    assert alive(keeper)
    done = stop_all(f)
    assert done.returncode == 0, done.stderr
    nothing_lives(f)
    assert f.state(sid).ended is not None


def _another(f: Fleet, old: int) -> bool:
    try:
        return f.supervisor_pid() != old
    except Unreachable:
        return False


def test_a_keeper_of_a_session_whose_log_is_damaged_is_ended_and_the_session_named(f: Fleet) -> None:
    sid = waiting(f, "torn")
    well = waiting(f, "well")
    keeper = f.keeper_pid(sid)
    supervisor = f.supervisor_pid()
    log = f.folders.session(sid).log / "000001.jsonl"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    kill(supervisor)
    wait_for("the next supervisor", lambda: _another(f, supervisor))
    assert alive(keeper), "the damage is seen by who reads the log anew, and that is not the living keeper"
    done = stop_all(f)
    assert done.returncode == 1
    assert sid in done.stderr
    assert "not on record as stopped" in done.stderr
    nothing_lives(f)
    assert f.state(well).ended is not None


def test_a_session_that_never_got_its_intent_is_ended(f: Fleet) -> None:
    """What a supervisor leaves that dies between the start of a keeper and the first record."""
    f.run("supervisor", "start")
    f.run("supervisor", "stop")
    sid = "aaaaaaaaaa"
    keepers = Keepers(f.root)
    keeper = int(keepers.spawn(sid)["pid"])
    keepers.fork_server.close()
    os.waitpid(keepers.nursery_pid, 0)
    try:
        f.run("supervisor", "start")
        done = stop_all(f)
        assert done.returncode == 0, done.stderr
        assert not alive(keeper)
        nothing_lives(f)
    finally:
        if alive(keeper):  # its environment names nothing of this fleet, so nobody else finds it
            kill(keeper)


def test_launches_at_that_very_moment_leave_no_keeper(f: Fleet) -> None:
    f.run("supervisor", "start")
    f.repository()
    launched: list[str] = []
    refused: list[str] = []
    go = threading.Barrier(3)

    def launch(number: int) -> None:
        go.wait()
        for round_ in range(60):
            try:
                with Client(UnixSocket(f.folders.supervisor_socket)) as client:
                    reply = client.call(
                        "launch", repo=str(f.repository()), goal=SLEEP, name=f"n{number}-{round_}", base_url=f.base_url
                    )
                    launched.append(str(reply["sid"]))
            except (SupervisorError, Unreachable) as exc:
                refused.append(str(exc))
                return

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    go.wait()
    wait_for("a first launch", lambda: launched, 30)
    done = stop_all(f)
    for thread in threads:
        thread.join()
    assert done.returncode == 0, done.stderr
    assert refused, "the floor closed while launches came"
    nothing_lives(f)
    assert [sid for sid in launched if f.state(sid).ended is None] == []


def caught_leaving(f: Fleet, sid: str) -> bool:
    """Stop a session, and its keeper when it has its last record and is about to leave; False when it was faster."""
    keeper = f.keeper_pid(sid)
    with Client(UnixSocket(f.folders.supervisor_socket)) as client:
        client.call("desire", sid=sid, state="stopped")
        f.wait_event(sid, "session.ended")
        try:
            os.kill(keeper, signal.SIGSTOP)
        except ProcessLookupError:
            return False
    return True


def test_a_keeper_that_hangs_when_its_session_has_ended_does_not_survive(f: Fleet) -> None:
    assert any(caught_leaving(f, sid) for sid in [waiting(f, f"late{number}") for number in range(6)])
    f.run("supervisor", "status")
    done = stop_all(f)
    assert done.returncode == 0, done.stderr
    nothing_lives(f)

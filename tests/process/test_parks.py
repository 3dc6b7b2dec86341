"""A park ends in its request: real fleets whose agents go in circles, whose supervisors die around the park, and an
orderly leave.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from harness.events import types as t
from harness.protocol.client import Client, Unreachable
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import KEY, Fleet, fleet, kill, play, wait_for

SAME = [("exec", {"argv": ["sh", "-c", "sleep 0.3"]})]
CIRCLES = play(*[SAME] * 12, "Out of it.")
IN_A_ROW = 5
pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def launch(f: Fleet, goal: str, count: int) -> list[str]:
    """Over one connection: no start of a command."""
    with Client(UnixSocket(f.folders.supervisor_socket)) as client:
        credential = {"base_url": f.base_url, "key": KEY}
        asked = {"repo": str(f.repository()), "goal": goal, "base_url": f.base_url, "credential": credential}
        return [str(client.call("launch", name=f"s{i}", **asked)["sid"]) for i in range(count)]


def kinds(f: Fleet, sid: str) -> list[str]:
    return [r.type for r in f.records(sid)]


def questions(f: Fleet, sid: str) -> list[t.ApprovalRequested]:
    return [r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalRequested) and r.body.kind == "question"]


def settled(f: Fleet, sid: str) -> bool:
    """Nobody thinks any more: its park was asked about and its brain's lease has ended, or it ran to its end."""
    s = f.state(sid)
    return s.terminal or (bool(s.approvals) and s.lease is None)


def went_round_once(f: Fleet, sid: str) -> None:
    """One breaker, one park, one question after it, and no brain between the park and the answer."""
    found = kinds(f, sid)
    assert found.count("breaker.opened") == 1, found
    assert len(questions(f, sid)) == 1, found
    park = found.index("session.parked")
    assert "lease.granted" not in found[park:], found[park:]
    assert "session.ended" not in found, found


def test_many_that_go_in_circles_each_end_in_one_question(f: Fleet) -> None:
    f.run("supervisor", "start")
    sids = launch(f, CIRCLES, 14)
    for sid in sids:
        wait_for(f"{sid} to stand still", lambda sid=sid: settled(f, sid), 110)
    for sid in sids:
        went_round_once(f, sid)
    assert f.violations() == []


def test_a_park_made_while_no_supervisor_lives_is_asked_about_by_the_next(f: Fleet) -> None:
    """The supervisor is frozen while the last call runs and killed once its brain has parked, again and again."""
    f.run("supervisor", "start")
    sids = launch(f, CIRCLES, 6)
    late: set[str] = set()
    """Sessions that parked, or whose last call began under an earlier supervisor: their brains may have to reach the
    next one first.
    """

    def begun() -> set[str]:
        return {sid for sid in sids if kinds(f, sid).count("tool.started") >= IN_A_ROW}

    def fresh() -> set[str]:
        return begun() - late

    while len(late) < len(sids) and len(late) < 4:
        sid = min(wait_for("a session's last call", fresh, 90))
        pid = f.supervisor_pid()
        os.kill(pid, signal.SIGSTOP)
        wait_for("its park", lambda sid=sid: "session.parked" in kinds(f, sid))
        kill(pid)
        wait_for("the next supervisor", lambda pid=pid: another(f, pid))
        late.update(begun())
    for sid in sids:
        wait_for(f"{sid} to stand still", lambda sid=sid: settled(f, sid), 90)
    for sid in sids:
        went_round_once(f, sid)
    answered = sids[0]
    f.run("answer", questions(f, answered)[0].approval_id, "read something else")
    wait_for("the answered one to think again", lambda: kinds(f, answered).count("lease.granted") > 1)
    assert f.violations() == []


def test_an_orderly_leave_parks_nobody(f: Fleet) -> None:
    """The supervisor is asked to leave again and again while every agent asks its model as fast as it can."""
    f.run("supervisor", "start")
    writes = [[("write_file", {"path": f"n{i}.txt", "content": "x"})] for i in range(12)]
    sids = launch(f, play(*writes, "Done."), 5)
    for turn in (2, 6):
        wait_for(
            "the next turns", lambda turn=turn: max(kinds(f, sid).count("model.message") for sid in sids) >= turn, 90
        )
        with Client(UnixSocket(f.folders.supervisor_socket), timeout=60) as client:
            client.call("shutdown", sessions="leave")
        f.run("supervisor", "start")
    for sid in sids:
        f.wait_state(sid, "done", timeout=100)
        parks = [r.body for r in f.records(sid) if isinstance(r.body, t.SessionParked)]
        assert parks == [], "nobody parks because a supervisor leaves"
    assert f.violations() == []


def another(f: Fleet, old: int) -> bool:
    try:
        return f.supervisor_pid() != old
    except Unreachable:
        return False

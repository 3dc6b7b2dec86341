"""What is wanted of a session: racing clients, and a stop that nothing undoes."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from harness.events import types as t
from harness.protocol.client import Client, SupervisorError
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import HOLD, KEY, Fleet, fleet, play, wait_for

WISHES = ("stopped", "paused", "running", "running")


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def wish(f: Fleet, sid: str, state: str, together: threading.Barrier, answers: list[tuple[str, str, str]]) -> None:
    """One client of its own: waits for the others, asks, and keeps what it was told."""
    with Client(UnixSocket(f.folders.supervisor_socket), timeout=60) as client:
        together.wait(60)
        try:
            client.call("desire", sid=sid, state=state)
        except SupervisorError as exc:
            answers.append((sid, state, exc.code))
        else:
            answers.append((sid, state, "ok"))


def test_a_stop_that_was_acknowledged_is_not_undone_by_any_race(f: Fleet) -> None:
    """Twelve sessions at work; for each a stop, a pause and two resumes, all forty-eight at once."""
    f.run("supervisor", "start")
    with Client(UnixSocket(f.folders.supervisor_socket)) as client:
        credential = {"base_url": f.base_url, "key": KEY}
        asked = {
            "repo": str(f.repository()),
            "goal": play([HOLD], "Done."),
            "base_url": f.base_url,
            "credential": credential,
        }
        sids = [str(client.call("launch", name=f"s{i}", **asked)["sid"]) for i in range(12)]
    for sid in sids:
        f.wait_event(sid, "lease.granted")
    answers: list[tuple[str, str, str]] = []
    together = threading.Barrier(len(sids) * len(WISHES))
    clients = [
        threading.Thread(target=wish, args=(f, sid, state, together, answers)) for sid in sids for state in WISHES
    ]
    for one in clients:
        one.start()
    for one in clients:
        one.join(90)
    assert len(answers) == len(clients)
    assert {(sid, "stopped", "ok") for sid in sids} <= set(answers), "a stop is always taken"
    assert {code for _, _, code in answers} <= {"ok", "ended"}, "what was refused says that the session has ended"
    for sid in sids:
        f.wait_state(sid, "stopped")
        wait_for("its end on record", lambda sid=sid: f.state(sid).ended)
        wanted = [r.body.state for r in f.records(sid) if isinstance(r.body, t.SessionDesired)]
        acknowledged = [state for s, state, code in answers if s == sid and code == "ok"]
        assert sorted(wanted) == sorted(acknowledged), "what was acknowledged is on record, and nothing else"
        assert "stopped" not in wanted[:-1], f"nothing is wanted of a stopped session any more: {wanted}"
    assert f.violations() == []

"""A reply that takes long shows on the row how far it has come, and its evidence with it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import urllib.request
from pathlib import Path

from harness.protocol.client import Client
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import HOLD, fleet, kill, play, wait_for
from tests.process.test_money_fleet import ask_simulator

SLOW = [{"kind": "trickle", "after_bytes": 700, "rate": 40}]


def test_the_row_says_how_far_a_slow_reply_has_come() -> None:
    with fleet() as f:
        body = json.dumps(SLOW).encode()
        asked = urllib.request.Request(f"{f.base_url}/_sim/faults", body, {"content-type": "application/json"})
        urllib.request.urlopen(asked, timeout=60).close()
        sid = f.launch(play("word " * 2000))
        row = wait_for("the row says how far it is", lambda: r if "KiB so far" in (r := f.row(sid))["detail"] else None)
        assert row["detail"].startswith("asking claude-haiku-5-5: replying, ")
        assert "bytes of the reply came, the newest " in row["evidence"]
        f.run("stop", sid)
        f.wait_state(sid, "stopped")
        assert "KiB so far" not in f.row(sid)["detail"]


def test_a_row_says_of_a_process_that_asks_its_model_nothing_of_those_that_died_before() -> None:
    with fleet() as f:
        ask_simulator(f, "hold", {})
        sid = f.launch(play("Done."))
        for requests in (1, 2):
            f.wait_event_count(sid, "model.request", requests)
            kill(f.brain_pid(sid))
        f.wait_event_count(sid, "model.request", 3)
        wait_for("the row says that it asks", lambda: f.row(sid)["detail"].startswith("asking "))
        assert f.row(sid)["state"] == "running"
        ask_simulator(f, "release", {})
        f.wait_state(sid, "done")


def indexed(index: Path, sid: str) -> bool:
    """The index has the lines of this session."""
    with contextlib.closing(sqlite3.connect(f"file:{index}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT row FROM sessions WHERE sid=?", (sid,)).fetchall()
    return any(b"lines_added" in row for (row,) in rows)


def test_the_row_says_which_command_runs_and_what_it_changed_to_who_looks() -> None:
    with fleet() as f:
        sid = f.launch(play([("write_file", {"path": "new.txt", "content": "one\ntwo\n"})], [HOLD], "Done."))
        wait_for("the command on the row", lambda: "sh -c 'while " in f.row(sid)["detail"])
        row = f.row(sid)
        assert row["state"] == "running"
        assert "files" not in row, "while nobody looks, nothing is counted"
        f.release(sid)
        assert f.wait_state(sid, "done")["detail"] != row["detail"]
        with Client(UnixSocket(f.folders.supervisor_socket), name="looking") as looking:
            looking.call("subscribe")
            row = wait_for("its lines are counted", lambda: r if (r := f.row(sid)).get("files") else None)
            changes = f.call("diff", sid=sid)["files"]
        counted = {"new.txt": 2} | {c["path"]: c["added"] for c in changes}
        assert counted["new.txt"] == 2
        assert row["files"] == len(changes)
        assert row["lines_added"] == sum(c["added"] or 0 for c in changes)
        assert row.get("lines_removed", 0) == sum(c["removed"] or 0 for c in changes)
        wait_for("it is in the index", lambda: indexed(f.folders.index, sid))
        f.run("supervisor", "stop")
        f.run("supervisor", "start")
        assert f.row(sid)["lines_added"] == row["lines_added"], "the index remembers what was counted"


def test_who_changed_nothing_stands_among_the_done_and_not_among_those_to_review() -> None:
    with fleet() as f:
        talker = f.launch(play("All is well."), name="talker")
        reader = f.launch(play([("read_file", {"path": "README.md"})], "Read."), name="reader")
        writer = f.launch(play([("write_file", {"path": "new.txt", "content": "one\n"})], "Done."), name="writer")
        for sid in (talker, reader, writer):
            f.wait_state(sid, "done")
        with Client(UnixSocket(f.folders.supervisor_socket), name="looking") as looking:
            looking.call("subscribe")
            wait_for("all are counted", lambda: all("files" in f.row(sid) for sid in (talker, reader, writer)))
            assert [f.row(sid)["group"] for sid in (talker, reader, writer)] == ["done", "done", "to review"]

"""A defect of one session stays in it, one of the supervisor is said and mended: damaged logs, dead tasks, lost files,
frozen processes.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterator

import pytest

from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.protocol.client import Client, SupervisorError, Unreachable
from harness.protocol.connection.transport import UnixSocket
from harness.protocol.paths import ensure_private
from tests.fleetlib import COMMAND, HOLD, Fleet, alive, fleet, kill, play, wait_for


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def indexed(f: Fleet, sid: str) -> bool:
    """True once the index on disk holds this session."""
    try:
        with sqlite3.connect(f"file:{f.folders.index}?mode=ro", uri=True) as db:
            return bool(db.execute("SELECT 1 FROM sessions WHERE sid=? AND ended=1", (sid,)).fetchall())
    except sqlite3.Error:
        return False


def down(f: Fleet) -> None:
    """Leave the sessions, and wait until nothing of the supervisor lives."""
    f.run("supervisor", "stop")


def break_middle(f: Fleet, sid: str) -> None:
    """A segment is missing in the middle: the log's end is there, and what leads to it is not."""
    log = f.folders.session(sid).log
    (log / "000003.jsonl").write_bytes((log / "000001.jsonl").read_bytes())


def break_bytes(f: Fleet, sid: str, kind: str) -> None:
    """Flip bits of the record after the last one of this type, with good records behind it."""
    path = f.folders.session(sid).log / "000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    at = max(i for i, line in enumerate(lines) if b'"type":"%b"' % kind.encode() in line)
    assert at < len(lines) - 2
    lines[at + 1] = lines[at + 1].replace(b'"actor"', b'"acter"')
    path.write_bytes(b"".join(lines))


# -- one damaged session ---------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["segment", "bytes"])
def test_a_damaged_ended_session_disturbs_nobody(f: Fleet, damage: str) -> None:
    hurt = f.launch(play([("exec", {"argv": ["true"]})], "Done."), name="hurt")
    other = f.launch(play("Done."), name="other")
    for sid in (hurt, other):
        f.wait_state(sid, "done")
        wait_for(f"{sid} in the index", lambda sid=sid: indexed(f, sid))
    spent = f.row(hurt)["spent_nano"]
    assert spent > 0
    down(f)
    if damage == "segment":
        break_middle(f, hurt)
    else:
        break_bytes(f, hurt, "model.message")
    f.run("show", "hurt")  # the index is believed while the log's end fits; looking at the session reads the log
    rows = {row["sid"]: row for row in f.json("ls")}
    assert rows[other]["state"] == "done"
    assert rows[hurt]["state"] == "failed"
    assert rows[hurt]["name"] == "hurt", "its name is known from the log as far as it goes, or from the index"
    assert rows[hurt]["spent_nano"] == spent, "the ledger knows what it cost"
    assert "damaged" in rows[hurt]["detail"]
    new = f.launch(play("Done."), name="new")
    f.wait_state(new, "done")
    shown = f.run("show", "hurt").stdout
    assert "damaged" in shown
    cost = next(s for s in f.json("cost")[0]["sessions"] if s["sid"] == hurt)
    assert (cost["name"], cost["spent_nano"]) == ("hurt", spent)
    logs = f.run("logs", hurt, check=False)
    assert logs.returncode == 1
    assert "damaged" in logs.stderr
    assert "Traceback" not in logs.stderr
    if damage == "bytes":
        assert "session" in logs.stdout or "worktree" in logs.stdout, "what is good is printed"
    f.run("stop", hurt)
    assert f.row(hurt)["state"] == "stopped"
    refused = f.run("rm", hurt, check=False)
    assert refused.returncode == 5
    assert "--force" in refused.stderr
    f.run("rm", "--force", hurt)
    assert hurt not in {row["sid"] for row in f.json("ls")}


def test_a_damaged_living_session_can_be_stopped_and_stays_so(f: Fleet) -> None:
    sid = f.launch(play([HOLD], "Done."), name="hurt")
    f.wait_event(sid, "tool.started")
    down(f)
    kill(f.keeper_pid(sid))
    break_bytes(f, sid, "session.created")
    f.run("supervisor", "start")
    row = f.wait_state(sid, "failed")
    assert row["name"] == "hurt"
    assert "damaged" in row["detail"]
    f.run("stop", sid)
    assert f.row(sid)["state"] == "stopped"
    down(f)
    f.run("supervisor", "start")
    assert f.row(sid)["state"] == "stopped", "it stays so, though its log can take no record"
    assert f.run("resume", sid, check=False).returncode == 5
    assert "kept" in f.run("rm", "--force", sid).stdout or not (f.folders.worktrees / sid).exists()


# -- a supervisor that cannot serve ----------------------------------------------------------------


def test_a_supervisor_that_cannot_serve_leaves_and_says_why(f: Fleet) -> None:
    f.folders.supervisor_socket.mkdir()  # nobody can listen at a name that is a folder
    started = f.run("supervisor", "start", check=False)
    assert started.returncode == 3
    assert "supervisor.sock" in started.stderr
    assert "did not start" not in started.stderr.splitlines()[0]
    f.folders.supervisor_socket.rmdir()
    f.run("supervisor", "start")


def test_a_file_that_cannot_be_read_just_now_is_tried_again(f: Fleet) -> None:
    """As on a failing disk, or without a descriptor left: that may end, and nobody may be there to start it anew."""
    version = f.folders.state / "VERSION"
    version.mkdir()
    started = f.run("supervisor", "start", check=False)
    assert started.returncode == 3
    assert "cannot serve" in started.stderr
    version.rmdir()

    def served() -> int | None:
        try:
            return f.supervisor_pid()
        except Unreachable:
            return None

    wait_for("the guardian to start one that serves", served)


# -- the epoch -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["missing", "garbage"])
def test_a_lost_epoch_is_found_again_from_the_keepers(f: Fleet, how: str) -> None:
    sid = f.launch(play([HOLD], "Done."), name="one")
    f.wait_event(sid, "tool.started")
    for _ in range(3):
        down(f)
        f.run("supervisor", "start")
    epoch = int((f.folders.state / "epoch").read_text())
    keeper = f.keeper_pid(sid)
    down(f)
    if how == "missing":
        (f.folders.state / "epoch").unlink()
    else:
        (f.folders.state / "epoch").write_text("none\n")
    f.run("supervisor", "start")
    assert int((f.folders.state / "epoch").read_text()) > epoch
    assert f.keeper_pid(sid) == keeper
    f.release(sid)
    f.wait_state(sid, "done")
    assert f.violations() == []


def test_a_lost_epoch_with_a_mute_keeper_is_said_at_once(f: Fleet) -> None:
    sid = f.launch(play([HOLD], "Done."), name="one")
    f.wait_event(sid, "tool.started")
    keeper = f.keeper_pid(sid)
    down(f)
    (f.folders.state / "epoch").unlink()
    os.kill(keeper, signal.SIGSTOP)
    try:
        told = f.run("supervisor", "start", check=False)
        assert told.returncode == 3
        assert "epoch" in told.stderr
        assert str(keeper) in told.stderr
        assert "did not start" not in told.stderr
        assert not (f.folders.state / "epoch").exists(), "nothing was guessed"
    finally:
        os.kill(keeper, signal.SIGCONT)
    f.run("supervisor", "start")


# -- names -----------------------------------------------------------------------------------------


def test_two_launches_race_for_one_name(f: Fleet) -> None:
    f.run("supervisor", "start")
    repo = str(f.repository())
    outcomes: list[str] = []

    def go(client: Client) -> None:
        try:
            outcomes.append(
                str(client.call("launch", repo=repo, goal=play("Done."), name="same", base_url=f.base_url)["name"])
            )
        except SupervisorError as exc:
            outcomes.append(exc.code)

    clients = [Client(UnixSocket(f.folders.supervisor_socket)) for _ in range(6)]
    threads = [threading.Thread(target=go, args=(c,)) for c in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    assert sorted(outcomes) == ["name_taken"] * 5 + ["same"]
    assert [row["name"] for row in f.json("ls")] == ["same"]


def test_no_session_is_named_like_anothers_id(f: Fleet) -> None:
    sid = f.launch(play("Done."), name="one")
    repo = str(f.repository())
    for name, why in ((sid, "is the id of session"), (sid[:4], "is the beginning of the id of session")):
        refused = f.run("launch", "--repo", repo, "--goal", play("Done."), "--name", name, check=False)
        assert refused.returncode == 5
        assert why in refused.stderr
    assert f.row(sid[:4])["sid"] == sid
    unnamed = f.launch(sid)  # a name that is made from the goal gives way by itself
    assert f.row(unnamed)["name"] == f"{sid}-2"


def test_unnamed_launches_that_race_get_names_of_their_own(f: Fleet) -> None:
    f.run("supervisor", "start")
    repo = str(f.repository())
    names: list[str] = []

    def go(client: Client) -> None:
        names.append(str(client.call("launch", repo=repo, goal=play("Done."), base_url=f.base_url)["name"]))

    clients = [Client(UnixSocket(f.folders.supervisor_socket)) for _ in range(4)]
    threads = [threading.Thread(target=go, args=(c,)) for c in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    assert len(names) == len(set(names)) == 4


# -- frozen ----------------------------------------------------------------------------------------


def test_a_frozen_supervisor_is_named_and_what_to_do(f: Fleet) -> None:
    f.run("supervisor", "start")
    pid = f.supervisor_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable):
            Client(UnixSocket(f.folders.supervisor_socket), timeout=1.0)
        told = subprocess.run([COMMAND, "ls"], env=f.env, capture_output=True, text=True, timeout=90)
        assert told.returncode == 3
        assert f"process {pid}" in told.stderr
        assert f"kill -CONT {pid}" in told.stderr
    finally:
        os.kill(pid, signal.SIGCONT)
    f.run("ls")
    assert f.supervisor_pid() == pid


def test_frozen_keeps_nobody_from_ending_it(f: Fleet) -> None:
    """What the message advises works: kill it, and the next command finds a new one."""
    sid = f.launch(play([HOLD], "Done."), name="one")
    f.wait_event(sid, "tool.started")
    pid = f.supervisor_pid()
    os.kill(pid, signal.SIGSTOP)
    kill(pid)
    f.run("ls")
    f.release(sid)
    f.wait_state(sid, "done")
    assert not alive(pid)


def test_a_launch_that_a_crash_cut_off_leaves_nothing(f: Fleet) -> None:
    """The supervisor died between the session's keeper and its intent: nobody was told of it, so it never was."""
    f.run("supervisor", "start")
    down(f)
    begun = f.folders.session("6fdaaaaaaa")
    ensure_private(begun.root)
    log = LogWriter.open(begun.log, begun.root.name)
    started = t.to_wire(t.KeeperStarted(pid=1, start=1, boot="another"))
    log.append(started["type"], started["data"], actor="keeper")
    log.commit(True)
    log.close()
    f.run("supervisor", "start")
    wait_for("it to be gone", lambda: not list(f.folders.sessions.iterdir()))
    assert f.json("ls") == []
    kept = f.launch(play("Done."), name="kept")
    f.wait_state(kept, "done")
    assert f.violations() == []

"""Damage in the log of a session that has ended, and whose log is several segments long: it stays with that session,
which says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.eventlog.reader import segment_name, segments, verify
from harness.eventlog.writer import LogWriter
from harness.events.types import Record
from tests.fleetlib import HOLD, Fleet, fleet, play, wait_for

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(240)]


def into_segments(f: Fleet, sid: str) -> Path:
    """The same records in several segments, as a long session has them."""
    records: list[Record] = f.records(sid)
    folder = f.folders.session(sid).log
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    log = LogWriter.open(folder, sid, segment_bytes=1500)
    for r in records:
        log.append(r.type, msgspec.to_builtins(r.body), actor=r.actor, gen=r.gen)
        log.commit(sync=False)
    log.close()
    assert verify(folder).ok
    assert len(segments(folder)) > 3
    return folder


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a segment is missing": lambda log: (log / segment_name(2)).unlink(),
    "the first segment is missing": lambda log: (log / segment_name(1)).unlink(),
    "a segment is empty": lambda log: (log / segment_name(2)).write_bytes(b""),
    "a flipped bit in a sealed segment": lambda log: flip(log / segment_name(2), 700),
    "a flipped bit in the header of the newest": lambda log: flip(log / segment_name(segments(log)[-1]), 20),
    "a segment is a folder": lambda log: ((log / segment_name(2)).unlink(), (log / segment_name(2)).mkdir()),
}
SAID_BY_THE_ROW = {"a segment is missing", "the first segment is missing"}
"""What is seen without reading: the index is no longer believed.

Damage inside the segments of an ended session shows in `verify`.
"""


def test_damage_of_an_ended_session_stays_with_it() -> None:
    with fleet() as f:
        hurt = {
            what: f.launch(play([("write_file", {"path": "x", "content": "y"})], "Done."), name=f"hurt-{n}")
            for n, what in enumerate(DAMAGE)
        }
        for sid in hurt.values():
            f.wait_state(sid, "done")
        at_work = f.launch(
            play([HOLD], [("write_file", {"path": "after.txt", "content": "went on\n"})], "Done."), name="at-work"
        )
        f.wait_event(at_work, "tool.started")
        f.run("supervisor", "stop")
        logs = {what: into_segments(f, sid) for what, sid in hurt.items()}
        f.run("supervisor", "start")
        f.wait_state(next(iter(hurt.values())), "done")
        wait_for("the index knows these logs", lambda: known(f, set(hurt.values())))
        f.run("supervisor", "stop")
        for what, log in logs.items():
            DAMAGE[what](log)

        f.run("supervisor", "start")
        rows = {row["sid"]: row for row in f.json("ls")}
        assert rows.keys() == {*hurt.values(), at_work}
        f.release(at_work)
        f.wait_state(at_work, "done")
        later = f.launch(play("Done."), name="later")
        f.wait_state(later, "done")

        for what in SAID_BY_THE_ROW:
            row = rows[hurt[what]]
            told = f"{row['detail']} {row['evidence']}"
            assert any(word in told for word in ("damage", "missing", "checksum")), f"{what}: {row}"
        done = f.run("verify", check=False)
        assert done.returncode == 1
        for what, log in logs.items():
            assert str(log) in done.stdout + done.stderr, f"{what}: verify does not name it\n{done.stdout}{done.stderr}"
        for n, (what, sid) in enumerate(hurt.items()):
            shown = f.run("show", sid, check=False)
            assert f"hurt-{n}" in shown.stdout, f"{what}: it keeps its name"
            assert "Traceback" not in shown.stderr
        assert "Traceback" not in (f.folders.state / "supervisor.log").read_text()
        assert f.row(at_work)["state"] == "done", "looking at what is damaged harms nobody"


def known(f: Fleet, sids: set[str]) -> bool:
    """True once the index holds these sessions as their logs are now."""
    import sqlite3

    from harness.supervisor.fleet.index import mark_of

    with sqlite3.connect(f"file:{f.folders.index}?mode=ro", uri=True) as db:
        marks = dict(db.execute("SELECT sid, mark FROM sessions"))
    return all(marks.get(sid) == mark_of(f.folders.session(sid).log) for sid in sids)

"""A long log is taken up by its end alone, and a snapshot that is damaged, of another log or ahead of it changes
nothing.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from harness.eventlog.reader import read
from harness.eventlog.writer import LogWriter
from harness.protocol.paths import Folders
from harness.supervisor.fleet.session import Session

EVENTS = 200_000


def session(root: Path, sid: str) -> Session:
    return Session(sid, Folders(root / "state", root / "run", root / "config"), lambda _: None)


def write(made: Session, count: int, tag: str) -> None:
    made.folder.root.mkdir(parents=True, exist_ok=True)
    log = LogWriter.open(made.folder.log, made.sid)
    try:
        log.append("user.message", {"text": tag, "origin": "goal"}, actor="human")
        for i in range((count - 1) // 4):
            call = f"c{log.head}.0"
            log.append(
                "tool.proposed",
                {"call_id": call, "ref": "u", "tool": "exec", "input": {"argv": [tag, str(i)]}},
                actor="brain",
            )
            verdict = {
                "call_id": call,
                "action_hash": f"{i:064x}",
                "verdict": "deny",
                "rule": "r",
                "reason": "no",
                "policy": "p",
                "effects": [],
                "action": {},
            }
            log.append("tool.judged", verdict, actor="supervisor")
            log.append("tool.ended", {"call_id": call, "status": "denied", "preview": "x" * 80}, actor="supervisor")
            log.append("harness.note", {"level": "info", "text": f"step {i}", "component": tag}, actor="supervisor")
            if not i % 500:
                log.commit(sync=False)
        log.append(
            "tool.proposed",
            {"call_id": f"c{log.head}.0", "ref": "u", "tool": "exec", "input": {"argv": ["open"]}},
            actor="brain",
        )
        log.commit(sync=False)
    finally:
        log.close()


def keep(made: Session) -> None:
    async def run() -> None:
        made.keep(1)
        await made.kept()

    asyncio.run(run())


def test_a_long_log_is_taken_up_by_its_end(tmp_path: Path) -> None:
    first = session(tmp_path, "aaaaaaaaaa")
    write(first, EVENTS, "mine")
    first.load()
    assert first.state.seq >= EVENTS - 4
    keep(first)

    again = session(tmp_path, "aaaaaaaaaa")
    again.load()
    assert (again.state, again.track) == (first.state, first.track)
    assert again.snapshot_seq == first.state.seq, "it was taken up from the snapshot, not from the whole log"
    assert list(again.track.calls), "the open call is remembered with its records"


def test_a_snapshot_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    mine = session(tmp_path, "aaaaaaaaaa")
    other = session(tmp_path, "bbbbbbbbbb")
    write(mine, 2_000, "mine")
    write(other, 2_000, "other")
    for made in (mine, other):
        made.load()
        keep(made)
    (path,) = mine.folder.snapshots.iterdir()
    (foreign,) = other.folder.snapshots.iterdir()
    good = path.read_bytes()
    at = good.index(b'"last_event"')
    flipped = good[: at + 20] + bytes([good[at + 20] ^ 1]) + good[at + 21 :]
    spent = good.replace(b'"spent_nano":0', b'"spent_nano":1')
    for bad in (b"", good[:-1], good[: len(good) // 2], flipped, spent, foreign.read_bytes(), b"\0" * 4096):
        assert bad != good
        path.write_bytes(bad)
        seen = session(tmp_path, "aaaaaaaaaa")
        seen.load()
        assert (seen.state, seen.track) == (mine.state, mine.track)
    path.write_bytes(good)
    shorter = session(tmp_path, "cccccccccc")
    write(shorter, 500, "mine")
    shutil.copytree(mine.folder.snapshots, shorter.folder.snapshots)
    shorter.load()
    assert shorter.state.seq == sum(1 for _ in read(shorter.folder.log)) - 1


def test_records_from_the_keeper_are_kept_every_few_thousand(tmp_path: Path) -> None:
    source = session(tmp_path, "aaaaaaaaaa")
    write(source, 12_000, "mine")
    lines = [line.decode() for line in read(source.folder.log)]

    async def run() -> None:
        fed = session(tmp_path, "aaaaaaaaaa")
        for i in range(0, len(lines), 1_000):
            fed.feed(lines[i : i + 1_000])
        await fed.kept()

    asyncio.run(run())
    assert len(list(source.folder.snapshots.glob("*.json"))) == 2
    source.load()
    assert source.state.seq == len(lines) - 1

"""The log of memories survives what a process and a disk can do to it."""

from __future__ import annotations

import asyncio
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from harness.eventlog.side_log import FoldedLog
from harness.events import types as t
from harness.memory import changes
from harness.memory.changes import MemoryRequest
from harness.memory.records import Actor, Origin, Place, Scope, sha_of
from harness.memory.store import MEMORIES
from harness.projections.state.session_state import SessionState
from harness.protocol.config.sections import MemoryConfig
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.answers import Answers
from harness.supervisor.calls.recall import Recall
from harness.supervisor.fleet.session import Session
from harness.supervisor.memories.book import open_book
from tests.fleetlib import alive, wait_for
from tests.memorychain import broken

REPO = Place(Scope.REPOSITORY, "/srv/thing/.git")
NOW = "2026-11-22T10:00:00.000Z"
_WRITER = """
import sys
from pathlib import Path
from harness.memory import changes
from harness.eventlog.side_log import FoldedLog
from harness.memory.store import MEMORIES
from tests.process.test_memory_log import wish
store = FoldedLog.open(MEMORIES, Path(sys.argv[1]))
number = 0
while True:
    entries = changes.write(store.folded, wish(f"text {number}"))
    store.keep(entries)
    for entry in entries:
        store.folded.apply(entry)
    print(number, flush=True)
    number += 1
"""


def _nothing() -> None:
    return None


def wish(text: str, key: str = "build") -> MemoryRequest:
    return MemoryRequest(REPO, key, Origin(Actor.PERSON, NOW), text)


def test_a_killed_writer_loses_nothing_it_acknowledged_and_a_copied_folder_says_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert writer.stdout is not None
        told = [writer.stdout.readline() for _ in range(20)]
        writer.kill()
        told += writer.stdout.readlines()
        writer.stdout.close()
        wait_for("the writer's death", lambda pid=writer.pid: not alive(pid))
        writer.wait()
        last = int([line for line in told if line.endswith("\n")][-1])
        store = FoldedLog.open(MEMORIES, folder)
        versions = store.folded.by_key[REPO, "build"].versions
        assert broken(versions) == ""
        # what was written and not yet told may be there too, nothing after it
        assert versions[-1].text in (f"text {last}", f"text {last + 1}")
        store.close()
    copy = shutil.copytree(folder, tmp_path / "copied" / "memory")
    again = FoldedLog.open(MEMORIES, copy)
    assert again.folded.by_key == store.folded.by_key
    again.close()


def test_a_full_disk_is_said_and_the_next_change_goes_on_from_what_stands(tmp_path: Path) -> None:
    async def play() -> None:
        book = open_book(tmp_path / "memory", _nothing)
        await book.change(lambda m: changes.write(m, wish("one")))
        size = (tmp_path / "memory" / "000001.jsonl").stat().st_size
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, before[1]))
        try:
            with pytest.raises(OpError) as refused:
                await book.change(lambda m: changes.write(m, wish("two")))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert refused.value.code == "no_space"
        assert "free some space" in refused.value.hint
        (entry,) = await book.change(lambda m: changes.write(m, wish("three")))
        assert (entry.version, entry.before) == (2, sha_of("one"))  # type: ignore[union-attr]
        await book.close()

    asyncio.run(play())
    store = FoldedLog.open(MEMORIES, tmp_path / "memory")
    assert [v.text for v in store.folded.by_key[REPO, "build"].versions] == ["one", "three"]
    store.close()


def test_a_damaged_log_is_named_and_refused_and_what_was_seen_twice_waits_for_a_person(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    store = FoldedLog.open(MEMORIES, folder)
    for session in ("s1", "s2"):
        said = MemoryRequest(REPO, "style", Origin(Actor.AGENT, NOW, session), "tabs")
        (entry,) = changes.propose(store.folded, said)
        store.keep([entry])
        store.folded.apply(entry)
    store.close()

    async def play() -> None:
        book = open_book(folder, _nothing)
        memories = await book.read()
        assert (memories.get(REPO, "style", NOW), len(memories.pending())) == (None, 1)
        await book.close()
        first = folder / "000001.jsonl"
        first.write_bytes(first.read_bytes().replace(b"tabs", b"tubs", 1))
        damaged = open_book(folder, _nothing)
        with pytest.raises(OpError, match="cannot be read") as refused:
            await damaged.read()
        assert refused.value.code == "damaged"
        assert "cannot be read" in damaged.problem
        with pytest.raises(OpError) as again:
            await damaged.read()
        assert again.value is refused.value, "it is not read anew by everybody who asks"

    asyncio.run(play())


def test_a_call_that_is_answered_again_after_a_fall_writes_once_and_tells_the_same(tmp_path: Path) -> None:
    mine = Place(Scope.SESSION, "s1")
    appended: list[list[t.Body]] = []
    calls = {
        f"c{number}.0": SimpleNamespace(
            proposed=t.ToolProposed(call_id=f"c{number}.0", tool="memory", ref="r", input={"action": "write", **given})
        )
        for number, given in enumerate(
            ({"key": "plan", "text": "first"}, {"scope": "repository", "key": "tests", "text": "make check"})
        )
    }

    async def append(*bodies: t.Body) -> None:
        appended.append(list(bodies))

    async def places(session: object) -> list[Place]:
        return [mine, REPO]

    async def play() -> None:
        book = open_book(tmp_path / "memory", _nothing)
        answers = Answers(book, cast("Recall", SimpleNamespace(of=places)), lambda: (), MemoryConfig)
        known = SimpleNamespace(sid="s1", state=SessionState(), track=SimpleNamespace(calls=calls), append=append)
        session = cast("Session", known)
        for call_id in ("c0.0", "c1.0"):
            await answers.answer(session, call_id)
        await book.close()
        after = open_book(tmp_path / "memory", _nothing)  # of the supervisor that follows one that fell
        answers = Answers(after, cast("Recall", SimpleNamespace(of=places)), lambda: (), MemoryConfig)
        for call_id in ("c0.0", "c1.0"):
            await answers.answer(session, call_id)
        memories = await after.read()
        assert len(memories.by_key[mine, "plan"].versions) == 1
        assert [lesson.sightings for lesson in memories.pending()] == [["s1"]]
        await after.close()

    asyncio.run(play())
    assert appended[:2] == appended[2:]
    assert [type(body) for body in appended[0]] == [t.MemoryChanged, t.ToolEnded]

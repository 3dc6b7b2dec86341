"""Who starts a supervisor hands over the key of its environment; an open screen starts one when nobody else will."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.client.feed import Feed
from harness.protocol import locks
from harness.protocol.client import abandoned
from tests.fleetlib import HOLD, KEY, Fleet, alive, fleet, kill, play, wait_for

TRIES = 5
"""Of a screen to connect: longer than it waits for a guardian to show itself."""
TURNS = play([HOLD], [("exec", {"argv": ["true"]})], "Done.")


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        made.folders.config_file.write_text(
            f'[model]\ndefault = "claude-haiku-5-5"\nbase_url = "{made.base_url}"\napi_key_env = "WORK_KEY"\n'
        )
        made.extra |= {"WORK_KEY": KEY}
        yield made


def gone(f: Fleet) -> None:
    """Guardian and supervisor are killed, and with them the memory that held the key."""
    pid = f.supervisor_pid()
    guardian = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(guardian, 9)
    os.kill(pid, 9)
    wait_for("both to be gone", lambda: not alive(guardian) and not alive(pid))
    wait_for("no heir", lambda: not locks.held(f.folders.state / "guardian.lock"))


def test_a_restart_by_ls_has_the_key(f: Fleet) -> None:
    sid = f.launch(TURNS, name="one")
    f.wait_event(sid, "tool.started")
    brain = f.brain_pid(sid)
    gone(f)
    if alive(brain):
        kill(brain)  # the next one has to be given the key
    f.run("ls")
    f.release(sid)
    f.wait_state(sid, "done")
    assert not any(r.type == "approval.requested" for r in f.records(sid)), "nobody was asked for a key"
    pid = f.supervisor_pid()
    for name in ("environ", "cmdline"):
        assert KEY.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
    assert KEY not in f.folders.supervisor_log.read_text()


def test_without_a_key_in_the_environment_it_asks_once(f: Fleet) -> None:
    sid = f.launch(TURNS, name="one")
    f.wait_event(sid, "tool.started")
    brain = f.brain_pid(sid)
    gone(f)
    if alive(brain):
        kill(brain)
    f.extra.pop("WORK_KEY")
    f.run("ls")
    f.release(sid)
    f.wait_state(sid, "waiting")
    f.extra["WORK_KEY"] = KEY
    f.run("approve", f.approval(sid)["approval_id"], "--choose", "retry")
    f.wait_state(sid, "done")


@asynccontextmanager
async def feed_of(f: Fleet) -> AsyncIterator[tuple[Feed, asyncio.Event]]:
    woken = asyncio.Event()
    feed = Feed(f.folders, woken.set)
    feed.start()
    try:
        yield feed, woken
    finally:
        await feed.aclose()


async def link(feed: Feed, woken: asyncio.Event, *states: str) -> None:
    async with asyncio.timeout(60):
        while feed.snapshot.link.state not in states:
            woken.clear()
            await woken.wait()


async def test_an_open_screen_starts_what_nobody_else_will(f: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (f.env | f.extra).items():
        monkeypatch.setenv(name, value)
    sid = await asyncio.to_thread(f.launch, TURNS, name="one")
    await asyncio.to_thread(f.wait_event, sid, "tool.started")
    brain = f.brain_pid(sid)
    async with feed_of(f) as (feed, woken):
        await link(feed, woken, "live")
        await asyncio.to_thread(gone, f)
        if alive(brain):
            kill(brain)
        await link(feed, woken, "lost", "connecting")
        await link(feed, woken, "live")
        await asyncio.to_thread(f.release, sid)
        await asyncio.to_thread(f.wait_state, sid, "done")
        assert not any(r.type == "approval.requested" for r in f.records(sid)), "it brought the key of its environment"


async def test_an_open_screen_leaves_alone_what_was_stopped(f: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (f.env | f.extra).items():
        monkeypatch.setenv(name, value)
    await asyncio.to_thread(f.run, "supervisor", "start")
    async with feed_of(f) as (feed, woken):
        await link(feed, woken, "live")
        await asyncio.to_thread(f.run, "supervisor", "stop")
        await link(feed, woken, "lost", "connecting")
        assert not abandoned(f.folders)
        for _ in range(TRIES):  # each of which would start one, if anybody should
            woken.clear()
            await woken.wait()
            assert feed.snapshot.link.state in ("lost", "connecting")
        assert not locks.held(f.folders.supervisor_lock)
        feed.reconnect(start=True)  # the user says so
        await link(feed, woken, "live")

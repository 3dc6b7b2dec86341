"""A part that is stopped is never shown as at work: it is named with what comes next, nobody waits for it in silence,
and another one takes its place.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from app.client.feed import Feed
from harness.events import types as t
from harness.linux.proc import Identity, children, identify, look
from harness.protocol.client import Client, SupervisorError
from harness.protocol.config.config import Config
from harness.protocol.config.sections import ProcessesConfig
from harness.protocol.connection.transport import UnixSocket
from harness.protocol.paths import Folders
from harness.protocol.spawning import SpawnKeeper
from harness.supervisor.base.errors import OpError
from harness.supervisor.fleet.session import Session
from harness.supervisor.fleet.thinking import Brain
from harness.supervisor.processes.fork_server_client import ForkServer
from harness.supervisor.processes.process import Watch
from harness.supervisor.sessions import brains
from harness.supervisor.sessions.brains import Brains
from harness.supervisor.sessions.keepers import Keepers
from tests.fleetlib import HOLD, Fleet, alive, fleet, play, wait_for

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        made.run("supervisor", "start")
        yield made


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def a_stopped_process() -> Iterator[Identity]:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            os.kill(process.pid, signal.SIGSTOP)
            who = identify(process.pid)
            assert who is not None
            wait_for("it to be stopped", lambda: (seen := look(who)) is not None and seen.stopped)
            yield who
        finally:
            process.kill()


def said(f: Fleet, sid: str) -> list[str]:
    return [r.body.text for r in f.records(sid) if isinstance(r.body, t.UserMessage)]


def test_a_frozen_keeper_is_named_takes_nothing_and_goes_on_when_it_thaws(f: Fleet) -> None:
    sid = f.launch(play([HOLD], "Done."))
    f.wait_event(sid, "tool.started")
    f.wait_state(sid, "running")
    keeper = f.keeper_pid(sid)
    # a command that has to start first may come when it is known already
    with Client(UnixSocket(f.folders.supervisor_socket), timeout=60) as client, stopped(keeper):
        with pytest.raises(SupervisorError, match="may still be carried out") as sent:
            client.call("say", sid=sid, text="sent before it was known")
        assert sent.value.code == "unsure"
        told = f.wait_state(sid, "limited")
        assert f"process {keeper} has been stopped since" in told["evidence"]
        assert "another one goes on from the log" in told["next"]
        for command in (("say", sid, "never"), ("pause", sid), ("undo", sid), ("undo", sid, "--list")):
            refused = f.run(*command, check=False)
            assert refused.returncode != 0
            assert "nothing was sent" in refused.stderr, command
    f.wait_state(sid, "running")
    wait_for("what was sent", lambda: "sent before it was known" in said(f, sid))
    f.release(sid)
    f.wait_state(sid, "done")
    assert said(f, sid).count("sent before it was known") == 1
    assert "never" not in said(f, sid)
    assert not any(isinstance(r.body, t.SessionDesired) for r in f.records(sid)), "and it was not paused"
    assert f.violations() == []


def test_a_session_with_a_frozen_keeper_can_be_stopped(f: Fleet) -> None:
    sid = f.launch(play([HOLD], "Done."))
    f.wait_event(sid, "tool.started")
    keeper = f.keeper_pid(sid)
    with stopped(keeper):
        f.run("stop", sid)
        f.wait_state(sid, "stopped")
        assert not alive(keeper)
    assert [r.body.state for r in f.records(sid) if isinstance(r.body, t.SessionDesired)] == ["stopped"]
    assert f.violations() == []


def test_a_frozen_brain_is_named_and_goes_on_when_it_thaws(f: Fleet) -> None:
    sid = f.launch(play([HOLD], "Done."))
    f.wait_event(sid, "tool.started")
    brain = wait_for("its brain", lambda: f.brain_pid(sid))
    with stopped(brain):
        told = f.wait_state(sid, "limited")
        assert f"process {brain} has been stopped since" in told["evidence"]
        assert "another one takes its place" in told["next"]
    f.wait_state(sid, "running")
    f.release(sid)
    f.wait_state(sid, "done")
    assert f.violations() == []


@pytest.fixture
def impatient() -> Iterator[Fleet]:
    with fleet(config='[processes]\nstopped = "12s"\n') as made:
        yield made


def test_what_stays_frozen_is_replaced_by_itself(impatient: Fleet) -> None:
    """A brain in the middle of a reply and a keeper under a call, both for good, and nobody does anything."""
    f = impatient
    thinking = f.launch(play([HOLD], "Done."), name="thinking")
    kept = f.launch(play([HOLD], "Done."), name="kept")
    f.wait_event(kept, "tool.started")
    f.wait_event(thinking, "tool.started")
    brain = wait_for("its brain", lambda: f.brain_pid(thinking))
    keeper = f.keeper_pid(kept)
    os.kill(brain, signal.SIGSTOP)
    os.kill(keeper, signal.SIGSTOP)
    f.release(thinking)
    f.wait_state(thinking, "done", timeout=120)
    wait_for("another keeper", lambda: f.keeper_pid(kept) != keeper, 120)
    f.release(kept)
    f.wait_state(kept, "done")
    assert not alive(brain)
    assert not alive(keeper)
    assert f.json("approvals") == []
    assert f.violations() == []


async def test_a_nursery_that_stands_still_is_replaced_long_before_its_answer_is_due() -> None:
    fork_server = ForkServer("harness.keeper.fork_server", network=False, isolated=True, on_push=lambda _: None)
    try:
        await fork_server.ensure()
        first = fork_server.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        with pytest.raises(OpError, match="the request must be"):
            await asyncio.wait_for(fork_server.spawn(SpawnKeeper("no id", "", ""), wait=3600), 60)
        assert fork_server.pid not in (None, first)
        assert not alive(first)
    finally:
        await fork_server.close()


def test_a_session_goes_on_whose_nursery_of_brains_stands_still(f: Fleet) -> None:
    first = f.launch(play("Done."))
    f.wait_state(first, "done")
    fork_server = next(
        pid
        for pid in children(f.supervisor_pid())
        if b"harness.brain.brain_fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    os.kill(fork_server, signal.SIGSTOP)
    sid = f.launch(play([("exec", {"argv": ["sh", "-c", "echo once >> effects"]})], "Done."))
    row = f.wait_state(sid, "done")
    assert (Path(row["worktree"]) / "effects").read_text() == "once\n"
    assert not alive(fork_server)
    assert f.violations() == []


async def test_an_open_screen_says_that_its_supervisor_stands_still(f: Fleet) -> None:
    woken = asyncio.Event()
    feed = Feed(f.folders, woken.set)
    feed.start()

    async def link(state: str) -> None:
        async with asyncio.timeout(60):
            while feed.snapshot.link.state != state:
                woken.clear()
                await woken.wait()

    try:
        await link("live")
        supervisor = await asyncio.to_thread(f.supervisor_pid)
        with stopped(supervisor):
            await link("mute")
            assert f"(process {supervisor})" in feed.snapshot.link.text
        await link("live")
    finally:
        await feed.aclose()


def a_session(tmp_path: Path) -> Session:
    return Session("s" * 10, Folders(tmp_path / "state", tmp_path / "run", tmp_path / "config"), lambda _: None)


def test_a_brain_that_is_stopped_or_owes_its_reply_for_too_long_is_ended(tmp_path: Path) -> None:
    async def looked(stop: bool) -> tuple[int, str]:
        session = a_session(tmp_path)
        session_folders = Folders(tmp_path, tmp_path, tmp_path)
        config = Config(file=tmp_path / "config.toml")
        some = Brains(
            session_folders, 1, cast(Any, SimpleNamespace(unsent=lambda _: None)), lambda: config, lambda *_: None
        )
        with a_stopped_process() as who:
            brain = Brain(1, who, "")
            brain.watch = Watch(who, lambda: some.ended(session, brain))
            session.thinking.brain = brain
            if not stop:
                os.kill(who.pid, signal.SIGCONT)
                session.track.request_gen = 1
                session.state.request = t.ModelRequest(
                    request_id="r1",
                    attempt=1,
                    model="m",
                    reservation="v",
                    reserved_nano=1,
                    est_input=1,
                    max_tokens=1,
                    upto_seq=0,
                )
            looks = 0
            while not brain.why:
                some.look(session)
                looks += 1
            await asyncio.wait_for(brain.gone.wait(), 60)
            assert session.thinking.buried == [brain]
            return looks, brain.why

    looks, why = asyncio.run(looked(True))
    assert (looks * brains.LOOK_S, "stopped" in why) == (Config(file=tmp_path / "config.toml").processes.stopped, True)
    looks, why = asyncio.run(looked(False))
    assert "did nothing while a reply was awaited" in why
    assert looks * brains.LOOK_S > Config(file=tmp_path / "config.toml").model.reply_total_s


def test_another_process_that_knows_lease_and_secret_is_not_the_brain(tmp_path: Path) -> None:
    """A fork server that was killed between its fork and its answer is asked again for the same one."""
    session = a_session(tmp_path)
    config = Config(file=tmp_path / "config.toml")
    some = Brains(Folders(tmp_path, tmp_path, tmp_path), 1, cast(Any, None), lambda: config, lambda *_: None)
    me = identify(os.getpid())
    assert me is not None
    session.thinking.brain = Brain(5, me, "secret")
    assert some.greet(session, 5, "secret", me.pid).who == me
    for secret, pid in (("secret", os.getppid()), ("other", me.pid)):
        with pytest.raises(OpError, match="not the brain"):
            some.greet(session, 5, secret, pid)


def test_a_keeper_is_ended_when_it_is_stopped_for_long_and_not_before(tmp_path: Path) -> None:
    async def asked() -> None:
        session = a_session(tmp_path)
        config = Config(file=tmp_path / "config.toml")
        some = Keepers(Folders(tmp_path, tmp_path, tmp_path), 1, lambda: config)
        with a_stopped_process() as who:
            link = cast(Any, SimpleNamespace(hello=who))
            await some.mute(session, link, datetime.now(UTC), config.processes.stopped - 1)
            assert identify(who.pid) == who
            assert session.blocks["keeper"].kind == "mute"
            await some.mute(session, link, datetime.now(UTC), config.processes.stopped)
            assert identify(who.pid) is None

    asyncio.run(asked())


def test_a_new_supervisor_ends_a_keeper_that_stays_stopped(tmp_path: Path) -> None:
    config = [Config(file=tmp_path / "config.toml")]

    async def called() -> None:
        session = a_session(tmp_path)
        some = Keepers(Folders(tmp_path, tmp_path, tmp_path), 1, lambda: config[0])
        with a_stopped_process() as who:
            session.state.keeper = t.KeeperStarted(pid=who.pid, start=who.start, boot=who.boot)
            with pytest.raises(OpError, match="is stopped") as refused:
                await some.past_stopped(session)
            assert refused.value.code == "mute"
            config[0] = msgspec.structs.replace(config[0], processes=ProcessesConfig(stopped=0))
            await some.past_stopped(session)
            assert identify(who.pid) is None

    asyncio.run(called())

"""What runs for the supervisor's whole life: a piece that dies is begun again and said, one that keeps dying ends the
supervisor.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest

from harness.protocol.async_client import AsyncClient
from harness.protocol.connection import frames
from harness.protocol.connection.transport import UnixSocket
from harness.protocol.paths import Folders
from harness.supervisor.base.settings import Settings
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.serving.server import Connection, Server
from harness.supervisor.upkeep.tasks import Upkeep
from harness.views.rows import Money

LONG = 20.0


class Watched:
    """An upkeep, and what it told."""

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}
        self.changed = asyncio.Event()
        self.gave_up = asyncio.Event()
        self.upkeep = Upkeep(self.problems, self.changed.set, self.gave_up.set)


async def test_work_that_dies_is_begun_again_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    w = Watched()
    again = asyncio.Event()
    times = 0

    async def work() -> None:
        nonlocal times
        times += 1
        if times == 1:
            raise ValueError("a defect")
        again.set()
        await asyncio.Event().wait()

    w.upkeep.keep("sending changes", work)
    await asyncio.wait_for(again.wait(), LONG)
    assert w.changed.is_set()
    assert "a defect" in w.problems["sending changes"]
    assert "begun again" in capsys.readouterr().err
    assert not w.gave_up.is_set()
    await w.upkeep.close()


async def test_work_that_ends_is_begun_again_too() -> None:
    w = Watched()
    again = asyncio.Event()
    times = 0

    async def work() -> None:
        nonlocal times
        times += 1
        if times == 2:
            again.set()
            await asyncio.Event().wait()

    w.upkeep.keep("guarding", work)
    await asyncio.wait_for(again.wait(), LONG)
    assert "it ended" in w.problems["guarding"]
    await w.upkeep.close()


async def test_work_that_keeps_dying_ends_the_supervisor(capsys: pytest.CaptureFixture[str]) -> None:
    w = Watched()

    async def work() -> None:
        raise OSError("no way")

    w.upkeep.keep("guarding", work)
    await asyncio.wait_for(w.gave_up.wait(), LONG)
    assert "3 times within a minute" in capsys.readouterr().err
    await w.upkeep.close()


async def test_work_that_must_end_well_is_begun_again_until_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    w = Watched()
    done = asyncio.Event()
    times = 0

    async def work() -> None:
        nonlocal times
        times += 1
        if times == 1:
            raise KeyError("a defect")
        done.set()

    w.upkeep.finish("opening the ledger", work)
    await asyncio.wait_for(done.wait(), LONG)
    assert "a defect" in w.problems["opening the ledger"]
    assert "begun again" in capsys.readouterr().err
    await w.upkeep.close()
    assert times == 2
    assert not w.gave_up.is_set()


async def test_what_is_done_once_may_fail(capsys: pytest.CaptureFixture[str]) -> None:
    w = Watched()
    done = asyncio.Event()

    async def work() -> None:
        done.set()
        raise OSError("no fork server")

    w.upkeep.once("loading", work)
    await asyncio.wait_for(done.wait(), LONG)
    await w.upkeep.close()
    assert "no fork server" in capsys.readouterr().err
    assert not w.gave_up.is_set()


class BadOnce:
    """A feed that fails at one push: a defect of ours in the middle of the night."""

    def __init__(self) -> None:
        self.bad = False
        self.failed = asyncio.Event()

    def rows(self, changed: set[str] | None) -> dict[str, Any]:
        if self.bad:
            self.bad = False
            self.failed.set()
            raise KeyError("a defect")
        return {"push": "rows", "rows": [], "gone": [], "fleet": {"sessions": 7}, "all": changed is None}

    async def approvals(self) -> dict[str, Any]:
        return {"push": "approvals", "approvals": []}


async def test_screens_go_on_after_a_defect_in_a_push(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "state", tmp_path, tmp_path)
    fleet = Fleet(folders, lambda _: Money())
    feed = BadOnce()
    w = Watched()

    async def hello(c: Connection, m: dict[str, Any]) -> dict[str, Any]:
        return {"proto": frames.PROTOCOL}

    async def subscribe(c: Connection, m: dict[str, Any]) -> dict[str, Any]:
        return await server.subscribe(c)

    server = Server(folders.supervisor_socket, fleet, {"hello": hello, "subscribe": subscribe}, feed)
    await server.listen()
    w.upkeep.keep("sending changes to the screens", server.push)
    client = await AsyncClient.connect(UnixSocket(folders.supervisor_socket))
    await client.call("subscribe")
    pushes = client.pushes()
    assert (await anext(pushes))["all"]
    assert (await anext(pushes))["push"] == "approvals"
    feed.bad = True
    fleet.add("a" * 10).touch()
    await asyncio.wait_for(feed.failed.wait(), LONG)
    told = await asyncio.wait_for(anext(pushes), LONG)
    assert told["push"] == "rows"
    assert told["all"], "what was lost with the failed push comes with the next one"
    await client.close()
    await server.close()
    await w.upkeep.close()


async def test_the_last_answers_are_sent_before_the_connections_close(tmp_path: Path) -> None:
    """However long it takes a client to read: what was asked before the end is answered, whole."""
    fleet = Fleet(Folders(tmp_path / "state", tmp_path, tmp_path), lambda _: Money())
    begun = asyncio.Event()
    go_on = asyncio.Event()

    async def hello(c: Connection, m: dict[str, Any]) -> dict[str, Any]:
        return {"proto": frames.PROTOCOL}

    async def stop(c: Connection, m: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        await go_on.wait()
        return {"text": "x" * 4_000_000}

    path = tmp_path / "s.sock"
    server = Server(path, fleet, {"hello": hello, "stop": stop}, BadOnce())
    await server.listen()
    client = await AsyncClient.connect(UnixSocket(path))
    asked = asyncio.create_task(client.call("stop"))
    await asyncio.wait_for(begun.wait(), LONG)
    server.deaf()
    go_on.set()
    await server.close()
    assert len((await asyncio.wait_for(asked, LONG))["text"]) == 4_000_000
    await client.close()


def test_a_copy_that_cannot_be_kept_is_a_problem_and_no_death(tmp_path: Path) -> None:
    """As on a full disk: the configuration counts, and what failed is said."""
    folders = Folders(tmp_path / "state", tmp_path / "run", tmp_path / "config")
    for folder in (folders.state, folders.config):
        folder.mkdir()
    folders.config_file.write_text("[model]\nmax_rounds = 2\n")
    (folders.state / "last-good").write_text("in the way")
    settings = Settings(folders)
    settings.check()
    assert settings.config.model.max_rounds == 2
    assert "can be kept" in settings.problems["last-good"]
    (folders.state / "last-good").unlink()
    folders.config_file.write_text("[model]\nmax_rounds = 3\n")
    settings.check()
    assert settings.config.model.max_rounds == 3
    assert "last-good" not in settings.problems


@pytest.mark.parametrize("way", ["the policy", "the configuration", "the key", "the folder"])
def test_settings_that_every_user_may_change_and_a_key_that_they_may_read_are_told(way: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        root.chmod(0o755)
        folders = Folders(root / "state", root / "run", root / "config")
        for folder in (folders.state, folders.config):
            folder.mkdir(mode=0o755)
        key = folders.config / "key"
        key.write_text("a key")
        key.chmod(0o600)
        folders.config_file.write_text(f'[model]\napi_key_file = "{key}"\n')
        folders.policy_file.write_text("version = 1\n")
        for path in (folders.config_file, folders.policy_file):
            path.chmod(0o644)
        settings = Settings(folders)
        news: list[str] = []
        settings.subscribe(lambda: news.append(settings.problems.get("exposed", "")))
        settings.check()
        assert "exposed" not in settings.problems
        path, mode = {
            "the policy": (folders.policy_file, 0o646),
            "the configuration": (folders.config_file, 0o646),
            "the key": (key, 0o604),
            "the folder": (folders.config, 0o777),
        }[way]
        path.chmod(mode)
        settings.check()
        assert str(path) in settings.problems["exposed"]
        assert news[-1] == settings.problems["exposed"]
        count = len(news)
        settings.check()
        assert len(news) == count, "it is news once"
        root.chmod(0o700)
        settings.check()
        assert "exposed" not in settings.problems, "nobody else comes that far"

"""A log read without its disk: over a road that is no local socket ``watchfloor logs`` says exactly the same."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256

import pytest

from app.cli.base.context import Context
from app.cli.verbs.logs import logs
from app.cli.verbs.sessions import Usage
from app.client.records import AskedRecords, DiskRecords
from app.input import keymap
from app.screens.session import SessionScreen
from app.shell.navigation import Opening
from app.shell.watch_app import WatchApp
from harness.protocol.client import Client, SupervisorError
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import HOLD, Fleet, fleet, play
from tests.tui.painted import painted
from tests.unit.test_shells import RELAY, Command
from widgets.log.transcript import Transcript


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


class Far(Context, frozen=True):
    """The command line of a machine that reaches the fleet through a command."""

    def look(self) -> Client:
        return Client(Command((sys.executable, "-c", RELAY, str(self.folders.supervisor_socket))))


def far(f: Fleet, sid: str, **more: object) -> int:
    given = {"id": sid, "after": -1, "json": False, "follow": False, "payload": ""}
    given |= {"tail": None, "since": None, "kind": [], **more}
    return logs(Far(f.folders, 120), argparse.Namespace(**given))


def test_logs_over_another_road_say_the_same(f: Fleet, capfd: pytest.CaptureFixture[str]) -> None:
    sid = f.launch(play([HOLD], "Done."), name="far")
    f.wait_event(sid, "tool.started")
    follower = threading.Thread(target=far, args=(f, sid), kwargs={"follow": True}, daemon=True)
    follower.start()
    f.release(sid)
    f.wait_state(sid, "done")
    follower.join(60)
    assert not follower.is_alive(), "it ends with the session"
    followed = capfd.readouterr().out
    assert followed == f.run("logs", sid).stdout
    for more, args in (({"json": True}, ("--json",)), ({"after": 3}, ("--after", "3")), ({"tail": 4}, ("--tail", "4"))):
        assert far(f, sid, **more) == 0
        assert capfd.readouterr().out == f.run("logs", sid, *args).stdout
    assert f.run("logs", sid, "--tail", "4").stdout == "".join(followed.splitlines(keepends=True)[-4:])
    kinds = [json.loads(line)["type"] for line in f.run("logs", sid, "--json", "--kind", "tool").stdout.splitlines()]
    assert "tool.started" in kinds
    assert all(kind.startswith("tool.") for kind in kinds)
    assert f.run("logs", sid, "--since", "1h").stdout == followed
    for wrong in (("--tail", "-1"), ("--since", "soon"), ("--kind", "Tool Ended")):
        refused = f.run("logs", sid, *wrong, check=False)
        assert (refused.returncode, wrong[0] in refused.stderr) == (2, True)


async def test_a_screen_elsewhere_shows_the_log_as_it_grows(f: Fleet) -> None:
    sid = await asyncio.to_thread(f.launch, play([HOLD], "All of it is done."), name="watched")
    await asyncio.to_thread(f.wait_event, sid, "tool.started")
    road = Command((sys.executable, "-c", RELAY, str(f.folders.supervisor_socket)))
    app = WatchApp(f.folders, keymap.build("default", {}), opening=Opening(sid), transport=road)
    async with app.run_test(size=(120, 40)), asyncio.timeout(60):
        while not isinstance(screen := app.screen, SessionScreen) or not screen.query(Transcript):
            await asyncio.sleep(0.05)
        view = screen.transcript
        await asyncio.to_thread(f.release, sid)
        await asyncio.to_thread(f.wait_state, sid, "done")
        while not any("All of it is done." in strip.text for strip in painted(app.screen)):
            await asyncio.sleep(0.05)
        view.action_first()
        while (row := view.cursor_row) is None or row.seq > 1:
            await asyncio.sleep(0.05)


def test_payloads_of_both_sources_are_the_same(f: Fleet, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    sid = f.launch(play("Done."), name="payload")
    f.wait_state(sid, "done")
    data = bytes(range(256)) * 12_000  # three pieces
    sha = sha256(data).hexdigest()
    file = f.folders.session(sid).blobs / sha[:2] / sha
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    with Client(UnixSocket(f.folders.supervisor_socket)) as client:
        assert AskedRecords(client, sid, -1).payload(sha) == data
        assert DiskRecords(f.folders.session(sid), -1).payload(sha) == data
        with pytest.raises(SupervisorError) as refused:
            AskedRecords(client, sid, -1).payload("0" * 64)
        assert refused.value.code == "not_found"
        with pytest.raises(SupervisorError) as refused:
            client.call("read", sid="nobody", from_seq=0)
        assert refused.value.code == "not_found"
    assert far(f, sid, payload=sha) == 0
    assert capfdbinary.readouterr().out == data
    with pytest.raises(Usage):
        far(f, sid, payload="../x")


def test_a_removed_session_ends_what_follows_it(f: Fleet) -> None:
    sid = f.launch(play("Done."), name="removed")
    f.wait_state(sid, "done")
    with Client(UnixSocket(f.folders.supervisor_socket)) as client:
        source = AskedRecords(client, sid, -1)
        assert source.read().lines
        f.run("rm", sid)
        assert source.read().gone

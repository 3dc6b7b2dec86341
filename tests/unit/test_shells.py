"""The blocking and the asyncio shell of an exchange over real sockets, and a transport that is a command."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.protocol.async_client import AsyncClient
from harness.protocol.client import Client, Mute, SupervisorError, Unreachable
from harness.protocol.connection import frames
from harness.protocol.connection.aio import Asking
from harness.protocol.connection.blocking import Connection
from harness.protocol.connection.exchange import Answering, Broken, Closed, Incoming, Silent
from harness.protocol.connection.transport import Transport, UnixSocket

LONG = 30.0
Peer = Callable[[socket.socket, Answering, Incoming], None]


def serve(sock: socket.socket, answer: Peer) -> None:
    """Answer on one connection until it ends."""
    answering = Answering()
    with contextlib.suppress(OSError), sock:
        while data := sock.recv(1 << 16):
            for request in answering.take(data):
                answer(sock, answering, request)


@contextlib.contextmanager
def peer(answer: Peer) -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=serve, args=(theirs, answer), daemon=True)
    thread.start()
    with ours:
        yield ours
    thread.join(LONG)


def echo(sock: socket.socket, answering: Answering, request: Incoming) -> None:
    if request.op == "refuse":
        sock.sendall(answering.refuse(request.number, {"code": "no", "message": "not now", "hint": "later"}))
    elif request.op == "push":
        sock.sendall(answering.push({"push": 1}) + answering.reply(request.number, {}) + answering.push({"push": 2}))
    elif request.op == "half":
        sock.sendall(b"\0\0\0\x09{")
        sock.shutdown(socket.SHUT_RDWR)
    elif request.op == "garbage":
        sock.sendall(frames.frame(b"no"))
    elif "hang up" in (request.op, request.message.get("then")):
        sock.shutdown(socket.SHUT_RDWR)
    elif "silence" not in (request.op, request.message.get("then")):
        sock.sendall(answering.reply(request.number, {"said": request.message.get("text")}))


def test_blocking_replies_and_pushes_in_order() -> None:
    with peer(echo) as sock:
        connection = Connection(sock)
        assert connection.call("say", LONG, {"text": "a"})["said"] == "a"
        assert connection.call("push", LONG, {})["ok"]
        assert connection.call("refuse", LONG, {})["error"]["code"] == "no"
        assert [p["push"] for p in connection.pushes] == [1, 2]
        assert not connection.read(0.0)


@pytest.mark.parametrize(("op", "end"), [("half", Broken), ("garbage", Broken), ("hang up", Closed)])
def test_both_shells_name_how_a_connection_ended(op: str, end: type[Exception]) -> None:
    with peer(echo) as sock:
        connection = Connection(sock)
        with pytest.raises(end):
            connection.call(op, LONG, {})
        with pytest.raises(Closed):
            connection.call("say", LONG, {})

    async def looped(sock: socket.socket) -> None:
        lost = asyncio.Event()
        asking = Asking(lambda _: None, lost.set)
        await asking.attach(sock)
        with pytest.raises(end):
            await asking.call(op, LONG, {})
        assert lost.is_set()
        with pytest.raises(end):
            await asking.call("say", LONG, {})

    with peer(echo) as sock:
        asyncio.run(looped(sock.dup()))


def test_silence_is_told_apart_and_ends_only_the_blocking_one() -> None:
    with peer(echo) as sock, pytest.raises(Silent, match="did not answer silence within 0 s"):
        Connection(sock).call("silence", 0.05, {})

    async def looped(sock: socket.socket) -> None:
        asking = Asking(lambda _: None, lambda: None)
        await asking.attach(sock)
        with pytest.raises(Silent):
            await asking.call("silence", 0.05, {})
        replies = await asyncio.gather(*(asking.call("say", LONG, {"text": i}) for i in range(20)))
        assert [r["said"] for r in replies] == list(range(20))
        asking.wire.close()

    with peer(echo) as sock:
        asyncio.run(looped(sock.dup()))


def test_a_peer_that_first_wants_to_be_read_does_not_lock_us_up() -> None:
    """It does not read the rest of a large request before we have taken what it sends."""
    flood = b"".join(frames.encode({"push": i, "text": "x" * 60_000}) for i in range(60))

    def slow(sock: socket.socket) -> None:
        answering = Answering()
        with sock:
            first = sock.recv(1000)
            sock.sendall(flood)
            requests = list(answering.take(first))
            while not requests:
                requests = list(answering.take(sock.recv(1 << 16)))
            sock.sendall(answering.reply(requests[0].number, {}))

    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=slow, args=(theirs,), daemon=True)
    thread.start()
    connection = Connection(ours)
    assert connection.call("blob", LONG, {"data": "y" * 4_000_000})["ok"]
    assert len(connection.pushes) == 60
    connection.close()
    thread.join(LONG)


# -- transports ------------------------------------------------------------------------------------

RELAY = """
import os, select, socket, sys
there = socket.socket(socket.AF_UNIX)
there.connect(sys.argv[1])
while True:
    for fd in select.select((0, there), (), ())[0]:
        data = os.read(0, 65536) if fd == 0 else there.recv(65536)
        if not data:
            sys.exit()
        there.sendall(data) if fd == 0 else os.write(1, data)
"""


@dataclass(frozen=True)
class Command:
    """The whole of what another road to a supervisor takes: one class."""

    argv: tuple[str, ...]

    @property
    def local(self) -> bool:
        return False

    def open(self, timeout: float) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            subprocess.Popen(self.argv, stdin=theirs, stdout=theirs)
        ours.settimeout(timeout)
        return ours

    def __str__(self) -> str:
        return self.argv[0]


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Path]:
    sock = frames.listen(tmp_path / "s")

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(sock.accept()[0], echo), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield tmp_path / "s"
    sock.shutdown(socket.SHUT_RDWR)
    sock.close()
    thread.join(LONG)


@pytest.mark.parametrize("road", ["socket", "command"])
def test_clients_do_not_care_how_the_stream_was_opened(road: str, listening: Path) -> None:
    to: Transport = UnixSocket(listening)
    if road == "command":
        to = Command((sys.executable, "-c", RELAY, str(listening)))
    with Client(to, timeout=LONG) as client:
        assert client.call("say", text="a")["said"] == "a"
        with pytest.raises(SupervisorError) as refused:
            client.call("refuse")
        assert (refused.value.code, refused.value.message, refused.value.hint) == ("no", "not now", "later")
        client.call("push")
        pushes = client.pushes()
        assert [next(pushes)["push"], next(pushes)["push"]] == [1, 2]
        client.wait_up_to(0.05)
        with pytest.raises(Mute):
            next(pushes)
        with pytest.raises(Mute, match="look before you ask again"):
            client.call("silence")
        client.wait_up_to(LONG)
        with pytest.raises(Unreachable, match="closed the connection; what it was asked for may be done"):
            client.call("hang up")
    with Client(to, timeout=LONG) as client, pytest.raises(Unreachable) as lost:
        client.call("sessions", then="hang up")
    assert str(lost.value) == "the supervisor closed the connection", "what only looks may be asked again at once"

    async def looped() -> None:
        client = await AsyncClient.connect(to, patience=LONG)
        replies = await asyncio.gather(*(client.call("say", text=i) for i in range(50)))
        assert [r["said"] for r in replies] == list(range(50))
        await client.call("push")
        pushes = client.pushes()
        assert [(await anext(pushes))["push"], (await anext(pushes))["push"]] == [1, 2]
        with pytest.raises(Mute) as mute:
            await client.call("sessions", 0.05, then="silence")
        assert str(mute.value) == "the supervisor did not answer in time"
        with pytest.raises(Unreachable, match="closed the connection; what it was asked for may be done"):
            await client.call("hang up")
        with pytest.raises(StopAsyncIteration):
            await anext(pushes)
        await client.close()

    asyncio.run(looped())


def test_nobody_at_the_socket_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"no supervisor answers at .*: No such file"):
        Client(UnixSocket(tmp_path / "none"))
    with pytest.raises(Unreachable, match=r"no supervisor answers at .*: No such file"):
        asyncio.run(AsyncClient.connect(UnixSocket(tmp_path / "none")))

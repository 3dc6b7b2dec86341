"""A real keeper, a real fork server of brains, and a small supervisor that speaks the real protocol, for tests of the
brain.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.events import types as t
from harness.protocol.connection import frames
from tests.logs import checked_before
from tests.process.keeperlib import Keepers, Refused, wait_until

KEY = "sk-test-brain-canary"
SECRET = "lease-secret"
Answerer = Callable[[dict[str, Any]], dict[str, Any]]


class BrainForkServer:
    """The real fork server, started as the supervisor starts it."""

    def __init__(self) -> None:
        self.sock, theirs = socket.socketpair()
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            argv = [sys.executable, "-P", "-s", "-m", "harness.brain.brain_fork_server", "--fd", str(theirs.fileno())]
            env = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}
            self.pid = os.posix_spawn(sys.executable, argv, env, setsid=True)
        self._decoder = frames.Decoder()
        self._ids = itertools.count(1)
        self._replies: dict[int, dict[str, Any]] = {}
        self.exits: dict[int, int] = {}

    def read(self, wait_s: float) -> None:
        """Take in what the fork server says within ``wait_s`` seconds."""
        if not select.select((self.sock,), (), (), wait_s)[0]:
            return
        data = self.sock.recv(1 << 16)
        if not data:
            raise ConnectionError("the fork server is gone")
        for body in self._decoder.feed(data):
            message: dict[str, Any] = frames.parse(body)
            if message.get("push") == "exited":
                self.exits[message["pid"]] = message["code"]
            else:
                self._replies[message["id"]] = message

    def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        number = next(self._ids)
        self.sock.sendall(frames.encode({"id": number, "op": op, **arguments}))
        deadline = time.monotonic() + 60
        while number not in self._replies:
            self.read(0.2)
            assert time.monotonic() < deadline, f"the fork server did not answer {op}"
        return self._replies.pop(number)

    def exit_code(self, pid: int, timeout: float = 60.0) -> int:
        deadline = time.monotonic() + timeout
        while pid not in self.exits:
            self.read(0.2)
            assert time.monotonic() < deadline, f"brain {pid} did not exit"
        return self.exits[pid]

    def close(self) -> None:
        self.sock.close()
        os.waitpid(self.pid, 0)


@dataclass
class Money:
    """What the small supervisor was asked to reserve and settle."""

    reserved: list[dict[str, Any]] = field(default_factory=list)
    settled: list[dict[str, Any]] = field(default_factory=list)
    refuse: dict[str, Any] | None = None
    held_after: int | None = None
    """Settlements after which the gate is closed."""


class SmallSupervisor:
    """Answers brains on a socket of its own."""

    def __init__(self, path: Path, money: Money) -> None:
        self.path = path
        self.money = money
        self.hellos = 0
        self._asked: list[dict[str, Any]] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        self._listener = frames.listen(path)
        self._alarm, self._wake = socket.socketpair()
        self._conns: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        decoders: dict[socket.socket, frames.Decoder] = {}
        while True:
            ready = select.select([self._listener, self._alarm, *decoders], (), ())[0]
            if self._alarm in ready:
                for conn in [*decoders, self._listener]:
                    conn.close()
                return
            for sock in ready:
                if sock is self._listener:
                    decoders[sock.accept()[0]] = frames.Decoder()
                    continue
                try:
                    data = sock.recv(1 << 16)
                except ConnectionResetError:
                    data = b""
                if not data:
                    del decoders[sock]
                    sock.close()
                    continue
                for body in decoders[sock].feed(data):
                    message = frames.parse(body)
                    with contextlib.suppress(BrokenPipeError):  # a killed brain does not wait for its answer
                        sock.sendall(frames.encode({"id": message["id"], **self._answer(message)}))

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        money = self.money
        op = message["op"]
        self._asked.append(message)
        if op == "brain_hello":
            self.hellos += 1
            return {"ok": True, "epoch": 1}
        if op == "admit" and money.held_after is not None and len(money.settled) >= money.held_after:
            return {"ok": True, "held": "the endpoint is down", "since": "2026-01-02T03:04:05Z"}
        if op == "reserve" or "reserve" in message:
            if money.refuse is not None:
                return {"ok": False, "error": money.refuse}
            money.reserved.append(message.get("reserve", message))
            return {"ok": True, "reservation": f"v{len(money.reserved)}", "reserved_nano": 1000}
        if op == "settle":
            money.settled.append(message)
            return {"ok": True, "cost_nano": 7, "price_source": "test"}
        return {"ok": True}

    def told(self, op: str) -> list[dict[str, Any]]:
        """Everything that was asked by this op, in order."""
        return [message for message in self._asked if message["op"] == op]

    def close(self) -> None:
        self._wake.sendall(b"x")
        self._thread.join(10)
        self._alarm.close()
        self._wake.close()


class House:
    """One session: its keeper, its supervisor's side, and as many brains as are needed."""

    def __init__(
        self,
        keepers: Keepers,
        fork_server: BrainForkServer | None,
        sid: str,
        url: str,
        *,
        checks: list[str] | None = None,
        goal: str = "make it work",
    ) -> None:
        self.keepers = keepers
        self.fork_server = fork_server
        self.sid = sid
        self.url = url
        self.folder = keepers.folder(sid)
        self.money = Money()
        self.supervisor_socket = keepers.folders.runtime / f"sup-{sid}.sock"
        self.supervisor = SmallSupervisor(self.supervisor_socket, self.money)
        self.keeper_pid = keepers.spawn(sid)["pid"]
        self.link = keepers.supervisor(sid)
        self.gen = 0
        self.answered: set[str] = set()
        self.put(
            t.SessionIntent(
                name="n",
                goal=goal,
                repo="/r",
                branch="b",
                worktree="/w",
                model="claude-sonnet-4-6",
                checks=checks or [],
            ),
            t.SessionCreated(base="0" * 40, worktree="/w", branch="b"),
            *checked_before(*(checks or [])),
        )

    def put(self, *bodies: t.Body) -> None:
        wires: list[dict[str, Any]] = [t.to_wire(b) for b in bodies]
        self.link.append(*((w["type"], w["data"]) for w in wires))

    def spec(self, gen: int, **changes: Any) -> dict[str, Any]:
        base = {
            "sid": self.sid,
            "folder": str(self.folder.root),
            "keeper_socket": str(self.folder.keeper_socket),
            "supervisor_socket": str(self.supervisor_socket),
            "gen": gen,
            "secret": SECRET,
            "credential": {"base_url": self.url, "key": KEY},
            "model": "claude-sonnet-4-6",
            "max_tokens": 1000,
        }
        return {**base, **changes}

    def wake(self, **changes: Any) -> int:
        """Fork a brain, then grant it the lease, in the supervisor's order."""
        assert self.fork_server is not None
        self.gen += 1
        reply = self.fork_server.call("spawn", brain=self.spec(self.gen, **changes))
        assert reply["ok"], reply
        self.lease(reply)
        return int(reply["pid"])

    def lease(self, who: dict[str, Any]) -> None:
        self.link.call(
            "lease", gen=self.gen, epoch=1, secret=SECRET, pid=who["pid"], start=who["start"], boot=who["boot"]
        )

    def log(self) -> list[dict[str, Any]]:
        return self.keepers.log(self.sid)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [r["data"] for r in self.log() if r["type"] == kind]

    def answer_calls(self, answerer: Answerer) -> None:
        """End every open call as ``answerer`` says, as the supervisor ends a call that the human answered."""
        over = {e["call_id"] for e in self.of("tool.ended")}
        for call in self.of("tool.proposed"):
            if call["call_id"] not in over:
                with contextlib.suppress(Refused):
                    answer = answerer(call)
                    self.link.append(("tool.ended", {"call_id": call["call_id"], **answer}))
                    if call["tool"] == "check":
                        passed = answer["status"] == "ok" and answer.get("exit_code") == 0
                        verdict = {
                            "call_id": call["call_id"],
                            "command": call["input"]["command"],
                            "passed": passed,
                            "before": "failed",
                        }
                        self.link.append(("check.verdict", verdict))

    def until_exit(
        self,
        pid: int,
        answerer: Answerer = lambda _: {"status": "ok", "preview": "fine", "exit_code": 0},
        timeout: float = 60.0,
    ) -> int:
        """Answer calls until the brain has left; its exit code."""
        assert self.fork_server is not None
        deadline = time.monotonic() + timeout
        while pid not in self.fork_server.exits:
            self.fork_server.read(0.01)
            self.answer_calls(answerer)
            assert time.monotonic() < deadline, f"brain {pid} did not leave; log: {[r['type'] for r in self.log()]}"
        return self.fork_server.exits[pid]

    def wait_for(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        return list(
            wait_until(
                f"{count} × {kind} in the log",
                lambda: (found := self.of(kind)) if len(self.of(kind)) >= count else None,
            )
        )

    def close(self) -> None:
        self.supervisor.close()


@contextlib.contextmanager
def fork_server() -> Iterator[BrainForkServer]:
    house = BrainForkServer()
    try:
        yield house
    finally:
        house.close()

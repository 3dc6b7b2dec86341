"""A real fork server, real keepers and real actions in a temporary folder, for tests."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.domain.actions.action import action_hash
from harness.eventlog import framing, reader
from harness.executor import preconditions
from harness.keeper.calls.watch import NAME
from harness.linux import proc
from harness.protocol.connection import frames
from harness.protocol.paths import Folders, SessionFolder, ensure_private

SID = "testsess00"
PATIENCE_S = 60.0


class Refused(Exception):
    """The keeper answered with an error; ``error`` is its body."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.error = error
        self.code = str(error.get("code"))


def wait_until(what: str, condition: Callable[[], Any], timeout: float = PATIENCE_S) -> Any:
    """The first true value of ``condition``; fails naming ``what`` when there is none in time."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out waiting until {what}")
        time.sleep(0.005)
    return value


class Link:
    """One blocking connection: requests with replies, pushes kept aside."""

    def __init__(self, path: Path) -> None:
        self.sock = frames.connect(path, PATIENCE_S)
        self._decoder = frames.Decoder()
        self._ids = itertools.count(1)
        self._replies: dict[int, dict[str, Any]] = {}
        self.pushes: list[dict[str, Any]] = []
        self.ended = False

    def send(self, op: str, **arguments: Any) -> int:
        """Send a request and do not wait; returns its id."""
        number = next(self._ids)
        self.sock.sendall(frames.encode({"id": number, "op": op, **arguments}))
        return number

    def read_some(self) -> None:
        """Wait for bytes and sort what they complete; sets ``ended`` at the end of the stream."""
        try:
            data = self.sock.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            self.ended = True
            return
        for body in self._decoder.feed(data):
            message: dict[str, Any] = frames.parse(body)
            if "push" in message:
                self.pushes.append(message)
            else:
                self._replies[message["id"]] = message

    def reply(self, number: int) -> dict[str, Any]:
        """The reply to an earlier `send`. Raises Refused; ConnectionError when the keeper is gone."""
        while number not in self._replies:
            if self.ended:
                raise ConnectionError("the keeper closed the connection")
            self.read_some()
        message = self._replies.pop(number)
        if not message["ok"]:
            raise Refused(message["error"])
        return message

    def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        try:
            number = self.send(op, **arguments)
        except OSError as exc:
            raise ConnectionError(str(exc)) from exc
        return self.reply(number)

    def hello(self, role: str, **arguments: Any) -> dict[str, Any]:
        return self.call("hello", role=role, proto=frames.PROTOCOL, **arguments)

    def append(self, *records: tuple[str, dict[str, Any]], cls: str = "A", **arguments: Any) -> dict[str, Any]:
        return self.call(
            "append", records=[{"type": kind, "data": data} for kind, data in records], cls=cls, **arguments
        )

    def lines_until(self, seq: int) -> list[bytes]:
        """Every pushed line so far, at least up to ``seq``."""
        while self._last_seq() < seq:
            if self.ended:
                raise ConnectionError("the keeper closed the connection")
            self.read_some()
        return self.lines()

    def _last_seq(self) -> int:
        for push in reversed(self.pushes):
            if push["push"] == "events":
                return framing.seq_of(push["lines"][-1].encode())
        return -1

    def lines(self) -> list[bytes]:
        return [line.encode() for push in self.pushes if push["push"] == "events" for line in push["lines"]]

    def wait_end(self) -> None:
        while not self.ended:
            self.read_some()

    def close(self) -> None:
        self.sock.close()


def watchers(keeper: int) -> list[int]:
    """The processes that look what calls of this keeper take."""

    def called(pid: int) -> bytes:
        try:
            return Path(f"/proc/{pid}/comm").read_bytes().strip()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            return b""

    return [pid for pid in proc.descendants(keeper) if called(pid) == NAME]


class Keepers:
    """A fork server process and the keepers it started."""

    def __init__(self, root: Path, env: dict[str, str] | None = None) -> None:
        self.folders = Folders(root / "state", root / "run", root / "config")
        self._env = env if env is not None else {"PATH": os.environ.get("PATH", "")}
        self.pids: list[int] = []
        self.links: list[Link] = []
        self._start_nursery()

    def _start_nursery(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            argv = [
                sys.executable,
                "-P",
                "-s",
                "-E",
                "-m",
                "harness.keeper.fork_server",
                "--fd",
                str(theirs.fileno()),
            ]
            self.nursery_pid = os.posix_spawn(sys.executable, argv, self._env, setsid=True)
        ours.settimeout(PATIENCE_S)
        self.fork_server = ours
        self._decoder = frames.Decoder()
        self._ids = itertools.count(1)

    def folder(self, sid: str = SID) -> SessionFolder:
        return self.folders.session(sid)

    def ask(self, sid: str = SID, **arguments: Any) -> int:
        number = next(self._ids)
        if not self.folder(sid).root.exists():
            ensure_private(self.folder(sid).root)
        message = {
            "id": number,
            "op": "spawn",
            "sid": sid,
            "state": str(self.folders.state),
            "runtime": str(self.folders.runtime),
            **arguments,
        }
        self.fork_server.sendall(frames.encode(message))
        return number

    def answers(self, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            data = self.fork_server.recv(1 << 16)
            if not data:
                raise ConnectionError("the fork server is gone")
            found += [frames.parse(body) for body in self._decoder.feed(data)]
        return found

    def spawn(self, sid: str = SID, **arguments: Any) -> dict[str, Any]:
        """Start a keeper. Raises Refused."""
        number = self.ask(sid, **arguments)
        (answer,) = self.answers(1)
        assert answer["id"] == number
        if not answer["ok"]:
            raise Refused(answer["error"])
        self.pids.append(answer["pid"])
        return answer

    def link(self, sid: str = SID) -> Link:
        link = Link(self.folder(sid).keeper_socket)
        self.links.append(link)
        return link

    def supervisor(self, sid: str = SID, epoch: int = 1) -> Link:
        link = self.link(sid)
        link.hello("supervisor", epoch=epoch)
        return link

    def brain(self, supervisor: Link, gen: int = 1, sid: str = SID, epoch: int = 1, secret: str = "s3cret") -> Link:
        """Grant a lease to this process and connect as its brain."""
        supervisor.call("lease", gen=gen, epoch=epoch, secret=secret, pid=os.getpid(), start=1, boot="b")
        link = self.link(sid)
        link.hello("brain", gen=gen, secret=secret)
        return link

    def log(self, sid: str = SID) -> list[dict[str, Any]]:
        """Every record of the verified log."""
        return [frames.parse(line) for line in reader.read(self.folder(sid).log)]

    def types(self, sid: str = SID) -> list[str]:
        return [record["type"] for record in self.log(sid)]

    def kill(self, pid: int) -> None:
        """SIGKILL one keeper and wait until it is gone."""
        os.kill(pid, signal.SIGKILL)
        wait_gone(pid)

    def close(self) -> None:
        for link in self.links:
            link.close()
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.fork_server.close()
        os.waitpid(self.nursery_pid, 0)
        for pid in self.pids:
            wait_gone(pid)


def strace_of_a_keeper() -> str:
    """The tracer, or a skip: a keeper is not dumpable, so only root may attach to it."""
    found = shutil.which("strace")
    if found is None or os.geteuid() != 0:
        pytest.skip("looking into a keeper needs strace and the rights of root")
    return found


def wait_gone(pid: int) -> None:
    wait_until(f"process {pid} is gone", lambda: proc.identify(pid) is None)


@contextlib.contextmanager
def keepers(root: Path) -> Iterator[Keepers]:
    fleet = Keepers(root)
    try:
        yield fleet
    finally:
        fleet.close()


def action(
    worktree: Path, call_id: str, argv: list[str], *, sid: str = SID, access: str = "unsandboxed", **more: Any
) -> dict[str, Any]:
    """The canonical action of one ``exec`` call."""
    env = {"PATH": "/usr/bin:/bin", "HOME": "/tmp"}
    world = {
        "cwd": preconditions.identity(str(worktree)),
        "program": preconditions.program(argv[0], str(worktree), env["PATH"]),
    }
    return {
        "v": 1,
        "session": sid,
        "call": call_id,
        "tool": "exec",
        "ref": "toolu_1",
        "kind": "exec",
        "argv": argv,
        "input": {"argv": argv},
        "cwd": str(worktree),
        "timeout_s": 60,
        "access": access,
        "outside": [],
        "env": env,
        "sandbox": {
            "worktree": str(worktree),
            "read": [],
            "write": [str(worktree)],
            "binds": [],
            "network": False,
            "sandboxed": access != "unsandboxed",
        },
        "pre": world if access == "unsandboxed" else {},
        "effects": ["unsandboxed"] if access == "unsandboxed" else [],
        **more,
    }


def note(text: str) -> tuple[str, dict[str, Any]]:
    return "harness.note", {"level": "info", "text": text}


def proposed(call_id: str) -> tuple[str, dict[str, Any]]:
    return "tool.proposed", {"call_id": call_id, "ref": "u", "tool": "exec", "input": {}}


def judged(what: dict[str, Any], verdict: str = "allow") -> tuple[str, dict[str, Any]]:
    data = {
        "call_id": what["call"],
        "action_hash": action_hash(what),
        "verdict": verdict,
        "rule": "r",
        "reason": "",
        "policy": "p",
        "action": what,
    }
    return "tool.judged", data


def allowed(what: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The records that bring an action to where it may start."""
    return [proposed(what["call"]), judged(what)]

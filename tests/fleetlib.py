"""A whole real fleet for a test: simulator, supervisor, repository, command line, and the means to kill any part of
it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.domain.states import OVER, Desired
from harness.eventlog.reader import read
from harness.events import types as t
from harness.projections.apply import fold
from harness.projections.state.session_state import SessionState
from harness.protocol.client import Client, Unreachable
from harness.protocol.connection.transport import UnixSocket
from harness.protocol.paths import Folders, ensure_private
from tests import warm

COMMAND = str(Path(sys.executable).with_name("watchfloor"))
KEY = "sk-sim-test-0001"
SCENARIOS = Path(__file__).parent / "scenarios"
T = TypeVar("T")

HOLD: tuple[str, dict[str, Any]] = ("exec", {"argv": ["sh", "-c", "while [ -e notes.txt ]; do sleep 0.02; done"]})
"""A call that runs until `Fleet.release`: what happens meanwhile is decided by the test and not by how long something
takes.
"""


def play(*turns: list[tuple[str, dict[str, Any]]] | str) -> str:
    """A goal that makes the simulator play these turns: a string is a closing text, a list is calls made at once."""
    script = [
        {"text": turn} if isinstance(turn, str) else {"text": f"Step {i}.", "calls": turn}
        for i, turn in enumerate(turns)
    ]
    return f"play: {json.dumps(script)}"


def wait_for(what: str, probe: Callable[[], T | None], timeout: float = 60.0) -> T:
    """Poll ``probe`` until it gives something true; the name says what was awaited when it never does.

    Between two looks passes nine times what one costs, and more the longer it was in vain, so that who waits leaves the
    machine to what is awaited.
    """
    first = time.monotonic()
    deadline = first + timeout
    while True:
        began = time.monotonic()
        value = probe()
        if value:
            return value
        ended = time.monotonic()
        if ended > deadline:
            raise AssertionError(f"waited {timeout:.0f} s in vain for: {what}")
        time.sleep(min(0.25, max(0.02, 9 * (ended - began), (ended - first) / 16)))


def make_repository(path: Path, files: dict[str, str] | None = None) -> Path:
    """A small git repository with one commit."""
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    with (path / ".git/config").open("a") as config:
        config.write("[user]\n\temail = test@example.invalid\n\tname = Test\n")
    for name, text in (files or {"README.md": "# Thing\n", "src/a.txt": "alpha\n", "notes.txt": "keep\n"}).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    git(path, "add", "-A")
    git(path, "-c", "maintenance.auto=false", "commit", "-q", "-m", "start")
    return path


def git(path: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=path, check=True, capture_output=True, text=True).stdout


@dataclass
class Fleet:
    """One fleet in a folder of its own."""

    root: Path
    folders: Folders
    env: dict[str, str]
    base_url: str
    simulator: subprocess.Popen[bytes] | warm.Forked
    extra: dict[str, str] = field(default_factory=dict)

    # -- command line ------------------------------------------------------------------------------

    def run(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        env = self.env | self.extra
        if warm.fits(env):
            done = warm.run(args, env, timeout=90)
        else:
            done = subprocess.run(
                [COMMAND, *args], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=90
            )
        if check and done.returncode != 0:
            raise AssertionError(
                f"watchfloor {' '.join(args)} exited with {done.returncode}:"
                f" {done.stderr}{done.stdout}\n{self.supervisor_log()}"
            )
        return done

    def json(self, *args: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(*args, "--json").stdout.splitlines()]

    def launch(
        self,
        goal: str,
        *,
        repo: Path | None = None,
        checks: tuple[str, ...] = (),
        name: str = "",
        more: tuple[str, ...] = (),
    ) -> str:
        args = ["launch", "--repo", str(repo or self.repository()), "--goal", goal, *more]
        for check in checks:
            args += ["--check", check]
        if name:
            args += ["--name", name]
        return str(self.json(*args)[0]["sid"])

    def approve(self, approval_id: str, *more: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Approve as a person does: read the card, then name its hash."""
        looked = self.run("approvals", approval_id, "--json", check=check)
        digest = json.loads(looked.stdout)["action_hash"] if looked.returncode == 0 else ""
        return self.run("approve", approval_id, *(("--hash", digest[:12]) if digest else ()), *more, check=check)

    def repository(self) -> Path:
        path = self.root / "repo"
        return path if path.exists() else make_repository(path)

    def release(self, sid: str) -> None:
        """Let the session's `HOLD` end."""
        (Path(self.row(sid)["worktree"]) / "notes.txt").unlink()

    # -- what is so --------------------------------------------------------------------------------

    def call(self, op: str, **arguments: object) -> dict[str, Any]:
        """The supervisor's reply to one operation, over a connection of its own."""
        with Client(UnixSocket(self.folders.supervisor_socket), timeout=60) as client:
            return client.call(op, **arguments)

    def row(self, sid: str) -> dict[str, Any]:
        return msgspec.convert(self.call("session", sid=sid)["row"], dict[str, Any])

    def row_or_start(self, sid: str) -> dict[str, Any]:
        """The row, starting the supervisor when none lives."""
        self.run("supervisor", "start")
        return self.row(sid)

    def records(self, sid: str) -> list[t.Record]:
        folder = self.folders.session(sid).log
        return [t.decode(line) for line in read(folder)] if folder.is_dir() else []

    def state(self, sid: str) -> SessionState:
        return fold(self.records(sid))

    def wait_state(self, sid: str, *states: str, timeout: float = 60.0) -> dict[str, Any]:
        """The row in one of these states; ``stopped`` is shown from the wish on, and awaited until it has come true."""

        def probe() -> dict[str, Any] | None:
            try:
                row = self.row(sid)
            except Unreachable:
                return None
            true = row["state"] != "stopped" or row.get("ended")
            return row if row["state"] in states and true else None

        try:
            return wait_for(f"session {sid} in {states}", probe, timeout)
        except AssertionError as exc:
            tail = "\n".join(f"{r.seq} {r.type} {r.body}"[:300] for r in self.records(sid)[-15:])
            raise AssertionError(f"{exc}\n{tail}\n{self.supervisor_log()}") from exc

    def wait_event(self, sid: str, kind: str, timeout: float = 60.0) -> t.Record:
        """The first record of this kind; what checks do before the work is left out."""
        return wait_for(f"{kind} in {sid}", lambda: next(iter(self._of_kind(sid, kind)), None), timeout)

    def wait_event_count(self, sid: str, kind: str, count: int, timeout: float = 60.0) -> None:
        wait_for(f"{count} × {kind} in {sid}", lambda: len(self._of_kind(sid, kind)) >= count, timeout)

    def _of_kind(self, sid: str, kind: str) -> list[t.Record]:
        records = self.records(sid)
        passing = {r.body.call_id for r in records if isinstance(r.body, t.ToolProposed) and r.body.before_work}
        return [r for r in records if r.type == kind and getattr(r.body, "call_id", "") not in passing]

    def requests(self) -> list[dict[str, Any]]:
        """Every open request, as ``approvals --json`` prints them, without a process for the look."""
        return msgspec.convert(self.call("approvals")["approvals"], list[dict[str, Any]])

    def approval(self, sid: str, timeout: float = 60.0) -> dict[str, Any]:
        """The first open request of a session; the supervisor is started when none lives."""

        def probe() -> dict[str, Any] | None:
            try:
                return next((a for a in self.requests() if a["sid"] == sid), None)
            except Unreachable:
                self.run("supervisor", "start")
                return None

        return wait_for(f"an open request of {sid}", probe, timeout)

    def violations(self) -> list[dict[str, Any]]:
        return msgspec.convert(self.call("invariants")["violations"], list[dict[str, Any]])

    def supervisor_log(self) -> str:
        try:
            return self.folders.supervisor_log.read_text()[-4000:]
        except OSError:
            return "(no supervisor log)"

    # -- who lives ---------------------------------------------------------------------------------

    def supervisor_pid(self) -> int:
        with Client(UnixSocket(self.folders.supervisor_socket)) as client:
            return msgspec.convert(client.hello["pid"], int)

    def keeper_pid(self, sid: str) -> int:
        return max((r.seq, r.body.pid) for r in self.records(sid) if isinstance(r.body, t.KeeperStarted))[1]

    def brain_pid(self, sid: str) -> int:
        lease = self.state(sid).lease
        return lease.pid if lease else 0

    def processes(self) -> list[tuple[int, str]]:
        """Every living process whose environment or command line names this fleet."""
        found = []
        needle = str(self.root).encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                status = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                command = (entry / "cmdline").read_bytes()
                text = command + (entry / "environ").read_bytes()
            except OSError:
                continue
            if status != "Z" and needle in text:
                found.append((int(entry.name), command.replace(b"\0", b" ").decode("utf-8", "replace")))
        return [p for p in found if p[0] != self.simulator.pid]

    def stop(self) -> None:
        """Stop everything that belongs to this fleet."""
        try:
            with Client(UnixSocket(self.folders.supervisor_socket), timeout=30) as client:
                client.call("shutdown", sessions="stop")
        except Unreachable:
            pass


@contextmanager
def apart(made: Fleet) -> Iterator[Fleet]:
    """A fleet as one of several tests on it sees it, which share nothing but the fleet: with a folder and a repository
    of its own. Afterwards every session is over.
    """
    try:
        yield replace(made, root=Path(tempfile.mkdtemp(prefix="t-", dir=made.root)), extra={})
    finally:
        with Client(UnixSocket(made.folders.supervisor_socket), timeout=30) as client:
            for sid in _not_over(client):
                client.call("desire", sid=sid, state=Desired.STOPPED)
            wait_for("every session to be over", lambda: not _not_over(client))


def _not_over(client: Client) -> list[str]:
    rows = msgspec.convert(client.call("sessions")["rows"], list[dict[str, Any]])
    return [str(row["sid"]) for row in rows if row["state"] not in OVER]


def kill(pid: int) -> None:
    """``kill -9`` and wait until the process is gone."""
    assert pid > 0, "there is no such process; 0 would be this one and all of its group"
    os.kill(pid, signal.SIGKILL)
    wait_for(f"death of {pid}", lambda: not alive(pid))


def alive(pid: int) -> bool:
    """A zombie counts as dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def power_off(made: Fleet) -> None:
    """Kill all that belongs to a fleet, until nobody is left who would start anything again."""
    wait_for("every process of the fleet to be gone", lambda: not _killed(made))


def _killed(made: Fleet) -> int:
    """Kill what is there now; how many processes that were."""
    left = made.processes()
    for pid, _ in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(left)


@contextmanager
def fleet(
    *, config: str = "", policy: str = "", key: str = KEY, simulator_args: tuple[str, ...] = ()
) -> Iterator[Fleet]:
    """A fleet with a running simulator; the supervisor starts with the first command."""
    with tempfile.TemporaryDirectory(prefix="wf-") as name:
        root = Path(name)
        folders = Folders(root / "state", root / "run", root / "config")
        for path in (folders.state, folders.runtime, folders.config):
            ensure_private(path)
        ready = root / "simulator.json"
        options = ("--port", "0", "--ready-file", str(ready), "--key", KEY, "--speed", "0")
        with open(os.devnull) as null:
            simulator = warm.start(
                "simulator",
                [*options, "--scenarios", str(SCENARIOS), *simulator_args],
                os.environ,
                (null.fileno(), 1, 2),
            )
        try:
            port = json.loads(
                wait_for(
                    "the simulator", lambda: ready.read_text() if ready.exists() and ready.stat().st_size else None
                )
            )["port"]
            base_url = f"http://127.0.0.1:{port}"
            (folders.config / "key").write_text(key)
            (folders.config / "key").chmod(0o600)
            default = (
                f'[model]\ndefault = "claude-haiku-5-5"\nbase_url = "{base_url}"\napi_key_file ='
                f' "{folders.config / "key"}"\n'
            )
            if "evidence_rounds" not in config:
                default += "evidence_rounds = 0\n"
            folders.config_file.write_text(default + config)
            if policy:
                folders.policy_file.write_text(policy)
            env = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC", "WATCHFLOOR"))}
            env |= {
                "WATCHFLOOR_STATE": str(folders.state),
                "WATCHFLOOR_RUNTIME": str(folders.runtime),
                "WATCHFLOOR_CONFIG": str(folders.config),
            }
            made = Fleet(root, folders, env, base_url, simulator)
            try:
                yield made
            finally:
                made.stop()
                power_off(made)
                made.simulator.kill()  # another one, when a test took the first away and brought it back
                made.simulator.wait()
        finally:
            simulator.kill()
            simulator.wait()

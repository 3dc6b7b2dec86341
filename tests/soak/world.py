"""The fleet under trouble: its folders (the state on a small file system of its own where that can be), who lives in
it, and a client that insists.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.eventlog.framing import LogError
from harness.eventlog.reader import read
from harness.eventlog.tail import Tail
from harness.events import types as t
from harness.linux.proc import Identity, alive, identify
from harness.protocol.client import SupervisorError, Unreachable, ensure_supervisor
from harness.protocol.paths import FolderError
from harness.sandbox import namespace_clone
from tests.fleetlib import Fleet, fleet, make_repository
from tests.soak.scenarios import worker

STATE_BYTES = 192 << 20
SCENARIOS = Path(worker.__file__).parent
CONFIG = """
[caps]
session_usd = false
day_usd = false
[limits]
disk_free = 0
memory_free = 0
"""
_TMPFS_OPTIONS = f"size={STATE_BYTES},mode=700"
_MNT_DETACH = 2
KINDS = (
    "guardian",
    "supervisor",
    "keeper fork server",
    "brain fork server",
    "keeper",
    "brain",
    "vault or monitor",
    "runner",
    "tool",
)


@dataclass(slots=True)
class World:
    """What every trouble needs. ``over`` is set when the trouble has to end; counts are kept under a lock."""

    fleet: Fleet
    notes: Path
    seed: int
    own_disk: str = ""
    """Why the state folder has no file system of its own; empty when it has."""
    over: threading.Event = field(default_factory=threading.Event)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    stops: set[str] = field(default_factory=set)
    """Sessions whose stop was acknowledged."""
    stops_asked: set[str] = field(default_factory=set)
    """Sessions whose stop was asked for; without an answer it may be done all the same."""
    names: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    seen: set[Identity] = field(default_factory=set)
    followed: dict[str, Followed] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    busy: set[str] = field(default_factory=set)
    """Sessions that a race has for itself."""

    # -- counting ----------------------------------------------------------------------------------

    def count(self, what: str, times: int = 1) -> None:
        with self.lock:
            self.counts[what] += times

    def lasted(self, what: str, seconds: float) -> None:
        with self.lock:
            self.seconds[what] += seconds  # type: ignore[assignment]

    def say(self, text: str) -> None:
        print(text, flush=True)

    def dice(self, what: str) -> random.Random:
        """The same for the same seed, whatever else happens."""
        return random.Random(f"{self.seed}/{what}")

    # -- the supervisor ----------------------------------------------------------------------------

    def call(self, op: str, timeout: float = 15.0, **arguments: Any) -> dict[str, Any]:
        """One try, starting a supervisor when none lives. Raises Unreachable, SupervisorError."""
        try:
            client = ensure_supervisor(self.fleet.folders, name="soak", timeout=timeout, starting=timeout)
        except (FolderError, OSError) as exc:
            raise Unreachable(str(exc)) from exc
        with client:
            client.wait_up_to(timeout)
            return client.call(op, **arguments)

    def rows(self) -> list[dict[str, Any]]:
        """Every session as the supervisor sees it; empty while nobody answers."""
        try:
            return list(self.call("sessions")["rows"])
        except (Unreachable, SupervisorError):
            return []

    def launch(self, kind: str, turns: int) -> str:
        """A new session; its id, or nothing when nobody answered (it may have been made all the same)."""
        name = f"{kind}-{next(self.names)}"
        try:
            reply = self.call(
                "launch",
                repo=str(self.fleet.repository()),
                goal=worker.goal(name, turns, self.notes),
                name=name,
                checks=[],
                caps={},
                **MODEL,
            )
        except (Unreachable, SupervisorError) as exc:
            self.count(f"launches refused: {exc.code if isinstance(exc, SupervisorError) else 'nobody answered'}")
            return ""
        return str(reply["sid"])

    def desire(self, sid: str, state: str, timeout: float = 15.0) -> str:
        """Ask for it once: empty when it was acknowledged, else why not."""
        if state == "stopped":
            with self.lock:
                self.stops_asked.add(sid)
        try:
            self.call("desire", timeout=timeout, sid=sid, state=state, reason="soak")
        except SupervisorError as exc:
            return exc.code
        except Unreachable:
            return "unreachable"
        if state == "stopped":
            with self.lock:
                self.stops.add(sid)
        return ""

    # -- the endpoint ------------------------------------------------------------------------------

    def control(self, path: str, body: object | None = None, method: str = "") -> Any:
        """The simulator's control endpoints. Raises OSError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.fleet.base_url}/_sim/{path}", data=data, method=method or ("GET" if body is None else "POST")
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    # -- who lives ---------------------------------------------------------------------------------

    def census(self) -> dict[str, list[Identity]]:
        """Living processes of the fleet by kind, from who says so in files and from who is whose child."""
        found: dict[str, list[Identity]] = {kind: [] for kind in KINDS}
        children, commands = _tree()
        folders = self.fleet.folders
        for number in _supervisors(folders.runtime / "supervisor.json"):
            _add(found["supervisor"], number)
            if b"harness.supervisor.guardian" in commands.get(parent := _parent(number), b""):
                _add(found["guardian"], parent)
            for child in children.get(number, ()):
                for kind, module in (
                    ("keeper fork server", b"harness.keeper.fork_server"),
                    ("brain fork server", b"harness.brain.brain_fork_server"),
                ):
                    if module in commands.get(child, b""):
                        _add(found[kind], child)
        for sid in self.sids():
            keeper, brain = self.newest(sid)
            if brain is not None and alive(brain):
                found["brain"].append(brain)
            if keeper is None or not alive(keeper):
                continue
            found["keeper"].append(keeper)
            for child in children.get(keeper.pid, ()):
                of_sandbox = _name(child) in (namespace_clone.WARDEN, namespace_clone.INMATE)
                below = list(_below(child, children)) if of_sandbox else []
                _add(found["runner" if of_sandbox else "vault or monitor"], child)
                for process in below:
                    _add(found["tool"], process)
        with self.lock:
            self.seen.update(who for group in found.values() for who in group)
        return found

    def sids(self) -> list[str]:
        """Every session on disk."""
        folder = self.fleet.folders.sessions
        with contextlib.suppress(OSError):
            return sorted(
                entry.name for entry in folder.iterdir() if not entry.name.startswith(".") and (entry / "log").is_dir()
            )
        return []

    def ended(self, sid: str) -> bool:
        """True when its log says that it ended or was stopped; a row that shows failed may only be waiting for its next
        try.
        """
        with contextlib.suppress(LogError, OSError):
            return any(
                b'"session.ended"' in line or b'"state":"stopped"' in line
                for line in read(self.fleet.folders.session(sid).log)
            )
        return False

    def newest(self, sid: str) -> tuple[Identity | None, Identity | None]:
        """The keeper and the brain that its log names last."""
        with self.lock:
            who = self.followed.get(sid)
            if who is None:
                who = Followed(Tail(self.fleet.folders.session(sid).log))
                self.followed[sid] = who
            try:
                who.look()
            except (LogError, OSError, ValueError):  # it is being cut or sealed under our eyes: begin anew next time
                del self.followed[sid]
            return who.keeper, who.brain


@dataclass(slots=True)
class Followed:
    """A log that is read as it grows, for the processes that it names."""

    tail: Tail
    keeper: Identity | None = None
    brain: Identity | None = None

    def look(self) -> None:
        """Take what is new. Raises LogError, OSError."""
        while lines := self.tail.poll(1 << 20):
            for line in lines:
                if b'"keeper.started"' in line or b'"lease.granted"' in line:
                    body = t.decode(line).body
                    if isinstance(body, t.KeeperStarted):
                        self.keeper = Identity(body.pid, body.start, body.boot)
                    elif isinstance(body, t.LeaseGranted):
                        self.brain = Identity(body.pid, body.start, body.boot)


MODEL: dict[str, Any] = {}
"""Model, base URL and credential of every launch, set once the simulator's port is known."""


def send(who: Identity, number: signal.Signals) -> bool:
    """A signal to exactly this process; False when it is gone."""
    try:
        fd = os.pidfd_open(who.pid)
    except OSError:
        return False
    try:
        if not alive(who):
            return False
        signal.pidfd_send_signal(fd, number)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _add(group: list[Identity], pid: int) -> None:
    who = identify(pid)
    if who is not None and alive(who):
        group.append(who)


def _supervisors(path: Path) -> list[int]:
    try:
        value = json.loads(path.read_text())
        who = Identity(value["pid"], value["start"], value["boot"])
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [who.pid] if alive(who) else []


def _name(pid: int) -> bytes:
    """What a process calls itself; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_bytes().strip()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, ValueError):
        return 0


def _tree() -> tuple[dict[int, list[int]], dict[int, bytes]]:
    """Children and command lines of every process."""
    children: dict[int, list[int]] = {}
    commands: dict[int, bytes] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                commands[int(entry.name)] = Path(entry.path, "cmdline").read_bytes()
                children.setdefault(_parent(int(entry.name)), []).append(int(entry.name))
    return children, commands


def _below(pid: int, children: dict[int, list[int]]) -> Iterator[int]:
    for child in children.get(pid, ()):
        yield child
        yield from _below(child, children)


def _mount(folder: Path) -> str:
    """Put a small file system on the folder; why that is not possible, or nothing."""
    if os.geteuid() != 0:
        return "only root can mount a small file system"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"soak", os.fsencode(folder), b"tmpfs", 0, _TMPFS_OPTIONS.encode()) != 0:
        return f"a small file system cannot be mounted: {os.strerror(ctypes.get_errno())}"
    return ""


@contextlib.contextmanager
def world(seed: int, *, disk: bool = True) -> Iterator[World]:
    """A fleet without sessions. ``disk``: give the state a file system of its own, when that is possible."""
    arguments = (
        "--scenarios",
        str(SCENARIOS),
        "--requests-per-minute",
        "1000000",
        "--input-tokens-per-minute",
        "1000000000",
    )
    with fleet(config=CONFIG, simulator_args=(*arguments, "--output-tokens-per-minute", "1000000000")) as made:
        notes = made.root / "notes"
        notes.mkdir()
        make_repository(made.root / "repo")
        key = (made.folders.config / "key").read_text()
        MODEL.update(
            model="claude-haiku-5-5", base_url=made.base_url, credential={"base_url": made.base_url, "key": key}
        )
        why = _mount(made.folders.state) if disk else "nobody fills it"
        w = World(made, notes, seed, why)
        try:
            yield w
        finally:
            w.over.set()
            made.stop()
            for pid, _ in made.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGKILL)
            if not why:
                ctypes.CDLL(None).umount2(os.fsencode(made.folders.state), _MNT_DETACH)


def command(w: World, *args: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
    """The command line, as a person types it."""
    program = str(Path(sys.executable).with_name("watchfloor"))
    return subprocess.run(
        [program, *args],
        env=w.fleet.env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        check=False,
    )

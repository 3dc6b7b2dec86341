"""The look from outside: what on this host must be as before, whoever was let loose inside the sandbox."""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.sandbox import namespace_clone

VICTIM = """
import os, signal, sys
secret = os.environ.pop("SECRET")
def note(number, frame):
    os.write(1, b"%d " % number)
for number in range(1, 65):
    if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
        signal.signal(number, note)
os.write(1, b"R")
while True:
    signal.pause()
"""
_OF_ONE_SANDBOX = 2
"""Processes of a sandbox that waits for its call: warden and inmate."""
SETTINGS = (
    *(
        f"/proc/sys/kernel/{name}"
        for name in ("core_pattern", "hostname", "domainname", "modprobe", "randomize_va_space", "sysrq", "panic")
    ),
    *(
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/fs/suid_dumpable",
        "/proc/sys/net/ipv4/ip_forward",
    ),
    *(
        "/proc/sys/kernel/ns_last_pid",
        "/sys/kernel/uevent_helper",
        "/proc/swaps",
        "/proc/self/mountinfo",
        "/proc/modules",
    ),
)
CHANGING = ("/proc/sys/kernel/ns_last_pid", "/proc/sys/vm/drop_caches")
"""Tried as targets, and not compared: they change, or read back differently, without anybody's doing."""
LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_NPROC)


class Victim:
    """A process of the host that keeps a secret in its memory and tells of every signal it gets."""

    def __init__(self, secret: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", VICTIM],
            env={"SECRET": secret, "PATH": ""},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self._pipe = self.process.stdout.fileno()
        if os.read(self._pipe, 1) != b"R":
            raise RuntimeError("the victim did not start")
        self.pid = self.process.pid
        self._state = self._look()

    def _look(self) -> dict[str, object]:
        text = Path(f"/proc/{self.pid}/status").read_text()
        status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        return {
            "tracer": status["TracerPid"],
            "stopped": status["State"][0] in "Tt",
            "identity": (status["Uid"], status["Gid"], status["CapEff"], status["NoNewPrivs"]),
            "nice": os.getpriority(os.PRIO_PROCESS, self.pid),
            "affinity": sorted(os.sched_getaffinity(self.pid)),
            "oom": Path(f"/proc/{self.pid}/oom_score_adj").read_text(),
            "limits": [resource.prlimit(self.pid, what) for what in LIMITS],
        }

    def harmed(self) -> list[str]:
        found = []
        if self.process.poll() is not None:
            return [f"the process {self.pid} of the host was killed ({self.process.returncode})"]
        if select.select([self._pipe], [], [], 0)[0]:
            found.append(f"the process {self.pid} of the host got signals {os.read(self._pipe, 4096)!r}")
        now = self._look()
        found += [
            f"the process {self.pid} of the host: {key} was {old} and is {now[key]}"
            for key, old in self._state.items()
            if now[key] != old
        ]
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


class Doors:
    """Listeners of the host; whoever knocks from inside has escaped."""

    def __init__(self, run: Path, worktree: Path, token: str) -> None:
        self._open: dict[str, socket.socket] = {}
        self.abstract = f"wf-attack-{token}"
        self.paths = {
            "supervisor": run / "supervisor.sock",
            "ssh-agent": run / "agent" / "agent.1",
            "docker": run / "docker.sock",
        }
        for name, path in self.paths.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._unix(name, str(path))
        self.inside = worktree.parent / f"{worktree.name}.host.sock"
        self._unix("beside", str(self.inside))
        self._unix("abstract", "\0" + self.abstract)
        self._unix("abstract datagram", "\0" + self.abstract + "d", socket.SOCK_DGRAM)
        self._unix("abstract packets", "\0" + self.abstract + "p", socket.SOCK_SEQPACKET)
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = int(tcp.getsockname()[1])
        self._keep("tcp", tcp)
        with contextlib.suppress(OSError):
            self._keep("tcp6", socket.create_server(("::1", self.port), family=socket.AF_INET6))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", self.port))
        self._keep("udp", udp)

    def _keep(self, name: str, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._open[name] = sock

    def _unix(self, name: str, address: str, kind: int = socket.SOCK_STREAM) -> None:
        sock = socket.socket(socket.AF_UNIX, kind)
        sock.bind(address)
        if kind != socket.SOCK_DGRAM:
            sock.listen()
        self._keep(name, sock)

    def knocked(self) -> list[str]:
        found = []
        for name, sock in self._open.items():
            with contextlib.suppress(BlockingIOError):
                if sock.type == socket.SOCK_DGRAM:
                    found.append(f"a message arrived at the host's {name} socket: {sock.recv(200)!r}")
                else:
                    sock.accept()[0].close()
                    found.append(f"somebody connected to the host's {name} socket")
        return found

    def close(self) -> None:
        for sock in self._open.values():
            sock.close()


def entries(roots: Iterable[Path]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """(path, what it is and holds) of everything below these roots; links are not followed."""
    pending = list(roots)
    while pending:
        path = pending.pop()
        try:
            info = path.lstat()
        except OSError:
            continue
        what: object = ""
        if stat.S_ISDIR(info.st_mode):
            pending += list(path.iterdir())
            yield str(path), (info.st_mode, info.st_uid, info.st_ino)
            continue
        if stat.S_ISLNK(info.st_mode):
            what = os.readlink(path)
        elif stat.S_ISREG(info.st_mode):
            what = hashlib.sha256(path.read_bytes()).hexdigest()
        yield str(path), (info.st_mode, info.st_uid, info.st_ino, info.st_nlink, info.st_size, info.st_mtime_ns, what)


def below(pid: int) -> list[int]:
    """Children of a process."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == pid and fields[0] != "Z":
                    found.append(int(name))
    return found


def _keeps_states(pid: int, keeper: int) -> bool:
    """True for the processes that keep the worktree's states and that watch calls: forked from the keeper, so of the
    same command line, and in no sandbox.

    Told by what everybody may read: as another user than root its descriptors and namespaces are closed to us.
    """
    with contextlib.suppress(OSError):
        same = Path(f"/proc/{pid}/cmdline").read_bytes() == Path(f"/proc/{keeper}/cmdline").read_bytes()
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return same and len(status["NSpid"].split()) == 1 and status["Name"].strip() != namespace_clone.WARDEN.decode()
    return False


def _stands_ready(pid: int) -> bool:
    """True for who holds the sandbox that a keeper has ready, and for an inmate that waits there: it has started
    nothing.
    """
    with contextlib.suppress(OSError):
        name = Path(f"/proc/{pid}/comm").read_bytes().strip()
        return name == namespace_clone.WARDEN or (name == namespace_clone.INMATE and not below(pid))
    return False


def inhabitants(base: Path) -> list[int]:
    """Processes in a sandbox whose mounts show ``base``: what a call left behind."""
    needle = os.fsencode(str(base))
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if needle in Path(f"/proc/{name}/mountinfo").read_bytes():
                    found.append(int(name))
    return found


class Watch:
    """Compares the host with what it was when the watch began, or when it last found a difference."""

    def __init__(self, guarded: list[Path], victim: Victim, doors: Doors, base: Path) -> None:
        self.guarded = guarded
        self.victim = victim
        self.doors = doors
        self.base = base
        self.canaries: dict[str, bytes] = {}
        self._files = dict(entries(guarded))
        self._settings = self._read()

    @staticmethod
    def _read() -> dict[str, bytes]:
        found = {}
        for path in SETTINGS:
            if path not in CHANGING:
                with contextlib.suppress(OSError):
                    found[path] = Path(path).read_bytes()
        if "/proc/self/mountinfo" in found:  # other programs of this machine mount and unmount too
            found["/proc/self/mountinfo"] = b"%d" % found["/proc/self/mountinfo"].count(b" /proc ")
        return found

    def secrets(self, where: str, data: bytes) -> list[str]:
        """Which secrets of the host stand in data that came from inside."""
        return [f"{where} holds the secret of {name}" for name, token in self.canaries.items() if token in data]

    def look(self, keeper: int) -> list[str]:
        """Everything that is not as it was. What is found once is not found again."""
        found = self.victim.harmed() + self.doors.knocked()
        now = dict(entries(self.guarded))
        for path in sorted(self._files.keys() | now.keys()):
            if self._files.get(path) != now.get(path):
                found.append(f"{path} was changed, made or removed: {self._files.get(path)} → {now.get(path)}")
        self._files = now
        settings = self._read()
        found += [
            f"{path} was {old!r} and is {settings.get(path)!r}"
            for path, old in self._settings.items()
            if settings.get(path) != old
        ]
        self._settings = settings
        return found + self.left(keeper)

    def _strangers(self, keeper: int) -> list[int]:
        found = [*(pid for pid in below(keeper) if not _keeps_states(pid, keeper)), *inhabitants(self.base)]
        ready = {pid for pid in found if _stands_ready(pid)}
        return [pid for pid in found if pid not in ready or len(ready) > _OF_ONE_SANDBOX]

    def left(self, keeper: int, patience_s: float = 10.0) -> list[str]:
        """Processes that outlived their call; those that are just going get a moment. They are ended."""
        end = time.monotonic() + patience_s
        while pids := self._strangers(keeper):
            if time.monotonic() > end:
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                return [f"{len(pids)} processes outlived their call"]
            time.sleep(0.01)
        return []

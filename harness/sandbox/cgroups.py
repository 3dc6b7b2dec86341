"""One cgroup per session and one below it per call, where a cgroup v2 subtree was delegated to us. Standard library
only.

Layout below the delegated group, which must not hold processes itself (the kernel's rule)::

    <ours>/watchfloor          supervisor, keepers and whatever else was there when the first call started
    <ours>/wf-<sid>            limits of one session: memory, swap, processes, share of the processor
    <ours>/wf-<sid>/<call>     one call: what it did is read from its events, and it is killed in one write

The runner enters by writing to a descriptor of ``cgroup.procs`` that it inherits, so nothing of the file system is
shown inside the sandbox. ``reference: linux/Documentation/admin-guide/cgroup-v2.rst`` (delegation, no internal
processes, cgroup.kill since 5.14).
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from harness.sandbox.limits import Limits

OWN = "watchfloor"
NEEDED = ("memory", "pids")
WANTED = ("cpu",)
_PERIOD_US = 100_000
_REMOVE_TRIES = 50


class NotDelegated(Exception):
    """No cgroup v2 subtree is ours to use; the message says why and how to get one."""


_HOW = (
    "start the supervisor with `systemd-run --user --scope -p Delegate=yes watchfloor supervisor start` to have cgroups"
)


def mount_point(mountinfo: str) -> tuple[str, str] | None:
    """(folder, root inside the hierarchy) of the first cgroup2 mount in the text of ``/proc/self/mountinfo``."""
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split()
        if separator and right.split()[:1] == ["cgroup2"] and len(fields) >= 5:
            return _unescaped(fields[4]), _unescaped(fields[3])
    return None


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)


def own_path(cgroup: str) -> str | None:
    """Our path in the v2 hierarchy, from the text of ``/proc/self/cgroup``."""
    return next((line[3:] for line in cgroup.splitlines() if line.startswith("0::/")), None)


def locate(mountinfo: str, cgroup: str) -> Path:
    """The folder of our own v2 group. Raises NotDelegated."""
    mount = mount_point(mountinfo)
    path = own_path(cgroup)
    if mount is None or path is None:
        raise NotDelegated("this system has no cgroup v2 hierarchy")
    folder, root = mount
    if root != "/" and path != root and not path.startswith(root + "/"):
        raise NotDelegated(f"our cgroup {path} lies outside of what is mounted at {folder}")
    inside = path if root == "/" else path[len(root) :]
    return Path(folder) / inside.strip("/")


def base_of(group: Path, root: Path) -> Path:
    """The group below which ours may be made: our own, or its parent when we live in the leaf that we made.

    Raises NotDelegated.
    """
    base = group.parent if group.name == OWN else group
    if base == root:
        raise NotDelegated(
            f"our processes live in the root of the cgroup hierarchy, which is not ours to divide; {_HOW}"
        )
    missing = [name for name in NEEDED if name not in _words(base / "cgroup.controllers")]
    if missing:
        raise NotDelegated(f"the controllers {', '.join(missing)} are not delegated to {base}; {_HOW}")
    for name in ("", "cgroup.procs", "cgroup.subtree_control"):
        if not os.access(base / name, os.W_OK):
            raise NotDelegated(f"{base / name} is not ours to write; {_HOW}")
    return base


def prepare(base: Path) -> None:
    """Move what lives in the base itself into a leaf, then hand the controllers to the groups below.

    Raises NotDelegated.
    """
    if set(NEEDED) <= set(_words(base / "cgroup.subtree_control")):
        return
    leaf = base / OWN
    try:
        leaf.mkdir(exist_ok=True)
        for _ in range(10):
            pids = _words(base / "cgroup.procs")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    (leaf / "cgroup.procs").write_text(pid)
            if not pids:
                break
        for name in (*NEEDED, *(name for name in WANTED if name in _words(base / "cgroup.controllers"))):
            (base / "cgroup.subtree_control").write_text(f"+{name}")
    except OSError as exc:
        raise NotDelegated(f"the cgroup {base} cannot be divided: {exc.strerror}; {_HOW}") from exc


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def look() -> Path:
    """Our delegated group, as it is; nothing is changed. Raises NotDelegated."""
    try:
        mountinfo = Path("/proc/self/mountinfo").read_text()
        cgroup = Path("/proc/self/cgroup").read_text()
    except OSError as exc:
        raise NotDelegated(f"/proc does not say which cgroup is ours: {exc.strerror}") from exc
    group = locate(mountinfo, cgroup)
    mount = mount_point(mountinfo)
    return base_of(group, Path(mount[0]) if mount is not None else group)


def find() -> Path:
    """Our delegated group, ready to use. Raises NotDelegated."""
    base = look()
    prepare(base)
    return base


def session_settings(limits: Limits) -> dict[str, str]:
    """What is written into the files of a session's group; ``memory.oom.group`` is set on the call's."""
    memory = limits.together()
    settings = {
        "memory.max": "max" if memory is None else str(memory),
        "memory.swap.max": "max" if memory is None else "0",
        "pids.max": str(limits.processes),
        "cpu.weight": str(limits.cpu_weight),
    }
    quota = "max" if limits.cpu_percent is None else str(limits.cpu_percent * _PERIOD_US // 100)
    return {**settings, "cpu.max": f"{quota} {_PERIOD_US}"}


def count(events: str, name: str) -> int:
    """The number behind ``name`` in the text of a ``*.events`` file."""
    return next((int(line.split()[1]) for line in events.splitlines() if line.startswith(f"{name} ")), 0)


@dataclass(frozen=True, slots=True)
class Group:
    """The group of one call. Made by `create`, gone after `remove`."""

    path: Path

    def create(self, limits: Limits) -> int:
        """Make session and call group; returns a descriptor of the call's ``cgroup.procs``. Raises OSError."""
        session = self.path.parent
        session.mkdir(exist_ok=True)
        for name, value in session_settings(limits).items():
            if (session / name).exists():
                (session / name).write_text(value)
        for old in session.iterdir():
            if old.is_dir() and old != self.path:
                # of a call whose keeper died; a process that cannot be killed keeps it
                with contextlib.suppress(OSError):
                    old.rmdir()
        hand_down = [f"+{name}" for name in NEEDED if name in _words(session / "cgroup.controllers")]
        if hand_down:
            (session / "cgroup.subtree_control").write_text(" ".join(hand_down))
        self.path.mkdir(exist_ok=True)
        if (self.path / "memory.oom.group").exists():
            (self.path / "memory.oom.group").write_text("1")
        return os.open(self.path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    def kill(self) -> None:
        """SIGKILL everything in it at once; quiet when the kernel has no such file."""
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    def out_of_memory(self) -> bool:
        """The kernel killed it because it reached the limit of its session."""
        return self._events("memory.events", "oom_kill") > 0

    def out_of_processes(self) -> bool:
        """A fork was refused because the limit was reached."""
        return self._events("pids.events", "max") > 0

    def _events(self, file: str, name: str) -> int:
        try:
            return count((self.path / file).read_text(), name)
        except OSError:
            return 0

    def number(self, file: str) -> int:
        """The single number in one of its files; 0 when there is none."""
        words = _words(self.path / file)
        return int(words[0]) if words and words[0].isdigit() else 0

    def remove(self) -> None:
        """Take it away with the session's group when that holds nothing else; what the kernel still holds is left for
        the next call.
        """
        for _ in range(_REMOVE_TRIES):
            try:
                self.path.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.001)
        with contextlib.suppress(OSError):
            self.path.parent.rmdir()


def of_call(base: Path, sid: str, call: str) -> Group:
    """The group for one call of a session; ids become plain names."""
    clean = [re.sub(r"[^A-Za-z0-9._-]", "_", name)[:64] for name in (sid, call)]
    return Group(base / f"wf-{clean[0]}" / f"call-{clean[1]}")

"""Bombs of memory, processes, disk and processor beside a session that works: each ends with its call, named in the
log, and nobody else notices.

Every bomb is bounded by its own code (at most 2 GiB, 1,100 processes, 1 GiB of files), so that a limit that does not
hold is a failed test and not a dead machine.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.sandbox import bubblewrap
from harness.sandbox.limits import GIB, MIB, Limits
from tests.process.keeperlib import Keepers, Link, action, allowed, keepers, wait_until

pytestmark = pytest.mark.sandbox
BOMBER = "bomber0000"
WORKER = "worker0000"
SMALL = Limits(memory=256 * MIB, processes=64, tmp=GIB, shm=GIB, disk=64 * MIB, disk_files=2000)
FORKS = replace(SMALL, memory=2 * GIB)
"""For bombs of processes: an interpreter that was refused a fork has made 2 to 6 MiB its own, so that sixty of them
come to the memory of SMALL about when they come to its processes.
"""
ENOUGH = 8
"""After so many calls of the working session the file ``enough`` appears in the bomber's worktree."""
HOLD = "import signal\nsignal.pause()\n"


class Floor:
    """Two sessions with keepers of their own: one that is given bombs and one that goes on working."""

    def __init__(self, fleet: Keepers, root: Path) -> None:
        self.fleet = fleet
        self.root = root
        self.links: dict[str, Link] = {}
        self._calls = 0
        for sid in (BOMBER, WORKER):
            self.worktree(sid).mkdir(parents=True)
            fleet.spawn(sid)
            self.links[sid] = fleet.supervisor(sid)

    def worktree(self, sid: str) -> Path:
        return self.root / "trees" / sid

    def start(self, sid: str, argv: list[str], limits: Limits, timeout_s: int = 60) -> str:
        tree = self.worktree(sid)
        call = f"c0.{self._calls}"
        self._calls += 1
        what = action(
            tree, call, argv, sid=sid, access="sandbox", env=bubblewrap.environment(str(tree)), timeout_s=timeout_s
        )
        self.links[sid].append(*allowed(what))
        assert self.links[sid].call("execute", call_id=call, limits=limits.to_wire())["started"] is True
        return call

    def end(self, sid: str, call: str) -> dict[str, Any] | None:
        found = (r["data"] for r in self.fleet.log(sid) if r["type"] == "tool.ended" and r["data"]["call_id"] == call)
        return next(found, None)

    def bomb(self, code: str, limits: Limits = SMALL, timeout_s: int = 60) -> dict[str, Any]:
        """Run Python ``code`` in one session while the other works; the other's calls all succeed.

        Gives the bomb's ``tool.ended``.
        """
        return self.explode([bubblewrap.base_python(), "-c", code], limits, timeout_s)

    def explode(self, argv: list[str], limits: Limits = SMALL, timeout_s: int = 60) -> dict[str, Any]:
        call = self.start(BOMBER, argv, limits, timeout_s)
        worked = 0
        while (end := self.end(BOMBER, call)) is None:
            self.work()
            worked += 1
            if worked == ENOUGH:
                (self.worktree(BOMBER) / "enough").touch()
        self.work()  # and it goes on afterwards
        return end

    def work(self) -> None:
        """One call of the working session; it must succeed."""
        call = self.start(WORKER, ["sh", "-c", "echo done >> work && cat work > copy"], Limits())
        end = wait_until("the working session's call has ended", lambda: self.end(WORKER, call))
        assert end["status"] == "ok", end


@pytest.fixture
def floor(tmp_path: Path) -> Iterator[Floor]:
    try:
        bubblewrap.find()
    except bubblewrap.SandboxUnavailable as exc:
        pytest.skip(str(exc))
    with keepers(tmp_path) as fleet:
        yield Floor(fleet, tmp_path)


def ended_by(end: dict[str, Any], *limits: str) -> None:
    assert end["status"] == "error", end
    assert end.get("limit") in limits, end
    assert f"{end['limit']} under [limits] in config.toml" in end["preview"], end
    assert "SURVIVED" not in end["preview"], end


# -- memory ----------------------------------------------------------------------------------------


def test_a_process_that_takes_all_memory(floor: Floor) -> None:
    end = floor.bomb("kept = []\nfor _ in range(2048):\n    kept.append(b'x' * (1 << 20))\nprint('SURVIVED')")
    ended_by(end, "memory", "process_memory")


def test_processes_that_take_all_memory_together(floor: Floor) -> None:
    each = "kept = b'x' * (64 << 20)\n" + HOLD
    ended_by(
        floor.bomb(f"import os\nfor _ in range(16):\n    if os.fork() == 0:\n        exec({each!r})\n{HOLD}"), "memory"
    )


@pytest.mark.parametrize(
    "where",
    [
        "open('/tmp/big', 'wb', buffering=0)",
        "open('/dev/shm/big', 'wb', buffering=0)",
        "open(__import__('os').memfd_create('big'), 'wb', buffering=0)",
    ],
    ids=["tmp", "shm", "memfd"],
)
def test_memory_taken_as_files(floor: Floor, where: str) -> None:
    ended_by(
        floor.bomb(
            f"with {where} as file:\n    for _ in range(900):\n        file.write(b'x' * (1 << 20))\n   "
            f" {HOLD.replace(chr(10), '; ')}"
        ),
        "memory",
    )


HIDDEN = replace(SMALL, memory=64 * MIB)
PIECES = """
kept = []
a, b = socket.socketpair()
for _ in range(10):
    fd = {made}
    for _ in range(16):
        os.write(fd, bytes(1 << 20))
    {hide}
    os.close(fd)
"""
"""Each below the limit while its descriptor is there, ten of them far above it."""


@pytest.mark.parametrize(
    "code",
    [
        PIECES.format(made="os.memfd_create('x')", hide="kept.append(mmap.mmap(fd, 16 << 20))"),
        PIECES.format(made="os.memfd_create('x')", hide="kept.append(mmap.mmap(fd, 4096))"),
        PIECES.format(made="os.memfd_create('x')", hide="socket.send_fds(a, [b'x'], [fd])"),
        PIECES.format(made="os.open('/dev/shm', os.O_TMPFILE | os.O_RDWR)", hide="kept.append(mmap.mmap(fd, 4096))"),
        "m = mmap.mmap(-1, 80 << 30, mmap.MAP_PRIVATE | 0x4000, mmap.PROT_READ)\n"
        "for at in range(0, 80 << 30, 2 << 20):\n    m[at]\n",
    ],
    ids=["mapped", "a page of it mapped", "on its way", "nameless in shm", "page tables"],
)
def test_memory_behind_no_descriptor(floor: Floor, code: str) -> None:
    ended_by(floor.bomb(f"import mmap, os, socket\n{code}{HOLD}", HIDDEN, 20), "memory")


def test_memory_taken_as_shared_pages(floor: Floor) -> None:
    ended_by(
        floor.bomb(
            f"import mmap\nm = mmap.mmap(-1, 900 << 20)\nfor i in range(0, 900 << 20, 4096):\n    m[i] = 1\n{HOLD}"
        ),
        "memory",
    )


def test_pages_that_many_processes_share_count_once(floor: Floor) -> None:
    """48 MiB seen by 20 children are 48 MiB, not 1 GiB."""
    code = """
import os, time
kept = b"x" * (48 << 20)
go_r, go_w = os.pipe()
kids = []
for _ in range(20):
    if (pid := os.fork()) == 0:
        os.read(go_r, 1)
        os._exit(0)
    kids.append(pid)
while not os.path.exists("enough"):
    time.sleep(0.01)
os.write(go_w, b"x" * 20)
for pid in kids:
    os.waitpid(pid, 0)
print("all shared")
"""
    end = floor.bomb(code)
    assert (end["status"], end["preview"]) == ("ok", "all shared\n")


@pytest.mark.parametrize(("where", "limits"), [("/tmp", Limits(tmp=16 * MIB)), ("/dev/shm", Limits(shm=16 * MIB))])
def test_temporary_folders_have_a_size(floor: Floor, where: str, limits: Limits) -> None:
    end = floor.explode(["dd", "if=/dev/zero", f"of={where}/big", "bs=1M", "count=256", "status=none"], limits)
    assert (end["status"], end["exit_code"]) == ("error", 1)
    assert "No space left on device" in end["preview"]


def test_system_v_shared_memory_has_a_size(floor: Floor) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
got = 0
for _ in range(256):
    if libc.shmget(0, ctypes.c_size_t(4 << 20), 0o1600) < 0:
        break
    got += 4
print(got, "MiB")
"""
    end = floor.bomb(code, Limits(shm=64 * MIB))
    assert (end["status"], end["preview"]) == ("ok", "64 MiB\n")


# -- processes -------------------------------------------------------------------------------------


def test_a_fork_bomb(floor: Floor) -> None:
    """Each process doubles itself ten times over; those whose fork is refused wait."""
    code = f"import os\ntry:\n    for _ in range(10):\n        os.fork()\nexcept OSError:\n    pass\n{HOLD}"
    ended_by(floor.bomb(code, FORKS), "processes")


def test_a_bomb_of_threads(floor: Floor) -> None:
    code = (
        "import threading\nfor _ in range(1000):\n    threading.Thread(target=threading.Event().wait,"
        f" daemon=True).start()\n{HOLD}"
    )
    end = floor.bomb(code, FORKS)
    assert end["status"] == "error"
    assert end.get("limit") == "processes" or "can't start new thread" in end["preview"]


def test_a_fork_bomb_never_has_many_more_processes_than_allowed(floor: Floor) -> None:
    """What the kernel holds: the bomb counts how far it came, each step in one write that a kill cannot halve."""
    code = """
import os, signal
made = 0
count = os.open("made", os.O_CREAT | os.O_WRONLY)
try:
    while made < 1100:
        os.pwrite(count, b"%04d" % made, 0)
        if os.fork() == 0:
            signal.pause()
        made += 1
except OSError:
    pass
signal.pause()
"""
    ended_by(floor.bomb(code, FORKS), "processes")
    made = int((floor.worktree(BOMBER) / "made").read_text())
    assert FORKS.processes - 100 <= made <= SMALL.processes + 300


# -- disk ------------------------------------------------------------------------------------------


def test_one_huge_file(floor: Floor) -> None:
    quiet = floor.explode(["true"])
    assert quiet["status"] == "ok"
    end = floor.bomb(
        "with open('big', 'wb', buffering=0) as f:\n    for _ in range(1024):\n        f.write(b'x' * (1 <<"
        f" 20))\n{HOLD}"
    )
    ended_by(end, "disk")
    size = (floor.worktree(BOMBER) / "big").stat().st_size
    assert size >= SMALL.disk
    again = floor.bomb("import os\nos.unlink('big')\nprint('removed')")
    assert (again["status"], again["preview"]) == ("ok", "removed\n"), "a session over its limit can clean up"


def test_a_file_that_was_deleted_while_open(floor: Floor) -> None:
    code = (
        "import os\nf = open('big', 'wb', buffering=0)\nos.unlink('big')\nfor _ in range(512):\n    f.write(b'x' * (1"
        f" << 20))\n{HOLD}"
    )
    ended_by(floor.bomb(code), "disk")


def test_very_many_small_files(floor: Floor) -> None:
    code = (
        "import os\nfor i in range(300):\n    os.mkdir(f'd{i}')\n    for j in range(200):\n       "
        f" open(f'd{{i}}/f{{j}}', 'w').close()\n{HOLD}"
    )
    ended_by(floor.bomb(code), "disk_files")


def test_files_below_folders_too_deep_to_count(floor: Floor) -> None:
    code = f"""
import os
for _ in range(400):
    os.mkdir("d")
    os.chdir("d")
with open("big", "wb", buffering=0) as f:
    for _ in range(512):
        f.write(b"x" * (1 << 20))
{HOLD}"""
    ended_by(floor.bomb(code), "disk")


def test_a_file_beyond_the_limit_of_one_file(floor: Floor) -> None:
    end = floor.explode(["dd", "if=/dev/zero", "of=big", "bs=1M", "count=64", "status=none"], Limits(file=8 * MIB))
    ended_by(end, "file")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small file system")
def test_a_disk_keeps_some_room(floor: Floor) -> None:
    tree = floor.worktree(BOMBER)
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(tree)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine lets nobody mount")
    try:
        size = 384  # of 400 MiB: below the 5 % that must stay free, and not yet full
        end = floor.bomb(
            f"with open('big', 'wb', buffering=0) as f:\n    for _ in range({size}):\n        f.write(b'x' * (1 <<"
            f" 20))\n{HOLD}",
            Limits(),
        )
        ended_by(end, "disk_free")
        assert str(tree) in end["preview"]
    finally:
        floor.links[BOMBER].call("shutdown", kill=True)  # its vault holds the folder open
        wait_until(
            "the small disk is free again",
            lambda: subprocess.run(["umount", str(tree)], check=False, capture_output=True).returncode == 0,
        )


# -- processor -------------------------------------------------------------------------------------


def test_a_hog_of_all_processors_ends_with_its_time(floor: Floor) -> None:
    code = "import os\nfor _ in range(15):\n    if os.fork() == 0:\n        break\nwhile True:\n    pass"
    end = floor.bomb(code, timeout_s=3)
    assert end["status"] == "timeout"
    assert "time limit of 3 s" in end["preview"]

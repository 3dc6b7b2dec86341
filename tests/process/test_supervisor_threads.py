"""Blocking work in real threads on real pipes: what stands still is counted and named, and keeps nobody else from
working or leaving.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.protocol.paths import Folders
from harness.supervisor.base.threads import StandsStill, Threads, at_home
from harness.supervisor.fleet.session import Session
from harness.workspace.git import processes
from harness.workspace.git.errors import Unexamined
from tests.fleetlib import wait_for


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    yield path
    with_reader = os.open(path, os.O_RDWR | os.O_NONBLOCK)  # lets go of whoever still waits at either end
    os.close(with_reader)


def session(root: Path, sid: str = "aaaaaaaaaa") -> Session:
    return Session(sid, Folders(root / "state", root / "run", root / "config"), lambda _: None)


async def test_what_stands_still_is_named_and_keeps_only_its_own_pool(pipe: Path) -> None:
    one = Threads("session one", 1)
    other = Threads("session two", 1)
    with pytest.raises(StandsStill, match="session one: reading it did not end within"):
        await one.run("reading it", 0.1, lambda: pipe.read_bytes())
    assert one.still() == ["reading it"]
    with pytest.raises(StandsStill, match="again cannot begin while this stands still: reading it"):
        await one.run("again", 60.0, lambda: 1)
    assert await other.run("its own", 60.0, lambda: 2) == 2
    assert await at_home(lambda: 3) == 3
    with pipe.open("wb"):
        pass
    await asyncio.to_thread(wait_for, "the thread to come back", lambda: not one.still(), 20)
    assert await one.run("again", 60.0, lambda: 4) == 4


async def test_waiting_for_a_thread_has_an_end_too(pipe: Path) -> None:
    pool = Threads("session one", 1)
    first = asyncio.ensure_future(pool.run("the long one", 60.0, lambda: pipe.read_bytes()))
    await asyncio.sleep(0)
    with pytest.raises(StandsStill, match="the next one did not begin within 0 s; at work: the long one"):
        await pool.run("the next one", 0.2, lambda: 1)
    with pipe.open("wb"):
        pass
    assert await first == b""


async def test_a_session_whose_worker_stands_still_is_held_with_that_trouble(pipe: Path, tmp_path: Path) -> None:
    held = session(tmp_path)
    well = session(tmp_path, "bbbbbbbbbb")
    with pytest.raises(StandsStill):
        await held.do("examining call c1.0", 0.1, lambda: pipe.read_bytes())
    assert held.held
    assert "session aaaaaaaaaa: examining call c1.0 did not end" in held.trouble.cause
    assert "1 of its workers stands still" in held.trouble.cause
    assert (
        await held.look("its diff", 60.0, lambda: "looking has a thread of its own")
        == "looking has a thread of its own"
    )
    assert await well.do("anything", 60.0, lambda: 1) == 1
    assert not well.held


async def test_what_the_system_refuses_names_the_session_and_quotes_nothing(tmp_path: Path) -> None:
    made = session(tmp_path)
    (tmp_path / "text").write_bytes(b"\xffsecret")
    with pytest.raises(Unexamined, match=r"session aaaaaaaaaa: reading: .*No such file"):
        await made.do("reading", 60.0, lambda: (tmp_path / "none").read_bytes())
    with pytest.raises(Unexamined, match=r"cannot be understood \(UnicodeDecodeError\)") as met:
        await made.do("reading", 60.0, lambda: (tmp_path / "text").read_text("utf-8"))
    assert "0xff" not in str(met.value)


async def test_more_work_than_threads_is_done_one_after_the_other_and_the_threads_leave() -> None:
    pool = Threads("session one", 2)
    at_once = [0]
    most = [0]
    lock = threading.Lock()

    def work(number: int) -> int:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        with lock:
            at_once[0] -= 1
        return number

    done = await asyncio.gather(*(pool.run(f"{n}", 60.0, lambda n=n: work(n)) for n in range(200)))
    assert done == list(range(200))
    assert most[0] <= 2


def test_a_process_leaves_though_a_thread_of_it_stands_still(pipe: Path) -> None:
    code = (
        "import asyncio, sys\nfrom harness.supervisor.base.threads import StandsStill, Threads\n"
        "async def main():\n    try:\n        await Threads('s', 1).run('w', 0.1, lambda: open(sys.argv[1]).read())\n"
        "    except StandsStill:\n        print('stands still')\nasyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(pipe)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "stands still\n"), done.stderr


async def test_children_end_with_the_time_of_their_work(pipe: Path) -> None:
    pool = Threads("session one", 1)
    with pytest.raises(processes.Overdue):
        await pool.run("cat", 0.3, lambda: processes.run(["cat", str(pipe)], os.environ, pipe.parent, b"", 60.0))
    assert pool.still() == [], "the thread came back when its child was killed"


async def test_an_interrupt_ends_the_children_but_those_of_lasting_work(pipe: Path, tmp_path: Path) -> None:
    def work(name: str) -> processes.Done:
        return processes.run(
            ["sh", "-c", f'echo $$ > {name}.new; mv {name}.new {name}; read x < "$0"; echo read', str(pipe)],
            os.environ,
            tmp_path,
            b"",
            60.0,
        )

    short = Threads("short", 1)
    lasting = Threads("lasting", 1)
    running = asyncio.ensure_future(short.run("reading", 60.0, lambda: work("short")))
    going_on = asyncio.ensure_future(lasting.run("making", 60.0, lambda: work("lasting"), lasting=True))
    await asyncio.to_thread(
        wait_for, "both children", lambda: (tmp_path / "short").exists() and (tmp_path / "lasting").exists(), 20
    )
    short.interrupt()
    lasting.interrupt()
    (ended,) = await asyncio.gather(running, return_exceptions=True)
    # interrupted between the child's first words and its entry among those to kill
    if isinstance(ended, BaseException):
        assert isinstance(ended, processes.Overdue)
        assert "time for this work is over" in str(ended), "at once, not at its own limit"
    else:
        assert ended.status == -9
    with pipe.open("wb") as file:
        file.write(b"\n")
    assert (await going_on).out == b"read\n"


def test_output_is_cut_at_its_limit_and_input_is_fed(tmp_path: Path) -> None:
    done = processes.run(["cat"], os.environ, tmp_path, b"x" * 3_000_000, 60.0)
    assert (len(done.out), done.status, done.cut) == (3_000_000, 0, False)
    done = processes.run(["yes"], os.environ, tmp_path, b"", 60.0, limit=1000)
    assert (len(done.out), done.cut) == (1000, True)
    done = processes.run(["true"], os.environ, tmp_path, b"x" * 3_000_000, 60.0)
    assert done.status == 0, "a child that does not read what it is given is no error"

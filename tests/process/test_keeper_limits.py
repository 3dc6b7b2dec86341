"""The keeper's part of limits: they come with the order to execute, the watcher leaves no trace, and what a session
holds is remembered.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.keeper.calls.watch import KnownDisk
from harness.linux import proc
from harness.sandbox import bubblewrap, resource_usage
from harness.sandbox.limits import MIB, Limits
from tests.process.keeperlib import (
    SID,
    Keepers,
    Link,
    Refused,
    action,
    allowed,
    keepers,
    wait_gone,
    wait_until,
    watchers,
)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    (tmp_path / "work").mkdir()
    try:
        bubblewrap.find()
    except bubblewrap.SandboxUnavailable as exc:
        pytest.skip(str(exc))
    with keepers(tmp_path) as fleet:
        yield fleet


def start(fleet: Keepers, link: Link, work: Path, call: str, script: str, limits: dict[str, Any] | None) -> None:
    env = bubblewrap.environment(str(work))
    link.append(*allowed(action(work, call, ["sh", "-c", script], access="sandbox", env=env)))
    link.call("execute", call_id=call, limits=limits)


def ended(fleet: Keepers, call: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        return next(
            (r["data"] for r in fleet.log() if r["type"] == "tool.ended" and r["data"]["call_id"] == call), None
        )

    found: dict[str, Any] = wait_until(f"call {call} has ended", look)
    return found


@pytest.mark.parametrize("limits", [[], {"memory": "much"}, {"memori": 5}, {"processes": -1}])
def test_an_order_with_wrong_limits_is_refused_and_nothing_runs(fleet: Keepers, tmp_path: Path, limits: Any) -> None:
    fleet.spawn()
    with pytest.raises(Refused, check=lambda exc: exc.code == "bad_request" and "limits" in exc.error["message"]):
        start(fleet, fleet.supervisor(), tmp_path / "work", "c0.0", "touch ran", limits)
    assert "tool.started" not in fleet.types()


@pytest.mark.sandbox
def test_limits_hold_for_the_call_they_came_with(fleet: Keepers, tmp_path: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    show = "ulimit -f; ulimit -d; cat /proc/self/oom_score_adj; nice; df -B1 --output=size /tmp /dev/shm | tail -2"
    ours = os.nice(0)
    small = Limits(memory=256 * MIB, file=8 * MIB, tmp=16 * MIB, shm=4 * MIB, nice=7).to_wire()
    start(fleet, link, tmp_path / "work", "c0.0", show, small)
    assert ended(fleet, "c0.0")["preview"].split() == [
        "16384",
        "262144",
        "900",
        str(ours + 7),
        str(16 * MIB),
        str(4 * MIB),
    ]
    start(fleet, link, tmp_path / "work", "c0.1", show, None)
    text = ended(fleet, "c0.1")["preview"].split()
    assert (text[0], text[3], text[4]) == (str(4 << 21), str(ours + 5), str(2 << 30))


UNTIL_GO = "until test -e go; do sleep 0.05; done"


def watch(fleet: Keepers, link: Link, work: Path, call: str, limits: dict[str, Any] | None = None) -> int:
    """Start a call that ends by `go`; the one process that watches it, once it holds the call's own /proc open."""
    start(fleet, link, work, call, UNTIL_GO, limits)
    (pid,) = wait_until("a watcher has entered the call", lambda: [p for p in watchers(fleet.pids[-1]) if held_by(p)])
    return int(pid)


def held_by(pid: int) -> list[str]:
    """What a process holds open beyond its standard descriptors and its line to the keeper."""
    names = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # it has just been closed
            names += [os.readlink(f"/proc/{pid}/fd/{fd}")] if int(fd) > 2 else []
    return [name for name in names if not name.startswith("socket:")]


def go(fleet: Keepers, work: Path, call: str) -> None:
    """Let the call end, and see that it did well."""
    (work / "go").touch()
    assert ended(fleet, call)["status"] == "ok"
    (work / "go").unlink()


@pytest.mark.sandbox
def test_a_watcher_lets_go_of_its_call_stays_for_the_next_and_ends_with_its_keeper(
    fleet: Keepers, tmp_path: Path
) -> None:
    keeper = fleet.spawn()["pid"]
    link = fleet.supervisor()
    work = tmp_path / "work"
    watcher = watch(fleet, link, work, "c0.0")
    go(fleet, work, "c0.0")
    assert held_by(watcher) == [], "nothing of a call is held once its end is on record"
    assert watch(fleet, link, work, "c0.1") == watcher
    go(fleet, work, "c0.1")
    assert watchers(keeper) == [watcher]
    start(fleet, link, work, "c0.2", UNTIL_GO, None)
    wait_until("the call runs", lambda: len(proc.descendants(keeper)) >= 5)
    below = proc.descendants(keeper)
    fleet.kill(keeper)
    for pid in below:
        wait_gone(pid)


@pytest.mark.sandbox
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_watcher_that_stands_still_or_dies_holds_no_call_up_and_another_one_takes_its_place(
    fleet: Keepers, tmp_path: Path, how: int
) -> None:
    keeper = fleet.spawn()["pid"]
    link = fleet.supervisor()
    work = tmp_path / "work"
    first = watch(fleet, link, work, "c0.0")
    os.kill(first, how)
    go(fleet, work, "c0.0")
    wait_gone(first)
    second = watch(fleet, link, work, "c0.1")
    go(fleet, work, "c0.1")
    assert watchers(keeper) == [second]


@pytest.mark.sandbox
def test_each_call_is_held_to_its_own_limits_by_the_watcher_that_stayed(fleet: Keepers, tmp_path: Path) -> None:
    keeper = fleet.spawn()["pid"]
    link = fleet.supervisor()
    work = tmp_path / "work"
    watcher = watch(fleet, link, work, "c0.0")
    go(fleet, work, "c0.0")
    many = "for n in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait"
    start(fleet, link, work, "c0.1", many, Limits(processes=4).to_wire())
    end = ended(fleet, "c0.1")
    assert (end["status"], end["limit"]) == ("error", "processes")
    start(fleet, link, work, "c0.2", f"for n in 1 2 3 4 5 6 7 8; do sleep 1000 & done; {UNTIL_GO}", None)
    go(fleet, work, "c0.2")
    assert watchers(keeper) == [watcher]


def sleeper(leader: int) -> int | None:
    """The process below this one that lasts: what waits for `go` starts a new one all the time."""
    for pid in proc.descendants(leader):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\0001000\0":
                return pid
    return None


@pytest.mark.sandbox
def test_a_look_at_a_sandboxed_call_is_one_at_its_own_processes(
    fleet: Keepers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at every process of the machine costs the more, the more sessions are at work."""
    keeper = fleet.spawn()["pid"]
    work = tmp_path / "work"
    start(fleet, fleet.supervisor(), work, "c0.0", f"touch began; sleep 1000 & {UNTIL_GO}; kill $!", None)
    wait_until("the call runs", (work / "began").exists)
    (leader,) = [pid for pid in proc.children(keeper) if proc.children(pid) and pid not in watchers(keeper)]
    lasting = wait_until("what it started runs", lambda: sleeper(leader))

    def look_at_all(root: int) -> list[int]:
        raise AssertionError(f"every process of the machine was looked at for those below {root}")

    monkeypatch.setattr(resource_usage, "descendants", look_at_all)
    tree = resource_usage.Tree(leader, sandboxed=True)
    assert tree.look(2).tasks >= 2, "the shell and what it started"
    tree.close()
    assert resource_usage.Tree(lasting, sandboxed=True).look() == resource_usage.Usage(0, 0, 0, 0), (
        "nothing is below this one"
    )
    monkeypatch.undo()
    go(fleet, work, "c0.0")


@pytest.mark.sandbox
def test_what_a_session_held_at_first_outlives_its_keeper(fleet: Keepers, tmp_path: Path) -> None:
    first = fleet.spawn()["pid"]
    (tmp_path / "work" / "checkout").write_bytes(b"x" * 3 * MIB)
    wait = "until test -e go; do sleep 0.05; done"
    start(fleet, fleet.supervisor(), tmp_path / "work", "c0.0", wait, None)
    kept = fleet.folder().root / "disk.json"
    wait_until("the session's files were counted", kept.exists)
    fleet.kill(first)
    fleet.spawn(SID)
    assert json.loads(kept.read_text())["first_bytes"] >= 3 * MIB
    memory = KnownDisk(fleet.folder())
    assert memory.known is not None
    assert memory.known.first_files == 1
    kept.write_text('{"first_bytes": "many"}')
    assert KnownDisk(fleet.folder()).known is None, "a damaged one is counted anew"


def test_a_call_that_finds_no_place_says_so_and_begins_when_there_is_one(fleet: Keepers, tmp_path: Path) -> None:
    """It is on record as started: whoever looks would take it for one that runs."""
    keeper = fleet.spawn()["pid"]
    link = fleet.supervisor()
    at_rest = max(int(fd) for fd in os.listdir(f"/proc/{keeper}/fd")) + 1
    _, hard = resource.prlimit(keeper, resource.RLIMIT_NOFILE)
    waiting = ""
    for more in range(16):
        resource.prlimit(keeper, resource.RLIMIT_NOFILE, (at_rest + more, hard))
        call = f"c0.{more}"
        with contextlib.suppress(Refused):
            start(fleet, link, tmp_path / "work", call, "echo went", None)
            waiting = str(link.call("ping").get("lacks", ""))
        if waiting:
            break
    assert call in waiting
    assert "Too many open files" in waiting
    assert not [r for r in fleet.log() if r["type"] == "tool.ended" and r["data"]["call_id"] == call]
    resource.prlimit(keeper, resource.RLIMIT_NOFILE, (hard, hard))
    assert ended(fleet, call)["preview"] == "went\n"
    assert "lacks" not in link.call("ping")

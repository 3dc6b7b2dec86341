"""Calls that only read run side by side; what may change files runs alone, and each of them ends as it should."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.keeperlib import Keepers, Link, action, allowed, keepers, wait_until

pytestmark = pytest.mark.sandbox
READ_AT_ONCE = 4


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    with keepers(tmp_path) as fleet:
        yield fleet


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A worktree in which a search lasts until there is a file ``go``."""
    program = tmp_path / "work" / "bin" / "rg"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.01; done\necho found\n")
    program.chmod(0o755)
    return tmp_path / "work"


def search(work: Path, call_id: str) -> dict[str, Any]:
    env = {"PATH": f"{work}/bin:/usr/bin:/bin", "HOME": "/tmp"}
    made = action(work, call_id, ["true"], access="sandbox", tool="search", kind="file", path=".", env=env)
    del made["argv"]
    return made | {"input": {"pattern": "x"}}


def searches(work: Path) -> int:
    """How many are at work in this worktree; a child that is about to become a `sleep` is none."""
    found: dict[int, int] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if f"{work}/bin/rg\0".encode() in (process / "cmdline").read_bytes():
                    found[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    return sum(parent not in found for parent in found.values())


def begun(fleet: Keepers, link: Link, *actions: dict[str, Any]) -> list[int]:
    """Ask for all of them at once; the numbers of the requests."""
    for what in actions:
        link.append(*allowed(what))
    return [link.send("execute", call_id=what["call"]) for what in actions]


def order(fleet: Keepers) -> list[str]:
    """``started c0.0`` and so on, as the log has it."""
    return [
        f"{r['type'][5:]} {r['data']['call_id']}" for r in fleet.log() if r["type"][:9] in ("tool.star", "tool.ende")
    ]


def ends(fleet: Keepers) -> dict[str, str]:
    return {r["data"]["call_id"]: r["data"]["status"] for r in fleet.log() if r["type"] == "tool.ended"}


def test_readers_run_side_by_side_and_whatever_writes_runs_alone(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    writer = action(work, "c0.2", ["touch", "made"], access="sandbox")
    begun(fleet, link, search(work, "c0.0"), search(work, "c0.1"), writer, search(work, "c0.3"))
    wait_until("both to be at work", lambda: searches(work) == 2)
    assert order(fleet) == ["started c0.0", "started c0.1"]
    (work / "go").touch()
    wait_until("all to have ended", lambda: len(ends(fleet)) == 4)
    assert set(ends(fleet).values()) == {"ok"}
    seen = order(fleet)
    assert max(map(seen.index, ("ended c0.0", "ended c0.1"))) < seen.index("started c0.2")
    assert seen.index("ended c0.2") < seen.index("started c0.3"), "nobody overtakes what waits"


def test_no_more_readers_than_a_small_machine_can_serve(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    begun(fleet, link, *(search(work, f"c0.{number}") for number in range(READ_AT_ONCE + 1)))
    wait_until("as many as may to be at work", lambda: searches(work) == READ_AT_ONCE)
    assert len(order(fleet)) == READ_AT_ONCE
    (work / "go").touch()
    wait_until("all to have ended", lambda: len(ends(fleet)) == READ_AT_ONCE + 1)
    assert set(ends(fleet).values()) == {"ok"}


def test_a_reader_that_is_stopped_takes_nobody_with_it(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    begun(fleet, link, search(work, "c0.0"), search(work, "c0.1"))
    wait_until("both to be at work", lambda: searches(work) == 2)
    link.call("cancel", call_id="c0.0")
    wait_until("it to have ended", lambda: "c0.0" in ends(fleet))
    wait_until("nothing of it to be left", lambda: searches(work) == 1)  # the other may be about to start a sleep
    (work / "go").touch()
    wait_until("the other to have ended", lambda: "c0.1" in ends(fleet))
    assert ends(fleet) == {"c0.0": "cancelled", "c0.1": "ok"}


def test_readers_whose_keeper_dies_are_in_doubt_and_gone(fleet: Keepers, work: Path) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    begun(fleet, link, search(work, "c0.0"), search(work, "c0.1"))
    wait_until("both to be at work", lambda: searches(work) == 2)
    fleet.kill(pid)
    wait_until("nothing of them to be left", lambda: searches(work) == 0)
    fleet.spawn()
    assert [r["data"]["call_id"] for r in fleet.log() if r["type"] == "tool.in_doubt"] == ["c0.0", "c0.1"]
    again = fleet.supervisor(epoch=2)
    (work / "go").touch()
    begun(fleet, again, search(work, "c1.0"))
    wait_until("the next one to have ended", lambda: ends(fleet) == {"c1.0": "ok"})


def test_a_keeper_that_is_asked_to_leave_ends_all_its_readers(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    begun(fleet, link, search(work, "c0.0"), search(work, "c0.1"))
    wait_until("both to be at work", lambda: searches(work) == 2)
    link.call("shutdown", kill=True)
    assert ends(fleet) == {"c0.0": "cancelled", "c0.1": "cancelled"}
    assert searches(work) == 0

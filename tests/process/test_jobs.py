"""Jobs under a real keeper: they outlive their call, end in every way there is, and leave nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.linux import proc
from harness.sandbox import limits
from tests.process.keeperlib import Keepers, Link, Refused, action, allowed, judged, keepers, wait_gone, wait_until


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    (tmp_path / "work").mkdir()
    with keepers(tmp_path) as fleet:
        yield fleet


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def found(fleet: Keepers, kind: str, **fields: Any) -> dict[str, Any] | None:
    for record in fleet.log():
        if record["type"] == kind and all(record["data"].get(name) == value for name, value in fields.items()):
            data: dict[str, Any] = record["data"]
            return data
    return None


def recorded(fleet: Keepers, kind: str, **fields: Any) -> dict[str, Any]:
    """Data of the first record of that kind with these fields, waited for."""
    data: dict[str, Any] = wait_until(f"{kind} {fields} is on record", lambda: found(fleet, kind, **fields))
    return data


def job(work: Path, call_id: str, script: str, *, access: str = "sandbox", **more: Any) -> dict[str, Any]:
    return action(work, call_id, ["sh", "-c", script], access=access, job=True, timeout_s=3600, **more)


def tool(work: Path, call_id: str, **asked: Any) -> dict[str, Any]:
    return action(work, call_id, ["true"], access="sandbox", tool="job", kind="file", path=".", input=asked)


def execute(link: Link, what: dict[str, Any], **more: Any) -> None:
    kind, data = allowed(what)[0]
    link.append((kind, {**data, "tool": what["tool"]}), judged(what))
    assert link.call("execute", call_id=what["call"], **more)["started"] is True


def text_of(fleet: Keepers, call_id: str) -> str:
    return str(recorded(fleet, "tool.ended", call_id=call_id)["preview"])


def nap(seconds: int) -> str:
    """A length of sleep by which the processes of this run are told from those of any other."""
    return f"{seconds}.{os.getpid()}"


def inside(seconds: int) -> list[int]:
    """Processes whose command line holds this nap."""
    marker = nap(seconds)
    pids = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                pids.append(int(name))
    return pids


def test_a_job_outlives_its_call_other_calls_run_beside_it_and_a_wait_ends_with_a_line_or_with_the_job(
    fleet: Keepers, work: Path
) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    until = "while [ ! -e {} ]; do sleep 0.02; done"
    script = f"echo begun; {until.format('go')}; echo epoch 1; {until.format('end')}; echo all of it; exit 3"
    execute(link, job(work, "c0.0", script))
    assert "job j1 runs" in text_of(fleet, "c0.0")
    started = recorded(fleet, "job.started", job="j1")
    assert (started["call_id"], started["limit_s"]) == ("c0.0", 3600)

    execute(link, tool(work, "c0.1", action="wait", until="epoch *"))
    assert "until it prints" in recorded(fleet, "job.waiting", call_id="c0.1")["words"]
    execute(link, action(work, "c0.2", ["touch", "go"], access="sandbox"))
    assert recorded(fleet, "tool.ended", call_id="c0.2")["status"] == "ok"
    assert "printed the line that you wait for:\nepoch 1" in text_of(fleet, "c0.1")

    with pytest.raises(Refused, check=lambda exc: exc.code == "busy"):
        link.call("undo", undo_id="u1", call_id="c0.2", snapshot="s1.x", by={})
    execute(link, tool(work, "c0.3", action="wait", at="2026-01-02T03:04:05Z"))
    assert "the time that you wait for has come" in text_of(fleet, "c0.3"), "it has come long ago"
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    execute(link, tool(work, "c0.4", action="wait", job="j1", at=soon))
    assert f"until {soon} at the latest" in recorded(fleet, "job.waiting", call_id="c0.4")["words"]
    assert "has come\n\njob j1 runs since" in text_of(fleet, "c0.4")
    assert datetime.now(UTC) >= datetime.fromisoformat(soon)
    execute(link, tool(work, "c0.5", action="wait"))
    recorded(fleet, "job.waiting", call_id="c0.5")
    (work / "end").touch()
    end = recorded(fleet, "job.ended", job="j1")
    assert (end["status"], end["exit_code"], end["told"]) == ("error", 3, "c0.5")
    assert end["last"] == "begun\nepoch 1\nall of it"
    assert "job j1 failed, exit code 3" in text_of(fleet, "c0.5")
    assert not os.listdir(fleet.folder().jobs)
    read = {"tool": "read_output", "kind": "file", "path": ".", "input": {"call": "j1"}}
    execute(link, action(work, "c0.6", ["x"], access="sandbox", **read))
    assert "all of it" in text_of(fleet, "c0.6")
    execute(link, tool(work, "c0.7", action="wait", at="9999-12-31T23:59:59Z"))
    assert "more than 365d away" in text_of(fleet, "c0.7")
    assert recorded(fleet, "tool.ended", call_id="c0.7")["status"] == "error"


def test_a_job_that_leaves_processes_and_ignores_the_signal_is_gone_when_it_was_cancelled(
    fleet: Keepers, work: Path
) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    sleep = f"sleep {nap(7777)}"
    script = f"trap '' TERM; (setsid sh -c 'trap \"\" TERM; {sleep}' &) ; echo up; while :; do {sleep}; done"
    execute(link, job(work, "c0.0", script), jobs={"at_once": 1, "grace_s": 0})
    text_of(fleet, "c0.0")
    execute(link, tool(work, "c0.1", action="wait", until="up"))
    text_of(fleet, "c0.1")
    link.append(*allowed(job(work, "c0.2", "true")))
    with pytest.raises(Refused, check=lambda exc: exc.code == "cannot_start"):
        link.call("execute", call_id="c0.2")
    assert "at most 1 at a time" in text_of(fleet, "c0.2")
    assert inside(7777)
    execute(link, tool(work, "c0.3", action="cancel", job="j1"))
    end = recorded(fleet, "job.ended", job="j1")
    assert (end["status"], end["told"]) == ("cancelled", "c0.3")
    wait_until("nothing of it is left", lambda: not inside(7777))


def test_a_job_that_hears_the_signal_ends_in_its_own_way(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    script = "trap 'echo saved > saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    execute(link, job(work, "c0.0", script))
    execute(link, tool(work, "c0.1", action="wait", until="up"))
    text_of(fleet, "c0.1")
    link.call("cancel_job", job="j1")
    end = recorded(fleet, "job.ended", job="j1")
    assert (end["status"], end["exit_code"]) == ("cancelled", 0)
    assert (work / "saved").read_text() == "saved\n"


def test_what_a_job_prints_without_end_is_bounded_on_disk_and_its_time_is_limited(fleet: Keepers, work: Path) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    execute(
        link,
        job(work, "c0.0", "echo first; yes 'a line of many' | head -c 30000000; echo last", output_bytes=3 << 20),
    )
    end = recorded(fleet, "job.ended", job="j1")
    assert end["printed"] == 30_000_000 + len("first\nlast\n")
    assert end["output"]["bytes"] <= (3 << 20) + 100
    assert end["last"].endswith("last")
    execute(link, {**job(work, "c0.1", f"sleep {nap(7776)}"), "timeout_s": 1}, jobs={"at_once": 4, "grace_s": 0})
    assert recorded(fleet, "job.ended", job="j2")["status"] == "timeout"
    assert not inside(7776)


def test_a_killed_keeper_takes_the_job_with_it_and_that_is_told(fleet: Keepers, work: Path) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    execute(link, job(work, "c0.0", f"echo up; sleep {nap(7775)}"))
    execute(link, tool(work, "c0.1", action="wait", until="up"))  # what is still in its pipe dies with the keeper
    text_of(fleet, "c0.1")
    execute(link, tool(work, "c0.2", action="wait", until="nothing"))
    recorded(fleet, "job.waiting", call_id="c0.2")
    wait_until("it sleeps", lambda: inside(7775))
    fleet.kill(pid)
    wait_until("nothing of it is left", lambda: not inside(7775))
    fleet.spawn()
    end = recorded(fleet, "job.ended", job="j1")
    assert (end["status"], end["last"]) == ("lost", "up")
    recorded(fleet, "tool.in_doubt", call_id="c0.2")
    assert fleet.types().count("job.started") == 1


def test_a_killed_process_beside_a_job_loses_only_that_job(fleet: Keepers, work: Path) -> None:
    keeper = fleet.spawn()["pid"]
    link = fleet.supervisor()
    execute(link, job(work, "c0.0", f"sleep {nap(7774)}"))
    text_of(fleet, "c0.0")
    (sleeper,) = wait_until("it sleeps", lambda: inside(7774)[-1:])
    beside = sleeper
    while (parent := int(proc.stat(beside)[1])) != keeper:  # type: ignore[index]
        beside = parent
    os.kill(beside, signal.SIGKILL)
    assert recorded(fleet, "job.ended", job="j1")["status"] == "lost"
    wait_gone(sleeper)
    execute(link, action(work, "c0.1", ["true"], access="sandbox"))
    assert recorded(fleet, "tool.ended", call_id="c0.1")["status"] == "ok"


def test_a_keeper_that_is_told_to_end_ends_its_jobs_in_order_and_puts_that_on_record(
    fleet: Keepers, work: Path
) -> None:
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    script = "trap 'echo saved > saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    execute(link, job(work, "c0.0", script))
    execute(link, tool(work, "c0.1", action="wait", until="up"))
    text_of(fleet, "c0.1")
    os.kill(pid, signal.SIGTERM)
    wait_gone(pid)
    assert (work / "saved").exists()
    end = recorded(fleet, "job.ended", job="j1")
    assert "told to end" in end["note"]


def test_a_job_that_multiplies_or_takes_all_memory_is_ended_at_once_with_the_limit_named(
    fleet: Keepers, work: Path
) -> None:
    fleet.spawn()
    link = fleet.supervisor()
    held = {**limits.DEFAULT.to_wire(), "processes": 64}
    bomb = f"trap '' TERM; bomb() {{ bomb | bomb & }}; bomb; sleep {nap(7773)}"
    what = {**job(work, "c0.0", bomb), "argv": ["bash", "-c", bomb]}
    execute(link, what, limits=held, jobs={"at_once": 4, "grace_s": 600})
    end = recorded(fleet, "job.ended", job="j1")
    assert end["status"] == "error"
    assert "processes" in end.get("note", "") or "unable to fork" in end["last"] or "Resource" in end["last"]
    wait_until("nothing of it is left", lambda: not inside(7773))
    execute(link, action(work, "c0.1", ["true"], access="sandbox"))
    assert recorded(fleet, "tool.ended", call_id="c0.1")["status"] == "ok"

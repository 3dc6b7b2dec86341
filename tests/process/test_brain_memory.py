"""What a brain weighs, that its memory is closed to others, and that it lives on without its fork_server."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

from harness.agents.fork_server import harden
from tests.fleetlib import alive
from tests.process.brainhouse import House, fork_server
from tests.process.brainlib import ModelServer, stream
from tests.process.keeperlib import keepers, wait_until

BRAINS = 32
CALL = {"type": "tool_use", "id": "toolu_1", "name": "exec", "input": {"argv": ["true"]}}


def pss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no Pss of process {pid}")


def test_brains_are_small(tmp_path: Path) -> None:
    """Measured after a request, while a call runs, in a fleet of the size that the figure is given for."""
    with (
        keepers(tmp_path) as fleet,
        fork_server() as forks,
        ModelServer(script=lambda _: stream({"type": "text", "text": "hi " * 300}, CALL)) as server,
    ):
        forks.call("warm?")  # answered (refused) once it is loaded
        houses = [House(fleet, forks, f"memory{i:04d}", server.url) for i in range(BRAINS)]
        pids = [house.wake() for house in houses]
        for house in houses:
            house.wait_for("tool.proposed")
        weights = [pss_mib(pid) for pid in pids]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for house in houses:
            house.close()
    assert max(weights) <= 25, f"PSS in MiB: {weights}"


def test_nobody_of_the_same_user_may_read_a_brain() -> None:
    pid = os.fork()
    if pid == 0:
        harden()
        os._exit(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))  # PR_GET_DUMPABLE
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_the_nursery_ends_with_its_socket_and_its_brains_live_on(tmp_path: Path) -> None:
    with keepers(tmp_path) as fleet, ModelServer(script=lambda _: stream(CALL)) as server:
        with fork_server() as forks:
            house = House(fleet, forks, "orphan0000", server.url)
            pid = house.wake()
            house.wait_for("tool.proposed")
        os.kill(pid, 0)  # still there
        house.link.append(("session.desired", {"state": "stopped"}))
        wait_until("the orphaned brain has left because its session was stopped", lambda: not alive(pid))
        house.close()

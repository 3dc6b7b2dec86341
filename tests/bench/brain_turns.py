"""What a brain costs as its session grows: CPU of a turn and memory, over many turns of a real brain against a real HTTP server.

``python -m tests.bench.brain_turns [TURNS [BYTES]]`` prints one line each 100 turns: turns, CPU a turn in ms, PSS and private memory in MiB.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.process.brainhouse import House, nursery
from tests.process.brainlib import Answer, ModelServer, stream
from tests.process.keeperlib import keepers

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory_mib(pid: int) -> tuple[float, float]:
    """(PSS, private) of a process."""
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]}
    return sizes["Pss"] / 1024, (sizes["Private_Dirty"] + sizes["Private_Clean"]) / 1024


def measure(turns: int, size: int) -> None:
    """One session of so many turns, each with one call whose result has ``size`` bytes; a reply says how large its context was."""
    asked = 0

    def script(body: dict[str, Any]) -> Answer:
        nonlocal asked
        asked += 1
        if asked > turns:
            return stream({"type": "text", "text": "Done."}, stop="end_turn")
        call = {"type": "tool_use", "id": f"toolu_{asked}", "name": "write_file", "input": {"path": f"n{asked}.txt", "content": "x" * 200}}
        tokens = sum(len(str(m["content"])) for m in body["messages"]) // 4
        return stream({"type": "text", "text": f"Turn {asked}."}, call, usage={"input_tokens": tokens, "cache_read_input_tokens": 0})

    done = {"status": "ok", "preview": "y" * size, "exit_code": 0, "files_changed": ["n.txt"]}
    with tempfile.TemporaryDirectory() as folder, keepers(Path(folder)) as fleet, nursery() as fork_server, ModelServer(script=script) as server:
        fork_server.call("warm?")
        house = House(fleet, fork_server, "benchbrain", server.url)
        pid = house.wake()
        house.link.call("subscribe", after=-1)
        print(f"{'turns':>6} {'ms/turn':>8} {'PSS MiB':>8} {'private':>8} {'wall ms':>8}", flush=True)
        last_cpu, last_wall, ended = cpu_s(pid), time.monotonic(), 0
        for record in pushed(house):
            if record["type"] == "tool.proposed":
                house.link.append(("tool.ended", {"call_id": record["data"]["call_id"], **done}))
                ended += 1
                if ended % 100 == 0:
                    now, wall = cpu_s(pid), time.monotonic()
                    pss, private = memory_mib(pid)
                    print(f"{ended:>6} {(now - last_cpu) * 10:>8.1f} {pss:>8.1f} {private:>8.1f} {(wall - last_wall) * 10:>8.1f}", flush=True)
                    last_cpu, last_wall = cpu_s(pid), time.monotonic()
            elif record["type"] in ("session.ended", "session.parked"):
                print(record["data"])
                break
        house.close()


def pushed(house: House) -> Any:
    """Records as the keeper pushes them."""
    while True:
        while house.link.pushes:
            message = house.link.pushes.pop(0)
            for line in message.get("lines", ()):
                yield json.loads(line)
        house.link.read_some()


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 500, int(sys.argv[2]) if len(sys.argv) > 2 else 2000)

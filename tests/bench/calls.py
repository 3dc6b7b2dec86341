"""What one call costs: a fenced command beside the same one without a fence, and a brain from its fork to its lease."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from harness.events.action import from_wire
from harness.hands import fence, selftest, spawn
from harness.protocol.paths import SessionFolder
from tests.bench.table import Figure, bench, ratio
from tests.process.brainhouse import House, nursery
from tests.process.brainlib import ModelServer
from tests.process.keeperlib import keepers

ROUNDS = 15
BRAINS = 8


@bench("call")
def call() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        folder, worktree = Path(root), Path(root) / "wt"
        worktree.mkdir()
        base = {
            "cwd": str(worktree),
            "access": "fence",
            "env": fence.environment(str(worktree)),
            "fence": fence.profile(str(worktree), [], [], []).to_wire(),
        }
        calls = {
            "exec true": {"kind": "exec", "tool": "exec", "argv": ["true"]},
            "write_file": {
                "kind": "file",
                "tool": "write_file",
                "path": "a",
                "input": {"path": "a", "content": "x\n" * 100},
            },
        }
        took: dict[str, list[float]] = {name: [] for name in calls}
        plain: list[float] = []
        for _ in range(ROUNDS):
            for name, fields in calls.items():
                start = time.perf_counter()
                outcome, _, _ = selftest.run(
                    spawn.command(from_wire({**base, **fields}), SessionFolder(folder, folder), folder / "1")
                )
                took[name].append((time.perf_counter() - start) * 1e3)
                if outcome.status != "ok":
                    raise RuntimeError(f"{name}: {outcome}")
            start = time.perf_counter()
            subprocess.run(["true"], check=True)
            plain.append((time.perf_counter() - start) * 1e3)
    return [
        Figure(f"fenced {name}", "ms", v, "–", None, plain, "the command `true` alone", ratio(v, plain))
        for name, v in took.items()
    ]


@bench("brain")
def brain() -> list[Figure]:
    spans = []
    with (
        tempfile.TemporaryDirectory(prefix="wf-bench-") as root,
        keepers(Path(root)) as house,
        nursery() as forks,
        ModelServer() as server,
    ):
        forks.call("warm?")  # answered (refused) once it is loaded
        for i in range(BRAINS):
            one = House(house, forks, f"bench{i:05d}", server.url)
            start = time.perf_counter()
            pid = one.wake(credential={"base_url": server.url, "key": ""})
            spans.append((time.perf_counter() - start) * 1e3)
            os.kill(pid, signal.SIGKILL)
            one.close()
    return [Figure("a brain: fork and lease", "ms", spans, "≤ 300 ms", sorted(spans)[BRAINS // 2] <= 300)]

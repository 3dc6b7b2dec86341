"""What one call costs: a sandboxed command beside the same one without a sandbox, and a brain from its fork to its
lease.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.table import Figure, bench, ratio
from tests.process.brainhouse import House, fork_server
from tests.process.brainlib import ModelServer
from tests.process.keeperlib import keepers

BRAINS = 8


@bench("call")
def call() -> list[Figure]:
    """Calls as a keeper makes them, in a sandbox that stands ready by then, beside one built for a ``true``."""
    argv = [sys.executable, "-m", "tests.bench.call_times"]
    took = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    over = [spent - plain for spent, plain in zip(took["exec true"], took["plain"], strict=True)]
    median = statistics.median(over)
    built = took["sandbox"]
    read = ratio(took["read_file"], built)
    return [
        Figure("read_file", "ms", took["read_file"], "≤ 1.0×", read <= 1.0, built, "the sandbox around `true`", read),
        Figure("exec true, over a bare `true`", "ms", over, "≤ 8 ms", median <= 8, took["plain"], "a bare `true`"),
        Figure("write_file", "ms", took["write_file"], "–", None, built, "the sandbox around `true`"),
    ]


@bench("brain")
def brain() -> list[Figure]:
    spans = []
    with (
        tempfile.TemporaryDirectory(prefix="wf-bench-") as root,
        keepers(Path(root)) as house,
        fork_server() as forks,
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

"""What one call costs: a fenced command beside the same one without a fence, and a brain from its fork to its lease."""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

from harness.events.action import from_wire
from harness.hands import fence, spawn
from harness.hands.ready import Ready
from harness.protocol.paths import SessionFolder
from tests.bench.table import Figure, bench, ratio
from tests.process.brainhouse import House, nursery
from tests.process.brainlib import ModelServer
from tests.process.keeperlib import keepers

ROUNDS = 40
SETTLE_S = 0.05
"""Between two calls, in which the next fence is built, as between two replies of a model."""
BRAINS = 8


@bench("call")
def call() -> list[Figure]:
    """Calls as a keeper makes them, in a fence that stands ready by then, beside that fence built for one ``true``."""
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        folder = Path(root)
        worktree = folder / "wt"
        worktree.mkdir()
        (worktree / "a").write_text("x\n" * 100)
        base = {
            "cwd": str(worktree),
            "access": "fence",
            "env": fence.environment(str(worktree)),
            "fence": fence.profile(str(worktree), [], [], []).to_wire(),
        }
        calls = {
            "read_file": {"kind": "file", "tool": "read_file", "input": {"path": "a"}},
            "exec true": {"kind": "exec", "tool": "exec", "argv": ["true"]},
            "write_file": {
                "kind": "file",
                "tool": "write_file",
                "path": "a",
                "input": {"path": "a", "content": "x\n" * 100},
            },
        }
        took: dict[str, list[float]] = {name: [] for name in (*calls, "fence", "plain")}
        ready = Ready()
        for _ in range(ROUNDS):
            for name, fields in calls.items():
                made = spawn.command(from_wire({**base, **fields}), SessionFolder(folder, folder), folder / "1")
                ready.prepare(made.argv)
                time.sleep(SETTLE_S)
                took[name].append(timed(made, ready))
            took["fence"].append(ran([*made.argv, "/bin/true"]))
            took["plain"].append(ran(["/bin/true"]))
        ready.drop()
    over = [spent - plain for spent, plain in zip(took["exec true"], took["plain"], strict=True)]
    median = statistics.median(over)
    built = took["fence"]
    read = ratio(took["read_file"], built)
    return [
        Figure("read_file", "ms", took["read_file"], "≤ 1.0×", read <= 1.0, built, "the fence around `true`", read),
        Figure("exec true, over a bare `true`", "ms", over, "≤ 8 ms", median <= 8, took["plain"], "a bare `true`"),
        Figure("write_file", "ms", took["write_file"], "–", None, built, "the fence around `true`"),
    ]


def timed(made: spawn.Spawn, ready: Ready) -> float:
    """Milliseconds from the start of a call to its end and that of its output."""
    start = time.perf_counter()
    output, ours = os.pipe2(os.O_CLOEXEC)
    results, told = os.pipe2(os.O_CLOEXEC)
    pid = spawn.start(made, ours, told, ready)
    os.close(ours)
    os.close(told)
    with open(output, "rb") as text, open(results, "rb") as lines:
        text.read()
        result = lines.read()
    _, status = os.waitpid(pid, 0)
    took = (time.perf_counter() - start) * 1e3
    outcome = spawn.outcome(made, status, result)
    if outcome.status != "ok":
        raise RuntimeError(f"{made.kind}: {outcome}")
    return took


def ran(argv: list[str]) -> float:
    """Milliseconds that a program takes from its start to its end."""
    start = time.perf_counter()
    os.waitpid(os.posix_spawn(argv[0], argv, {}), 0)
    return (time.perf_counter() - start) * 1e3


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

"""Times of calls, in a process as small as a keeper: what a fork costs grows with the memory of the one who forks.

``python -m tests.bench.call_times`` prints milliseconds by name, as JSON.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

from harness.domain.actions.action import from_wire
from harness.executor import spawn
from harness.executor.warm_sandbox import Ready
from harness.protocol.paths import SessionFolder
from harness.sandbox import bubblewrap, fork_exec
from harness.sandbox.namespace_clone import FIRST_COPY

ROUNDS = 40
SETTLE_S = 0.05
"""Between two calls, in which the next sandbox is built, as between two replies of a model."""
ASKED_S = 0.002
"""From the verdict, at which a keeper has a place wait, to the request to start."""


def measured() -> dict[str, list[float]]:
    """Milliseconds of calls in a sandbox that stands ready, of one built for a ``true``, of a bare ``true``."""
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        folder = Path(root)
        worktree = folder / "wt"
        worktree.mkdir()
        (worktree / "a").write_text("x\n" * 100)
        base = {
            "cwd": str(worktree),
            "access": "sandbox",
            "env": bubblewrap.environment(str(worktree)),
            "sandbox": bubblewrap.profile(str(worktree), [], [], []).to_wire(),
        }
        written = {"path": "a", "content": "x\n" * 100}
        calls = {
            "read_file": {"kind": "file", "tool": "read_file", "path": "a", "input": {"path": "a"}},
            "exec true": {"kind": "exec", "tool": "exec", "argv": ["true"]},
            "write_file": {"kind": "file", "tool": "write_file", "path": "a", "input": written},
        }
        took: dict[str, list[float]] = {name: [] for name in (*calls, "sandbox", "plain")}
        ready = Ready()
        for _ in range(ROUNDS):
            for name, fields in calls.items():
                made = spawn.command(from_wire({**base, **fields}), SessionFolder(folder, folder), folder / "1")
                ready.prepare(made.argv)
                time.sleep(SETTLE_S)
                ready.enter()
                time.sleep(ASKED_S)
                took[name].append(timed(made, ready))
            took["sandbox"].append(built(made.argv))
            took["plain"].append(ran(["/bin/true"]))
        ready.drop()
    return took


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


def built(argv: list[str]) -> float:
    """Milliseconds that this sandbox takes around ``true``, with the same copies as around a call."""
    told, copies = bubblewrap.with_copies(argv, FIRST_COPY)
    try:
        start = time.perf_counter()
        os.waitpid(fork_exec.spawn([*told, "/bin/true"], {}, copies), 0)
        return (time.perf_counter() - start) * 1e3
    finally:
        for fd in copies.values():
            os.close(fd)


def ran(argv: list[str]) -> float:
    """Milliseconds that a program takes from its start to its end."""
    start = time.perf_counter()
    os.waitpid(os.posix_spawn(argv[0], argv, {}), 0)
    return (time.perf_counter() - start) * 1e3


if __name__ == "__main__":
    print(json.dumps(measured()))

"""What a tool turn costs beside headless Claude Code: the same simulated model asks both for the same shell commands,
one a turn.

Claude Code is looked for where the variable ``CLAUDE_CODE`` says, then as ``claude`` in ``PATH``. It runs with a home
of its own, its permission checks and all that it says to the vendor switched off.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from harness.linux.proc import descendants
from tests.bench.table import Figure, bench, ratio
from tests.bench.turns import SPARE, TURNS, WARM_UP, spent, with_children_s
from tests.fleetlib import KEY, Fleet, fleet, wait_for

PAIRS = 2
PATIENCE_S = 900
MODEL = "claude-haiku-4-5"
"""One to which Claude Code sends the plain form of the Messages API."""
_GOAL = f"commands: {WARM_UP + TURNS + SPARE} by "
_QUIET = {
    name: "1"
    for name in (
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
        "DISABLE_TELEMETRY",
        "IS_SANDBOX",
    )
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one turn in milliseconds: processor time of all that carries it out, wall time, and the model's part of
    that.
    """

    cpu: float
    wall: float
    model: float


def program() -> str:
    """Claude Code, or nothing."""
    return os.environ.get("CLAUDE_CODE", "") or shutil.which("claude") or ""


def measured(f: Fleet, worktree: Path, cpu_s: Callable[[], float]) -> Cost:
    """What the turns between the warm-up and the end cost; the file ``turn`` says how far they are."""

    def reached(turn: int) -> bool:
        try:
            return int((worktree / "turn").read_text() or "-1") >= turn
        except FileNotFoundError:
            return False

    def now() -> tuple[float, float, float]:
        return cpu_s(), time.monotonic(), with_children_s(f.simulator.pid)

    wait_for("the end of the warm-up", lambda: reached(WARM_UP), PATIENCE_S)
    before = now()
    wait_for("the last turn", lambda: reached(WARM_UP + TURNS), PATIENCE_S)
    return Cost(*((late - early) / TURNS * 1e3 for early, late in zip(before, now(), strict=True)))


def ours() -> Cost:
    with fleet(config='[caps]\nday_usd = "1000"\nsession_usd = "1000"\n') as f:
        sid = f.launch(f"{_GOAL}shell")
        f.wait_event(sid, "tool.started")
        return measured(f, Path(f.row(sid)["worktree"]), lambda: sum(spent(f, sid).values()))


def tree_s(root: int) -> float:
    """Processor time of a process and all below it, the dead that were waited for included."""
    total = 0.0
    for pid in (root, *descendants(root)):
        with suppress(OSError):  # gone meanwhile: its parent has it now
            total += with_children_s(pid)
    return total


@contextmanager
def claude(f: Fleet, repo: Path) -> Iterator[int]:
    """Claude Code at the script; its process."""
    home = f.root / "home"
    home.mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": f.base_url,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_MODEL": MODEL,
        **_QUIET,
    }
    argv = [program(), "-p", f"{_GOAL}Bash", "--dangerously-skip-permissions", "--verbose"]
    process = subprocess.Popen(
        [*argv, "--output-format", "stream-json"],
        env=env,
        cwd=repo,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def theirs() -> Cost:
    with fleet() as f:
        repo = f.repository()
        with claude(f, repo) as pid:
            return measured(f, repo, lambda: tree_s(pid))


@bench("claude")
def beside_claude() -> list[Figure]:
    if not program():
        print("not measured: no Claude Code here (set CLAUDE_CODE to its program)", flush=True)
        return []
    version = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout.split()[0]
    pairs = [(ours(), theirs()) for _ in range(PAIRS)]
    our_cpu, their_cpu = ([pair[who].cpu for pair in pairs] for who in (0, 1))
    our_wall, their_wall = ([pair[who].wall - pair[who].model for pair in pairs] for who in (0, 1))
    name = f"Claude Code {version}, the same script"
    cheaper = ratio(our_cpu, their_cpu)
    faster = ratio(our_wall, their_wall)
    model = [statistics.median(pair[who].model for pair in pairs) for who in (0, 1)]
    told = f"the model took {model[0]:.0f} ms of ours, {model[1]:.0f} of theirs"
    return [
        Figure(
            f"CPU of all processes per tool turn, {TURNS} turns",
            "ms",
            our_cpu,
            "≤ 0.5×",
            cheaper <= 0.5,
            their_cpu,
            name,
            cheaper,
        ),
        Figure(
            "wall per tool turn over the model's own time",
            "ms",
            our_wall,
            "≤ 0.5×",
            faster <= 0.5,
            their_wall,
            name,
            faster,
            told,
        ),
    ]

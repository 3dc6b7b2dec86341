"""What every demo without a screen has around it: whatever happens, its fleet ends, and problems are said."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping

from app.cli.base import exits
from app.cli.base.output import warn
from app.demo.fleet import Demo, DemoError, Part
from harness.protocol.client import SupervisorError, Unreachable
from harness.views.session_views import SessionRow

QUIET_S = 120.0
"""No session has anything new on record for so long: it stands still, however slow the machine is."""


class Patience:
    """How long a demo looks on: for as long as something happens."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, int] = {}
        self._since = clock()

    def see(self, rows: Mapping[str, SessionRow]) -> None:
        """``rows`` by session, those that are not over yet. Raises DemoError when none of them moves any more."""
        seen = {sid: row.seq for sid, row in rows.items()}
        if seen != self._seen:
            self._seen = seen
            self._since = self._clock()
        elif self._clock() - self._since > QUIET_S:
            still = [f"{row.name} is {row.state} ({row.detail})" for row in rows.values()]
            raise DemoError(f"nothing has happened for {QUIET_S:.0f} s: {'; '.join(still)}")


def run(demo: Demo, act: Callable[[list[str]], None], *, keep: bool) -> int:
    """Let ``act`` play and add what did not hold; end the fleet, say the problems, clean up. Exit code 0 only without
    one.
    """
    problems: list[str] = []
    # whoever ends us early must not leave a fleet behind either
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        act(problems)
    except KeyboardInterrupt:
        problems.append("interrupted")
    except (DemoError, Unreachable, SupervisorError, OSError) as exc:
        problems.append(str(exc))
        problems += _log_tail(demo)
    except BaseException:
        demo.stop()
        raise
    try:
        problems += [f"process {pid} was left behind" for pid in demo.stop()]
    except DemoError as exc:
        problems.append(str(exc))
    if keep or problems:
        warn(f"kept: {demo.root}")
    else:
        shutil.rmtree(demo.root)
    for problem in problems:
        warn(f"watchfloor demo: {problem}")
    return exits.NO if problems else exits.OK


def _log_tail(demo: Demo) -> list[str]:
    try:
        text = demo.folders.supervisor_log.read_text("utf-8", "replace")
    except OSError:
        return []
    return [f"the supervisor's last words: {text[-2000:]}"] if text else []


def spent(demo: Demo, part: Part) -> int:
    """Nano-USD that the ledger says this session spent, as the command line reports it."""
    lines = demo.watchfloor("cost")
    sessions = [s for line in lines for s in line.get("sessions", [line])]
    return sum(int(s["spent_nano"]) for s in sessions if s.get("name") == part.name)


def billed(demo: Demo, part: Part) -> int:
    """Nano-USD that the model server says it billed for conversations about this session's goal."""
    with urllib.request.urlopen(f"{demo.base_url}/_sim/usage", timeout=10) as reply:
        report = json.load(reply)
    return sum(int(c["nano"]) for c in report["conversations"] if part.goal in c["goal"])


def passes(worktree: str, check: str) -> bool:
    """Run one check ourselves, outside of any harness. No bytecode is left in the worktree."""
    env = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONDONTWRITEBYTECODE": "1", "HOME": worktree}
    return (
        subprocess.run(
            ["sh", "-c", check],
            cwd=worktree,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        ).returncode
        == 0
    )
